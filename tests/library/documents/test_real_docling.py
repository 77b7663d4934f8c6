"""The backend docling with the package itself, where it is installed; no models are needed."""

import json
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from dagster_dataops import data
from dagster_dataops.errors import FileError
from tests.library.documents.made_files import pdf

pytest.importorskip("docling.document_converter")
docx = pytest.importorskip("docx")  # of docling
pytestmark = pytest.mark.filterwarnings("ignore")  # those of its packages
PAGE = (
    "<html><body><h1>Boats</h1><p>A <b>fast</b> one.</p>"
    "<table><tr><td>a</td><td>b  c</td></tr></table>"
)


def word_file(path: Path, text: str) -> Path:
    document = docx.Document()
    document.add_paragraph(text)
    document.save(path)
    return path


@pytest.fixture
def without_models(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "no models").mkdir()
    from docling.datamodel.settings import settings

    monkeypatch.setattr(settings, "artifacts_path", tmp_path / "no models")


@pytest.fixture
def native(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read PDF files by docling's pipeline that needs no models."""
    from docling import document_converter
    from docling.datamodel.base_models import InputFormat

    pipeline = pytest.importorskip("docling.pipeline.native_pdf_pipeline").NativePdfPipeline
    option = document_converter.PdfFormatOption(pipeline_cls=pipeline)
    plain = document_converter.DocumentConverter
    monkeypatch.setattr(
        document_converter,
        "DocumentConverter",
        lambda: plain(format_options={InputFormat.PDF: option}),
    )


def read(operator: str, path: Path, page: int = 1) -> dict[str, Any]:
    made = getattr(data.documents, operator)(backends=["docling"], backend_key="backend")
    found: dict[str, Any] = made.forward({"file": str(path), "page": page})
    return found


def test_documents_that_need_no_models_are_read(without_models: None, tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    page.write_text(PAGE)
    word = word_file(tmp_path / "a.docx", "one")

    assert read("ToMarkdown", page)["text"].startswith("# Boats\n\nA **fast** one.")
    assert read("ToText", page)["text"].startswith("Boats\n\nA fast one.")
    assert read("Tables", page)["tables"] == [[["a", "b c"]]]
    assert read("ToText", word)["text"] == "one"
    assert read("ToText", word, 2) == {"file": str(word), "page": 2, "text": "", "backend": None}


def test_a_document_of_pictures_alone_has_no_text(without_models: None, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", (20, 20), "red").save(tmp_path / "red.png")
    document = docx.Document()
    document.add_picture(str(tmp_path / "red.png"))
    document.save(tmp_path / "a.docx")

    for operator in ("ToText", "ToMarkdown"):
        found = read(operator, tmp_path / "a.docx")
        assert (found["text"], found["backend"]) == ("", None)


def test_missing_models_are_named_for_each_pdf_file(
    without_models: None, tmp_path: Path, root: Path
) -> None:
    path, page = pdf(tmp_path / "a.pdf", ["one", "two"]), tmp_path / "a.html"
    page.write_text(PAGE)
    with pytest.raises(FileError, match="needs the models of docling, which cannot be loaded"):
        read("ToText", Path(path))

    operator = data.documents.ToText(backends=["pypdfium2", "docling"], backend_key=None)
    assert operator.forward({"file": str(path), "page": 1})["text"] == "one"
    made = data.documents.ToText(backends=["docling"])
    rows = made([{"file": str(path), "page": 1}, {"file": str(page), "page": 1}])
    assert [row["file"] for row in rows] == [str(page)]
    (error,) = map(json.loads, next(root.rglob("*_error.jsonl")).read_text().splitlines())
    assert "docling-tools models download" in error["message"]
    assert "DOCLING_ARTIFACTS_PATH" in error["message"]


def test_one_page_of_a_pdf_file_is_read(native: None, tmp_path: Path) -> None:
    path = Path(pdf(tmp_path / "a.pdf", ["first page", "second page"]))

    for operator in ("ToText", "ToMarkdown"):
        found = read(operator, path, 2)
        assert (found["text"], found["backend"]) == ("second page", "docling")
    assert read("Tables", path)["tables"] == []


def test_an_error_of_docling_is_one_of_the_page(native: None, tmp_path: Path) -> None:
    path = word_file(tmp_path / "a.docx", "one")
    with ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with ZipFile(path, "w") as archive:
        for name, content in parts.items():
            if name != "[Content_Types].xml":
                archive.writestr(name, content)
        archive.writestr("[Content_Types].xml", parts["[Content_Types].xml"][:-20])

    with pytest.raises(FileError, match=r"a\.docx: "):
        read("ToText", path)
