"""The backend docling, with a stand-in for the package: it is large, and fetches its models."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from dagster_dataops import data
from dagster_dataops.errors import FileError, MissingExtraError
from tests.library.documents.made_files import docx, paragraph, pdf


class Converter:
    """A stand-in for ``docling.document_converter.DocumentConverter``."""

    has_models, status = True, "SUCCESS"

    def initialize_pipeline(self, form: str) -> None:
        if not self.has_models:
            raise FileNotFoundError("no model at hand\nask the network")

    def convert(self, path: Path, page_range: tuple[int, int] | None = None) -> Any:
        cells = [[SimpleNamespace(text="a  b"), SimpleNamespace(text="c")]]
        text = f"{path.name} {page_range}"
        document = SimpleNamespace(
            export_to_text=lambda: text,
            export_to_markdown=lambda image_placeholder: f"# {text}{image_placeholder}",
            tables=[SimpleNamespace(data=SimpleNamespace(grid=cells))],
        )
        errors = [SimpleNamespace(error_message="page 2 is lost")]
        return SimpleNamespace(
            document=document, status=SimpleNamespace(name=self.status), errors=errors
        )


@pytest.fixture
def docling(monkeypatch: pytest.MonkeyPatch) -> None:
    package, module = ModuleType("docling"), ModuleType("docling.document_converter")
    module.DocumentConverter = Converter  # type: ignore[attr-defined]
    package.document_converter = module  # type: ignore[attr-defined]
    models, base = ModuleType("docling.datamodel"), ModuleType("docling.datamodel.base_models")
    base.InputFormat = SimpleNamespace(PDF="pdf")  # type: ignore[attr-defined]
    for part in (package, module, models, base):
        monkeypatch.setitem(sys.modules, part.__name__, part)


@pytest.mark.skipif(importlib.util.find_spec("docling") is not None, reason="docling is installed")
@pytest.mark.parametrize("operator", ["ToText", "ToMarkdown", "Tables"])
def test_a_backend_that_is_not_installed_names_its_extra(operator: str) -> None:
    with pytest.raises(MissingExtraError, match=r"dagster-dataops\[docling\]"):
        getattr(data.documents, operator)(backends=["pypdfium2", "docling"])
    with pytest.raises(MissingExtraError, match=r"dagster-dataops\[docling\]"):
        getattr(data.documents, operator)(retry_backends=["docling"])


def test_docling_reads_one_page_of_a_pdf_file(docling: None, tmp_path: Path) -> None:
    record = {"file": str(pdf(tmp_path / "a.pdf", ["one", "two"])), "page": 2}

    text = data.documents.ToText(backends=["docling"]).forward(dict(record))
    assert (text["text"], text["backend"]) == ("a.pdf (2, 2)", "docling")
    markdown = data.documents.ToMarkdown(backends=["docling"]).forward(dict(record))
    assert markdown["text"] == "# a.pdf (2, 2)"
    tables = data.documents.Tables(backends=["docling"]).forward(dict(record))
    assert tables["tables"] == [[["a b", "c"]]]


def test_docling_is_asked_for_pages_without_a_text_alone(docling: None, tmp_path: Path) -> None:
    record = {"file": str(pdf(tmp_path / "a.pdf", ["one", ""]))}
    read = data.documents.ToText(backends=["pypdfium2", "docling"])

    assert read.forward({**record, "page": 1})["backend"] == "pypdfium2"
    assert read.forward({**record, "page": 2})["text"] == "a.pdf (2, 2)"


def test_docling_gives_other_documents_with_their_first_page(docling: None, tmp_path: Path) -> None:
    path = str(docx(tmp_path / "a.docx", paragraph("one|two")))
    read = data.documents.ToText(backends=["docling"])

    assert read.forward({"file": path, "page": 1})["text"] == "a.docx None"
    assert read.forward({"file": path, "page": 2})["text"] == ""


def test_models_that_are_missing_are_an_error_of_pdf_files_alone(
    docling: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Converter, "has_models", False)
    read = data.documents.ToText(backends=["docling"])

    with pytest.raises(FileError, match=r"needs the models of docling.*\(FileNotFoundError: no m"):
        read.forward({"file": str(pdf(tmp_path / "a.pdf", ["one"])), "page": 1})
    path = docx(tmp_path / "a.docx", paragraph("one"))
    assert read.forward({"file": str(path), "page": 1})["text"] == "a.docx None"


def test_a_part_of_a_page_is_no_page(
    docling: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Converter, "status", "PARTIAL_SUCCESS")
    path = str(pdf(tmp_path / "a.pdf", ["one"]))

    with pytest.raises(FileError, match=r"in part by docling \(PARTIAL_SUCCESS: page 2 is lost\)"):
        data.documents.ToText(backends=["docling"]).forward({"file": path, "page": 1})


@pytest.mark.parametrize(
    ("cause", "expected", "said"),
    [
        (TimeoutError("3 seconds"), TimeoutError, "3 seconds"),
        (MemoryError("too much"), MemoryError, "too much"),
        (ValueError("a bad box"), FileError, r"cannot be read by docling.*ValueError: a bad box"),
    ],
    ids=["time limit", "memory limit", "fault"],
)
def test_what_docling_hides_behind_its_own_errors_is_found(
    docling: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cause: Exception,
    expected: type[Exception],
    said: str,
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        msg = "Pipeline SimplePipeline failed"
        raise RuntimeError(msg) from cause

    monkeypatch.setattr(Converter, "convert", fail)
    path = str(docx(tmp_path / "a.docx", paragraph("one")))

    with pytest.raises(expected, match=said):
        data.documents.ToText(backends=["docling"]).forward({"file": path, "page": 1})
