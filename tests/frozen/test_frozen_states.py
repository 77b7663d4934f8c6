"""Tests that states which came after version 0.2.0 are read by the present code.

A case that fails here means that users lose work with an upgrade: mend the reader, not the case.
"""

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import config, data, diff, load_artefact, load_result, restore, versions
from dagster_dataops.configuration import folder_at
from tests.each import each
from tests.frozen.conftest import HERE
from tests.nodes import Manifest, NodeFolder

Thaw = Callable[..., Path]
STATES = [f"states/{path.name}" for path in sorted((HERE / "states").iterdir())]
pytestmark = pytest.mark.parametrize("version", STATES)


def state_cases() -> Any:
    import state_cases

    return state_cases


def manifest_at(folder: Path) -> Manifest:
    manifest = Manifest.load(NodeFolder.of(folder_at(folder)).manifest)
    assert manifest is not None
    return manifest


def rows_at(folder: Path) -> list[Any]:
    return list(load_result(folder).read())


def test_kept_versions_are_listed_compared_and_restored(thaw: Thaw) -> None:
    node = thaw("versions") / "versions" / "node"
    assert [version.name for version in versions(node)] == ["1", "current"]
    difference = diff(node)
    assert difference.summary == "0 new, 0 gone, 37 changed, 0 the same"
    assert [cause.name for cause in difference.causes] == ["tag"]

    assert restore(node, 1).kept_as == "2"

    assert {row["tag"] for row in rows_at(node)} == {"a"}
    assert diff(node).summary == difference.summary


def test_versions_are_kept_beside_those_that_are_there(thaw: Thaw, tmp_path: Path) -> None:
    node = thaw("versions") / "versions" / "node"
    state_cases().kept("c")(str(tmp_path / "input.jsonl"))
    assert [version.name for version in versions(node)] == ["1", "2", "current"]
    assert diff(node, 1).summary == "0 new, 0 gone, 37 changed, 0 the same"


def test_outcomes_are_found_by_the_columns_that_were_read(thaw: Thaw, tmp_path: Path) -> None:
    node = thaw("observed") / "observed" / "node"
    records = [
        {"added": n, **json.loads(line)}
        for n, line in enumerate((tmp_path / "input.jsonl").read_bytes().splitlines())
    ]
    source = tmp_path / "wider.jsonl"
    source.write_text("".join(json.dumps(record) + "\n" for record in records))

    state_cases().observing("observed")(str(source))

    manifest = manifest_at(node)
    assert (manifest.resumed, manifest.counts) == (40, {"seen": 40, "weight": 20})
    assert rows_at(node) == [record | {"size": len(record["text"])} for record in records]


@each("name", ["killed_observed", "killed_chosen"])
def test_a_killed_run_goes_on(thaw: Thaw, tmp_path: Path, name: str) -> None:
    root, source = thaw(name), str(tmp_path / "input.jsonl")
    node = root / name / "node"
    before = Manifest.load(NodeFolder.of(folder_at(node)).manifest)

    state_cases().run(name, source)

    after = manifest_at(node)
    assert 20 <= after.resumed < 40
    assert after.run != ("" if before is None else before.run)
    assert len(after.attempts) >= 2
    with config.temporary(data_process_path=tmp_path / "anew", data_process_resume=False):
        state_cases().KILLED[name](-1)(source)
    anew = tmp_path / "anew" / name / "node"
    assert rows_at(node) == rows_at(anew)
    assert after.counts == manifest_at(anew).counts


def test_a_review_goes_on_and_asks_nothing_twice(thaw: Thaw, tmp_path: Path) -> None:
    node = thaw("review") / "review" / "node"
    folder = node / "review"
    before = sorted(path.name for path in folder.glob("questions-*"))
    (folder / "first.jsonl").unlink()  # the decision is in the state
    state_cases().decide(folder, "others.jsonl", {"word1 x1": "keep", "word2 x2": "keep"})

    rows = state_cases().asking()(str(tmp_path / "input.jsonl"))

    assert [row["n"] for row in rows] == list(range(1, 40))
    assert [row["review"] for row in rows[:3]] == ["keep", "keep", None]
    assert sorted(path.name for path in folder.glob("questions-*")) == before


@pytest.mark.skipif(not find_spec("bm25s"), reason="needs the extra 'retrieval'")
def test_an_index_finds_its_passages(thaw: Thaw) -> None:
    index = load_artefact(thaw("passages") / "passages" / "node").path
    config.data_process_resume = False
    found = data.retrieval.HardNegatives(index, count=3)
    (row,) = found([{"question": "word3 x3", "text": "word3 x3"}])
    assert row["negatives"] == ["word3 x10", "word3 x17", "word3 x24"]
