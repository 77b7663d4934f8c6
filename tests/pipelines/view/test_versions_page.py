"""Test the view with the features that change where a result is: its versions, forms and parts."""

from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import config, data_register, pipeline, report
from tests.object_stores import leave_short_parts
from tests.pipelines.view.conftest import COUNT, HOSTILE, judged
from tests.viewed_pages import Page, viewing

KEPT = "looks/judged"


@data_register("data.versions_looked_at", _concurrency_mode="single")
def sign(record: dict[str, Any], text: str = "") -> Any:
    return [] if record["n"] % 10 == 3 else {"n": record["n"], "text": f"{HOSTILE}{text} word"}


def run(source: Path, text: str, form: str = "jsonl", **settings: Any) -> None:
    with config.temporary(data_process_resume=False, result_format=form, **settings):
        with pipeline("signs") as ppl:
            ppl.signed = sign(text=text, _keep_versions=3)
        ppl.materialize(source)


def cells(page: Page) -> list[list[str]]:
    return [[row[0], row[2]] for row in page.rows if len(row) == 6][1:]


def between_links(page: Page) -> list[str]:
    """Return the addresses of the differences between versions that follow one another."""
    links = [given.get("href") or "" for tag, given in page.tags if tag == "a"]
    return [one for one in links if "before=" in one and "after=" in one]


@pytest.fixture(params=["disk", "bucket", "bucket with parts"])
def shown(request: pytest.FixtureRequest, root: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The root of results on a disk and in buckets."""
    if request.param == "disk":
        yield str(root)
        return
    leave_short_parts(monkeypatch)
    url = f"memory://versions/{request.param.replace(' ', '-')}"
    whole = 0 if "parts" in request.param else 16
    with config.temporary(data_process_path=url, whole_result_mb=whole):
        yield url


@pytest.mark.slow
def test_versions_of_any_form_are_listed_compared_and_opened(shown: str, source: Path):
    for text, form in (("a", "jsonl"), ("b", "jsonl.zst"), ("c", "jsonl")):
        run(source, text, form)
    with viewing(shown) as viewer:
        page = viewer.page("/versions/signs/signed")
        rows = str(COUNT - COUNT // 10)
        assert cells(page) == [["current", rows], ["2", rows], ["1", rows]]
        page = viewer.page("/versions/signs/signed?before=2")
        assert 'option text: "b" became "c"' in page.text
        assert f"{rows} changed" in page.text
        assert any("b" in one for one in page.marked("del"))
        assert any("c" in one for one in page.marked("ins"))
        assert HOSTILE not in page.source

        (address,) = (one for one in between_links(page) if "before=1" in one)
        between = viewer.page(address)
        assert 'option text: "a" became "b"' in between.text

        for number, text in (("1", "a"), ("2", "b")):
            old = viewer.page(page.links[number])
            assert old.status == 200
            assert "an earlier result, which was kept" in old.text
            assert f"{HOSTILE}{text} word" in old.text
            key = f"signs/signed/.history/{number}"
            assert f"{COUNT // 10}" in viewer.page(f"/dropped/{key}").text
            for other in ("failed", "numbers", "changes"):
                assert viewer.page(f"/{other}/{key}").status == 200, other
        for name in ("7", "current", "1/.history/1", "%2E%2E"):
            assert viewer.page(f"/records/signs/signed/.history/{name}").status == 404, name
        assert viewer.page("/versions/signs/signed?before=7").status == 200
        assert [row[0] for row in viewer.page("/").rows[1:]] == ["signs / signed"]


def test_a_node_without_versions_has_no_page_of_them_in_its_list(root: Path, source: Path):
    judged().materialize(source)
    with viewing(root) as viewer:
        assert "Versions" not in viewer.page(f"/records/{KEPT}").text
        assert cells(viewer.page(f"/versions/{KEPT}")) == [["current", "264"]]


@pytest.mark.parametrize("where", ["disk", "bucket"])
def test_compressed_results_are_shown_traced_and_reported(root: Path, source: Path, where: str):
    place = str(root) if where == "disk" else "memory://viewed-compressed/prefix"
    with config.temporary(data_process_path=place, result_format="jsonl.zst"):
        judged().materialize(source)
    with viewing(place) as viewer:
        assert "looks / judged" in viewer.page("/").text
        page = viewer.page(f"/records/{KEPT}?from=201")
        assert "first" not in page.rows[0]
        assert "201" in page.text
        assert viewer.page(f"/records/{KEPT}?q=fox+217+").text.count("fox 217") == 1
        for name in ("dropped", "failed", "changes", "numbers"):
            assert viewer.page(f"/{name}/{KEPT}").status == 200
        way = viewer.page("/record/looks/parts?output=train&line=5")
        assert way.status == 200
        if where == "disk":
            assert "looks.long" not in way.text
            assert "WordCount" in way.text


@pytest.mark.slow
def test_a_node_keeps_its_place_in_the_graph_after_the_one_before_changed_its_form(
    root: Path, source: Path
):
    judged().materialize(source)
    with config.temporary(data_process_resume=True, result_format="jsonl.zst"):
        with pipeline("looks") as ppl:
            ppl.judged = judged().graph.nodes["judged"].operator
        ppl.materialize(source)
    assert (root / KEPT / "judged_results.jsonl.zst").exists()
    with viewing(root) as viewer:
        page = viewer.page("/records/looks/long")
        assert page.links["judged"] == "/records/looks/judged"
    text = report(root / "looks").read_text()
    assert "judged_results.jsonl<" not in text
