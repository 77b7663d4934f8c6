"""``documents.Join``: documents again, in exact order, with their missing pages."""

import random
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import data, pipeline
from dagster_dataops.errors import DataOpsError
from tests.library.documents.made_files import pdf


def page(file: str, number: int, pages: int = 3, **more: Any) -> dict[str, Any]:
    size = {"width": 1, "height": 2, "has_text": True, "backend": "pypdfium2"}
    text = f"{file}{number}"
    return {"file": file, "page": number, "pages": pages, **size, "text": text, **more}


PAGES = [page(file, number) for file in "bac" for number in (1, 2, 3)]


def join(pages: list[dict[str, Any]], **options: Any) -> Any:
    return data.documents.Join(separator="|", **options)(pages)


def test_pages_become_documents_in_the_order_of_the_input() -> None:
    assert join(PAGES) == [
        {"file": file, "pages": 3, "text": f"{file}1|{file}2|{file}3", "missing_pages": []}
        for file in "bac"
    ]


def test_missing_pages_are_named() -> None:
    left = [one for one in PAGES if (one["file"], one["page"]) not in {("b", 1), ("a", 3)}]

    assert [(one["text"], one["missing_pages"]) for one in join(left)] == [
        ("b2|b3", [1]),
        ("a1|a2", [3]),
        ("c1|c2|c3", []),
    ]


@pytest.mark.parametrize("megabytes", [256, 1])
def test_pages_in_any_order_and_any_number_give_the_same_documents(megabytes: int) -> None:
    pages = [page(f"{file:03d}", n, 4, more="x" * 3000) for file in range(200) for n in range(1, 5)]
    random.Random(1).shuffle(pages)
    order = list(dict.fromkeys(one["file"] for one in pages))

    found = join(pages, max_memory_mb=megabytes)

    assert [one["file"] for one in found] == order
    assert all(one["text"] == "|".join(f"{one['file']}{n}" for n in range(1, 5)) for one in found)


def test_a_file_that_is_listed_twice_makes_two_documents() -> None:
    pages = [page("a", n, 2, copy=copy) for copy in (1, 2) for n in (1, 2)]

    assert [(one["text"], one["copy"]) for one in join(pages)] == [("a1|a2", 1), ("a1|a2", 2)]


def test_references_are_files_too() -> None:
    pages = [{**page("a", n, 2), "file": {"file": "a", "size": 3}} for n in (2, 1)]

    assert [(one["file"], one["text"]) for one in join(pages)] == [
        ({"file": "a", "size": 3}, "a1|a2")
    ]


def test_documents_without_any_page_are_known_from_the_result_of_pages(tmp_path: Path) -> None:
    paths = [str(pdf(tmp_path / f"{name}.pdf", ["one", "two"])) for name in "abc"]

    def fails_for_b(path: str, page: int) -> str:
        if path.endswith("b.pdf") or (path.endswith("c.pdf") and page == 1):
            raise ValueError
        return f"{page}"

    with pipeline("documents") as ppl:
        ppl.pages = data.documents.Pages(_concurrency_mode="single")
        ppl.texts = data.documents.ToText(backends=[fails_for_b], _concurrency_mode="single")
        ppl.add("joined", data.documents.Join(), inputs=[ppl.texts, ppl.pages])
    found = ppl([{"file": path} for path in paths])

    assert [(one["file"], one["text"], one["missing_pages"]) for one in found] == [
        (paths[0], "1\n\n2", []),
        (paths[2], "2", [1]),
        (paths[1], "", [1, 2]),
    ]


@pytest.mark.parametrize("pages", [None, "3", 3.0, True, 0, 1])
def test_an_unknown_number_of_pages_stops_the_join(pages: Any) -> None:
    with pytest.raises(DataOpsError, match=r"'pages' has .* for page 2 of 'a'; it needs"):
        join([{**page("a", number), "pages": pages} for number in (1, 2)])


def test_a_record_that_is_no_page_stops_the_join() -> None:
    for record in ({"file": "a", "text": "x"}, {"page": 1, "text": "x"}, {**PAGES[0], "page": "1"}):
        with pytest.raises(DataOpsError, match=r"documents.Pages|needs the number of a page"):
            join([*PAGES, record])
