"""A pipeline with changes, drops with reasons, splits, failures and hostile texts."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import Drop, Pipeline, chain, config, data_register, pipeline
from dagster_dataops.pipelines.view.static_report import report_facts
from dagster_dataops.pipelines.view.viewed_root import ViewedRoot
from tests.nodes import Root
from tests.viewed_pages import Page

HOSTILE = '</script><script>document.title = "broken"</script><!-- <b>&amp; \u2028 \x00'
COUNT = 300
data_register.new_group("reported")


@data_register("data.reported", _concurrency_mode="single", _stop_after_failures=0)
def judge(record: dict[str, Any]) -> Any:
    """Drop, split, change and fail, by the number of the record."""
    number = record["n"]
    if number % 10 == 3:
        return Drop("three")
    if number % 10 == 4:
        raise ValueError(f"four {HOSTILE}")
    if number % 50 == 5:
        raise KeyError("five")
    if number % 10 == 6:
        return [record, {**record, "copy": True}]
    return {**record, "text": record["text"].upper()} if number % 10 == 7 else record


@data_register("data.reported", _concurrency_mode="single", _stop_after_failures=0)
def shorter(record: dict[str, Any]) -> Any:
    """Cut the text."""
    return {**record, "text": record["text"][:20]}


@data_register("data.reported", _concurrency_mode="single", _stop_after_failures=0)
def picky(record: dict[str, Any]) -> Any:
    """Drop or fail in a part of a chain."""
    if record["n"] % 9 == 0:
        return Drop("nine")
    if record["n"] % 31 == 0:
        raise RuntimeError("thirty-one")
    return record


@data_register("data.reported", rewrite_func="forward_batch_input")
def backwards(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return records[::-1]


def read_report(path: Path) -> dict[str, Any]:
    """Return what a report shows, after a look at its page.

    Returns:
        ``title``; ``nodes``, the facts about the nodes in the folder that it names; ``page``.
    """
    page = Page(200, {}, path.read_text())
    assert "script" not in {tag for tag, _ in page.tags}
    addresses = [
        given[name] or "" for _, given in page.tags for name in ("src", "href") if name in given
    ]
    assert all(one.startswith(("#", "data:")) for one in addresses)
    assert {one[1:] for one in addresses if one[:1] == "#"} <= {
        given.get("id") for _, given in page.tags
    }
    (folder,) = re.findall(r'class="soft place">(.*?); made at', page.source)
    nodes = list(ViewedRoot("", [Root(Path(folder))], Root(Path(folder))).nodes().values())
    title = page.text.partition(": report")[0]
    return {"title": title, "nodes": report_facts(nodes), "page": page}


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """The root of the results."""
    with config.temporary(data_process_path=tmp_path / "root", data_process_resume=True):
        yield tmp_path / "root"


def write_source(path: Path) -> Path:
    """Write records, whose texts look like HTML."""
    rows = ({"n": n, "text": f"text {n} {HOSTILE} " + "x" * n} for n in range(COUNT))
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A file of records."""
    return write_source(tmp_path / "in.jsonl")


def reported(**settings: Any) -> Pipeline:
    """Return the pipeline."""
    with pipeline("reported") as ppl:
        ppl.judged = judge(**settings)
        ppl.cleaned = chain(shorter(), picky())
        ppl.turned = backwards()
    return ppl


@pytest.fixture
def made(root: Path, source: Path) -> Pipeline:
    """The pipeline after a run."""
    ppl = reported()
    ppl.materialize(source)
    return ppl


@pytest.fixture
def read() -> Callable[[Path], dict[str, Any]]:
    return read_report
