"""A page that kills, stops or bloats its parser is one failed record; all others are there."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from dagster_dataops import data
from dagster_dataops.errors import FileError
from tests.execution.helpers import error_rows, node, run, write_input
from tests.library.documents.made_files import deflated_bomb, pdf, raw_pdf, shown
from tests.nodes import ResumePolicy

PAGES: Final = 12
POISONED: Final = 7
_MEGABYTES: Final = 150


def _parsed(path: str, page: int) -> str:
    text: str = data.documents.ToText().forward({"file": path, "page": page})["text"]
    return text


def kills(path: str, page: int) -> str:
    if page == POISONED:
        os.kill(os.getpid(), signal.SIGSEGV)
    return _parsed(path, page)


def aborts(path: str, page: int) -> str:
    if page == POISONED:
        os.abort()
    return _parsed(path, page)


def hangs(path: str, page: int) -> str:
    if page == POISONED:
        time.sleep(600)
    return _parsed(path, page)


def hangs_in_c(path: str, page: int) -> str:
    """Hang where no exception can be raised: signals are blocked."""
    if page == POISONED:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        time.sleep(600)
    return _parsed(path, page)


def bloats(path: str, page: int) -> str:
    kept = []
    while page == POISONED:
        kept.append(bytearray(64 << 20))
    return _parsed(path, page)


def raises(path: str, page: int) -> str:
    if page == POISONED:
        raise RuntimeError("std::bad_alloc")
    return _parsed(path, page)


def nonsense(path: str, page: int) -> Any:
    return 5 if page == POISONED else _parsed(path, page)


BACKENDS: Final[dict[Callable[..., Any], str]] = {
    kills: "killed by SIGSEGV",
    aborts: "killed by SIGABRT; its memory limit was 150 MB",
    hangs: "longer than its limit of 1 s",
    hangs_in_c: "longer than its limit of 1 s",
    bloats: "more than its memory limit of 150 MB",
    raises: "its page 7 cannot be read (RuntimeError: std::bad_alloc)",
    nonsense: "it must return a text",
}


def read(backends: list[Any], **options: Any) -> Any:
    return data.documents.ToText(
        backends=backends,
        timeout_s=1.0 if {hangs, hangs_in_c} & set(backends) else 60.0,
        _max_workers=2,
        _max_worker_memory_mb=_MEGABYTES,
        **options,
    )


@pytest.fixture
def pages(tmp_path: Path) -> Any:
    path = pdf(tmp_path / "a.pdf", [f"text {page}" for page in range(1, PAGES + 1)])
    found = data.documents.Pages(_concurrency_mode="single")([{"file": str(path)}])
    return write_input(tmp_path / "pages.jsonl", found)


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.__name__)
def test_one_page_fails_with_its_reason(
    tmp_path: Path, pages: Any, backend: Callable[..., Any]
) -> None:
    report = run(read([backend]), pages, node(tmp_path))
    (failed,) = error_rows(node(tmp_path))

    assert [record["page"] for record in report.dataset] == [
        page for page in range(1, PAGES + 1) if page != POISONED
    ]
    assert all(record["text"] == f"text {record['page']}" for record in report.dataset)
    assert failed["input"]["page"] == POISONED
    assert BACKENDS[backend] in failed["message"]


@pytest.mark.slow
def test_a_retry_of_failed_pages_uses_other_backends(tmp_path: Path, pages: Any) -> None:
    run(read([kills]), pages, node(tmp_path), run="first")
    again = read([kills], retry_backends=["pypdfium2"])
    report = run(again, pages, node(tmp_path), run="again", resume=ResumePolicy.FAILED_RECORDS)

    assert [record["page"] for record in report.dataset] == list(range(1, PAGES + 1))
    assert [record["backend"] for record in report.dataset if record["page"] == POISONED] == [
        "pypdfium2"
    ]
    assert error_rows(node(tmp_path)) == []


def test_backends_are_tried_until_one_finds_a_text(tmp_path: Path) -> None:
    path = str(pdf(tmp_path / "a.pdf", ["one", ""]))

    def scanned(_: str, page: int) -> str | None:
        return f"scan {page}" if page == 2 else None

    operator = data.documents.ToText(backends=["pypdfium2", scanned])
    found = [operator.forward({"file": path, "page": page}) for page in (1, 2)]

    assert [(one["text"], one["backend"]) for one in found] == [
        ("one", "pypdfium2"),
        ("scan 2", "scanned"),
    ]
    whole = data.documents.ToText(page_key=None, backends=["pypdfium2", scanned]).forward(
        {"file": path}
    )
    assert (whole["text"], whole["backend"]) == ("one\n\nscan 2", "pypdfium2, scanned")


def test_an_error_of_a_backend_counts_if_no_other_finds_a_text(tmp_path: Path) -> None:
    path = str(pdf(tmp_path / "a.pdf", ["one", ""]))

    def broken(path: str, page: int) -> str:
        raise OSError("no model")

    first = data.documents.ToText(backends=[broken, "pypdfium2"])

    assert first.forward({"file": path, "page": 1})["text"] == "one"
    with pytest.raises(FileError, match=r"its page 2 has no content .*broken: .*no model"):
        first.forward({"file": path, "page": 2})


# Pages that PDFium itself must survive, or that cost one record: content and dict of the stream.
# A number is a stream that unpacks to as many megabytes.
CONTENTS: Final[dict[str, tuple[bytes | int, str]]] = {
    "bomb": (200, "/Filter/FlateDecode"),
    "double bomb": (40, "/Filter[/FlateDecode/FlateDecode]"),
    "unknown filter": (b"x", "/Filter/Nonsense"),
    "broken stream": (b"x\x9c\1\2\3", "/Filter/FlateDecode"),
    "open text": (b"BT /F1 12 Tf (open", ""),
    "many states": (b"q " * 200_000, ""),
    "nested arrays": (b"[" * 100_000, ""),
    "nested dicts": (b"<<" * 100_000, ""),
    "wrong numbers": (b"1e999 -1e999 99999999999999999999 Tf BT (x) Tj", ""),
}


@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.slow
def test_malformed_pages_cost_at_most_themselves(tmp_path: Path, name: str) -> None:
    content, stream = CONTENTS[name]
    if isinstance(content, int):
        content = deflated_bomb(content)
    good = pdf(tmp_path / "good.pdf", ["good"])
    poisoned = raw_pdf(tmp_path / "bad.pdf", [content], stream=stream)
    files = [{"file": str(path)} for path in (good, poisoned, good)]
    pages = data.documents.Pages(_concurrency_mode="single")(files)
    dataset = write_input(tmp_path / "pages.jsonl", pages)

    report = run(read(["pypdfium2"]), dataset, node(tmp_path))
    found = [(record["page"], record["text"]) for record in report.dataset]

    assert len(found) + len(error_rows(node(tmp_path))) == 3
    assert found.count((1, "good")) == 2


def test_a_form_that_shows_itself_is_read(tmp_path: Path) -> None:
    itself = b"/XObject<</X 6 0 R>>"
    path = raw_pdf(tmp_path / "a.pdf", [b"/X Do " + shown("one")], more=itself)
    form = (
        b"6 0 obj\n<</Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<<%s>>/Length 5>>" % itself
    )
    content = path.read_bytes()
    path.write_bytes(
        content.replace(b"xref\n", form + b"stream\n/X Do\nendstream endobj\nxref\n", 1)
    )

    assert data.documents.ToText().forward({"file": str(path), "page": 1})["text"] == "one"


@pytest.mark.slow
def test_pages_are_counted_without_reading_the_poisoned_one(tmp_path: Path) -> None:
    bomb = deflated_bomb(200)
    path = raw_pdf(tmp_path / "a.pdf", [bomb], stream="/Filter/FlateDecode")
    began = time.process_time()

    (page,) = data.documents.Pages().forward({"file": str(path)})
    assert (page["page"], page["width"]) == (1, 300)
    assert time.process_time() - began < 1
