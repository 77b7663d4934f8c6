"""How documents are opened: once for consecutive pages, in every mode, from paths and stores."""

import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import data, pipeline
from dagster_dataops.files import FileReference
from dagster_dataops.library.documents.formats import document_opening
from tests.execution.helpers import node, run, write_input
from tests.library.documents.made_files import PNG, docx, paragraph, pdf


def pages_of(*paths: Path | str) -> list[dict[str, Any]]:
    read = data.documents.Pages(_concurrency_mode="single")
    found: list[dict[str, Any]] = read([{"file": str(path)} for path in paths])
    return found


def test_consecutive_pages_open_their_document_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (pdf(tmp_path / f"{n}.pdf", ["one", "two", "three"]) for n in "ab")
    pages = pages_of(first, second)
    opened: Counter[str] = Counter()
    opens = document_opening.opened_document

    def counted(path: Path, *args: Any) -> Any:
        opened[path.name] += 1
        return opens(path, *args)

    monkeypatch.setattr(document_opening, "opened_document", counted)
    result = data.documents.ToText(_concurrency_mode="single")(pages)

    assert [record["text"] for record in result] == ["one", "two", "three"] * 2
    assert opened == {"a.pdf": 1, "b.pdf": 1}


@pytest.mark.parametrize("mode", ["single", "thread", "process"])
@pytest.mark.parametrize("operator", ["ToText", "ToMarkdown"])
def test_every_mode_gives_the_same_texts(tmp_path: Path, mode: str, operator: str) -> None:
    texts = [f"text {page}" for page in range(40)]
    paths = [pdf(tmp_path / f"{n}.pdf", texts) for n in range(4)]
    body = paragraph("|".join(f"word {page}" for page in range(10)))
    paths.append(docx(tmp_path / "a.docx", body))
    dataset = write_input(tmp_path / "pages.jsonl", pages_of(*paths))
    read = getattr(data.documents, operator)(_concurrency_mode=mode, _max_workers=4)

    report = run(read, dataset, node(tmp_path))

    assert [record["text"] for record in report.dataset] == [
        *texts * 4,
        *(f"word {page}" for page in range(10)),
    ]


def test_files_in_a_tar_archive_are_documents(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "shard.tar", "w") as archive:
        archive.add(pdf(tmp_path / "a.pdf", ["one", "two"]), "papers/a.pdf")
    name = f"{tmp_path}/shard.tar#papers/a.pdf"

    read = data.documents.ToText(_concurrency_mode="single")
    assert [record["text"] for record in read(pages_of(name))] == ["one", "two"]


def test_images_are_files_of_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawing = '<w:p><w:r><w:drawing><a:blip r:embed="i"/></w:drawing></w:r></w:p>'
    path = docx(
        tmp_path / "a.docx",
        paragraph("one|") + drawing,
        targets={"i": ("image", "media/a.png")},
        parts={"word/media/a.png": PNG},
    )
    with pipeline("pictures") as ppl:
        ppl.pages = data.documents.Pages(_concurrency_mode="single")
        ppl.images = data.documents.Images(_concurrency_mode="single")
    (record,) = ppl([{"file": str(path)}])

    assert (record["page"], record["image_index"]) == (2, 0)
    assert record["image"]["media_type"] == "image/png"
    assert record["image"]["size"] == len(PNG)
    assert FileReference.of(record["image"]).digest
