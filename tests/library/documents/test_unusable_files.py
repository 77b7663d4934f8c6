"""A file that cannot be used is an error of its record, with path and reason; others go on."""

import gzip
import io
import os
import pickle
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError, FileChangedError, FileError, FileReferenceError
from tests.each import each
from tests.library.documents.made_files import PNG, docx, epub, paragraph, pdf, pptx, zipped

WORD: Final = "open sesame"
KEY: Final = "key"
OLE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
BOMB: Final = b"<a>" + b" " * (4 << 20) + b"</a>"
ENTITIES: Final = '<!DOCTYPE l [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><l>&b;</l>'
CIPHER: Final = (
    '<encryption xmlns:enc="http://www.w3.org/2001/04/xmlenc#">'
    '<enc:CipherReference URI="OEBPS/text/c%200.xhtml"/></encryption>'
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


@pytest.fixture(scope="module")
def good(folder: Path) -> bytes:
    return pdf(folder / "good.pdf", ["one", "two"]).read_bytes()


def _tar(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        info = tarfile.TarInfo("a.pdf")
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def _linearized(content: bytes) -> bytes:
    head = b"%PDF-1.7\n1 0 obj\n<</Linearized 1/L 99999/H[1 2]>>\nendobj\n%%EOF\n"
    return head + content


# The name of the file, its content made of a good PDF file, and a part of the reason.
CONTENTS: Final[dict[str, tuple[Callable[[bytes], bytes], str]]] = {
    "empty.pdf": (lambda _: b"", "is empty"),
    "zeros.pdf": (lambda _: bytes(5000), "zero bytes and white space"),
    "half.pdf": (lambda good: good[: len(good) // 2], "is truncated"),
    "linearized.pdf": (_linearized, "is truncated"),
    "page.pdf": (lambda _: b"<html><body>404</body></html>", "text/html by its content"),
    "note.pdf": (lambda _: b"a note", "of no known type by its content"),
    "garbage.pdf": (lambda _: b"%PDF-1.4\n" + b"\7\xff" * 900 + b"%%EOF", "is damaged"),
    "nothing.pdf": (lambda _: b"%PDF-1.4\n%%EOF", "is damaged"),
    "good.pdf.gz": (gzip.compress, "application/gzip, no document"),
    "good.tar": (_tar, "application/x-tar, no document"),
    "good.docx": (lambda good: good, "application/pdf by its content"),
    "good.html": (lambda good: good, "application/pdf by its content"),
    "picture.html": (lambda _: PNG, "image/png by its content"),
    "zeros.html": (lambda _: b"abc\0\0\0", "zero bytes"),
    "utf32.html": (lambda _: "<html>a page".encode("utf-32"), "zero bytes"),
    "note.txt": (lambda _: b"a note", "of no known type"),
    "note": (lambda _: b"a note", "of no known type, no document"),
    "locked.docx": (lambda _: OLE, "is encrypted"),
    "old.doc": (lambda _: OLE, "no document"),
}


@each("name", CONTENTS)
def test_content_that_is_no_document_is_named(name: str, folder: Path, good: bytes) -> None:
    content, reason = CONTENTS[name]
    path = folder / "contents" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content(good))

    _refused(path, reason)


def _refused(path: object, reason: str, **options: object) -> FileError:
    for operator in (data.documents.Pages, data.documents.ToText, data.documents.Metadata):
        with pytest.raises(FileError) as caught:
            operator(**options).forward({"file": str(path), "page": 1})
        assert str(caught.value).startswith(f"{path}: ")
        assert reason in str(caught.value)
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    return caught.value


def _truncated(path: Path) -> Path:
    docx(path, paragraph("x"))
    path.write_bytes(path.read_bytes()[:-30])
    return path


# A function that writes the file, and a part of the reason.
ARCHIVES: Final[dict[str, tuple[Callable[[Path], Path], str]]] = {
    "a.zip": (lambda path: zipped(path, {"a.pdf": "x"}), "application/zip, no document"),
    "zip.docx": (lambda path: zipped(path, {"a.pdf": "x"}), "application/zip by its content"),
    "zip.epub": (lambda path: zipped(path, {"a.pdf": "x"}), "application/zip by its content"),
    "sheet.xlsx": (
        lambda path: zipped(path, {"[Content_Types].xml": "spreadsheetml.sheet.main+xml"}),
        "spreadsheetml.sheet, no document",
    ),
    "slides.docx": (lambda path: pptx(path, ["x"]), "presentation by its content"),
    "half.docx": (_truncated, "is truncated or damaged"),
    "missing.docx": (
        lambda path: zipped(path, {"[Content_Types].xml": "wordprocessingml.document.main+xml"}),
        "its part 'word/document.xml' is missing",
    ),
    "xml.docx": (lambda path: docx(path, "<w:p>"), "no valid XML"),
    "deep.docx": (lambda path: docx(path, "<w:p>" * 2000 + "</w:p>" * 2000), "nested more than"),
    "entities.docx": (
        lambda path: docx(path, "", parts={"word/document.xml": ENTITIES}),
        "document type",
    ),
    "bomb.docx": (
        lambda path: docx(path, "", parts={"word/document.xml": BOMB}),
        "unpacks to more than max_bytes=1,048,576",
    ),
    "bomb.epub": (
        lambda path: epub(path, ["x"], {"OEBPS/book.opf": BOMB}),
        "unpacks to more than max_bytes=1,048,576",
    ),
    "empty.pptx": (lambda path: pptx(path, []), "has no slides"),
    "empty.epub": (lambda path: epub(path, []), "no items"),
    "locked.epub": (
        lambda path: epub(path, ["x"], {"META-INF/encryption.xml": CIPHER}),
        "is encrypted",
    ),
}


@each("name", ARCHIVES)
def test_archives_that_are_no_good_documents_are_named(name: str, folder: Path) -> None:
    written, reason = ARCHIVES[name]
    path = folder / "archives" / name
    path.parent.mkdir(exist_ok=True)
    written(path)

    _refused(path, reason, max_bytes=1 << 20)


def test_a_file_whose_parts_claim_to_be_small_is_refused(tmp_path: Path) -> None:
    path = docx(tmp_path / "a.docx", "", parts={"word/document.xml": BOMB})
    size = len(BOMB).to_bytes(4, "little")
    path.write_bytes(path.read_bytes().replace(size, (100).to_bytes(4, "little")))

    _refused(path, "cannot be unpacked")


def test_paths_that_are_no_plain_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "folder.pdf").mkdir()
    os.mkfifo(tmp_path / "pipe.pdf")
    (tmp_path / "loop.pdf").symlink_to(tmp_path / "loop.pdf")

    for name in ("folder.pdf", "pipe.pdf", "loop.pdf", "missing.pdf"):
        _refused(tmp_path / name, "")


@each("value", [None, 5, "", ["a.pdf"], {"path": "a.pdf"}])
def test_values_that_name_no_file_are_errors(value: object) -> None:
    with pytest.raises(FileReferenceError, match="column 'scan'"):
        data.documents.Pages(input_key="scan").forward({"scan": value})


def test_a_missing_column_of_documents_names_the_columns_that_are_there() -> None:
    with pytest.raises(FileReferenceError, match="column 'file': is missing.*'scan'.*input_key"):
        data.documents.Pages().forward({"scan": "a.pdf"})


def test_a_page_without_a_fixed_form_is_not_drawn(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    path.write_text("<html><body>a page</body></html>")
    with pytest.raises(FileError) as caught:
        data.documents.ToImage().forward({"file": str(path), "page": 1})
    reason = "is html, whose pages have no fixed form to draw; convert the file to PDF before"
    assert str(caught.value) == f"{path}: {reason}"


def test_a_page_that_a_document_lacks_is_an_error(folder: Path, good: bytes) -> None:
    read = data.documents.ToText()
    with pytest.raises(FileError, match="has 2 pages, so no page 3"):
        read.forward({"file": str(folder / "good.pdf"), "page": 3})
    for page in (0, -1, "1", 1.5, True, None):
        with pytest.raises(ValueError, match="it needs the number of a page"):
            read.forward({"file": str(folder / "good.pdf"), "page": page})


@each(
    "case",
    [
        (data.documents.Pages(max_pages=1), "has 2 pages, more than max_pages=1"),
        (data.documents.Pages(max_bytes=100), "max_bytes=100 bytes"),
        (data.documents.ToImage(max_pixels=1000), "more than 1,000; raise max_pixels"),
    ],
)
def test_what_is_larger_than_the_limit_is_an_error(case, folder: Path, good: bytes) -> None:
    with pytest.raises(FileError, match=case[1]):
        case[0].forward({"file": str(folder / "good.pdf"), "page": 1})


def test_an_encrypted_file_needs_its_password(tmp_path: Path) -> None:
    path = pdf(tmp_path / "a.pdf", ["hidden"], locked_by=WORD)
    record = {"file": str(path), "page": 1, KEY: WORD}
    _refused(path, "is encrypted; give its password as password or unlock_key")

    assert data.documents.ToText(password=WORD).forward(dict(record))["text"] == "hidden"
    assert data.documents.ToText(unlock_key=KEY).forward(dict(record))["text"] == "hidden"
    with pytest.raises(FileError, match="the password does not open it") as caught:
        data.documents.ToText(password=WORD[5:]).forward(dict(record))
    assert "sesame" not in str(caught.value)


def test_a_password_can_be_a_secret_and_is_no_part_of_the_identity(tmp_path: Path) -> None:
    class Secret:
        def get_secret_value(self) -> str:
            return WORD

    path = pdf(tmp_path / "a.pdf", ["hidden"], locked_by=WORD)
    read = data.documents.ToText(password=Secret())

    assert read.forward({"file": str(path), "page": 1})["text"] == "hidden"
    assert "sesame" not in repr(data.documents.ToText(password=WORD))


def test_a_file_that_changes_while_its_pages_are_read_is_an_error(tmp_path: Path) -> None:
    path = pdf(tmp_path / "a.pdf", ["one", "two"])
    read = data.documents.ToText()
    assert read.forward({"file": str(path), "page": 1})["text"] == "one"
    pdf(tmp_path / "b.pdf", ["other", "pages"]).replace(path)

    with pytest.raises(FileChangedError, match="has changed"):
        read.forward({"file": str(path), "page": 2})
    assert read.forward({"file": str(path), "page": 2})["text"] == "pages"


def test_a_reference_that_names_another_content_is_refused(folder: Path, good: bytes) -> None:
    path = str(folder / "good.pdf")
    for reference in ({"size": 3}, {"digest": f"sha256:{'0' * 64}"}):
        with pytest.raises(FileChangedError):
            data.documents.Pages().forward({"file": {"file": path, **reference}})
    with pytest.raises(FileError, match="image/png by the record"):
        data.documents.Pages().forward({"file": {"file": path, "media_type": "image/png"}})


@each("operator", ["ToText", "ToMarkdown", "Tables"])
def test_backends_that_do_not_exist_are_refused(operator: str) -> None:
    make = getattr(data.documents, operator)
    with pytest.raises(DefinitionError, match="backends has 'pdftotext'; use 'pypdf"):
        make(backends=["pdftotext"])
    with pytest.raises(DefinitionError, match="give a list of backends"):
        make(backends=[])
    with pytest.raises(DefinitionError, match="'backends' must be Sequence"):
        make(backends="pypdfium2")
