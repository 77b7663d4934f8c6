"""Tests of prune over a bucket: folders of no asset or partition, also while runs are at work."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import config, data_register, load_result
from dagster_dataops.assets.pruning import prune
from dagster_dataops.checkpoints.places.shipped_journal import ShippedJournal
from dagster_dataops.errors import FolderLockedError, LostError
from tests.command_line import main
from tests.execution.helpers import node, run, write_input
from tests.nodes import NodeFolder, Root
from tests.object_stores import FakeStore, machine

CODE = """
import dagster as dg
from dagster_dataops import DataOpsResource, build_definitions, data, pipeline

with pipeline("docs") as ppl:
    ppl.clean = data.text.Normalize(input_key="text")

parts = {partitions}
defs = build_definitions(
    ppl,
    source={source!r},
    resource=DataOpsResource(root="memory://bucket/root"),
    partitions_def=parts,
)
"""
HOUR = 3600


@data_register("data.prune_tests", _concurrency_mode="single")
def work(record: dict) -> Any:
    return record


@pytest.fixture
def store() -> FakeStore:
    return FakeStore()


@pytest.fixture
def root(tmp_path: Path, store: FakeStore) -> Iterator[Root]:
    """Yield the root of results on this machine."""
    scratch = tmp_path / "scratch"
    with config.temporary(data_process_scratch=scratch):
        yield machine(scratch, store)


@pytest.fixture
def location(tmp_path: Path) -> str:
    file = tmp_path / "location.py"
    file.write_text(CODE.format(partitions=None, source=str(tmp_path / "in.jsonl")))
    return str(file)


def made(folder: NodeFolder, **context: Any) -> None:
    """Publish a result in a folder."""
    dataset = write_input(config.data_process_scratch / "in.jsonl", [{"n": n} for n in range(9)])
    run(work(), dataset, folder, **context)


def aged(store: FakeStore, hours: float) -> None:
    """Let every object be older."""
    store.modified = {key: at - hours * HOUR for key, at in store.modified.items()}


def wait_until_all_is_sent(store: FakeStore) -> None:
    """Wait until nothing more is sent beside the records."""
    before = -1
    while before != len(store.objects):
        before = len(store.objects)
        time.sleep(0.2)


def pruned(location: str, *, delete: bool = False) -> list[str]:
    found, _ = prune("memory://bucket/root", files=[location], delete=delete)
    return [one.path.name for one in found]


def test_folders_of_no_asset_are_listed_and_deleted(
    root: Root, store: FakeStore, location: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made(node(root / "docs", "clean"), whole_result_mb=0)
    made(node(root / "docs", "gone"), whole_result_mb=0)
    kept = {key for key in store.objects if "/gone/" not in key}
    assert pruned(location) == ["gone"]
    aged(store, 2)
    assert main(["prune", "memory://bucket/root", "-f", location, "--yes"]) == 0
    assert "docs/gone" in capsys.readouterr().out

    assert {key for key in store.objects if "/gone/" not in key} == kept
    (entry,) = store.objects.keys() - kept  # it ends runs that are at work
    assert "/.journal/" in entry
    assert pruned(location) == []
    aged(store, 8 * 24)
    assert pruned(location, delete=True) == ["gone"]
    assert store.objects.keys() == kept
    assert load_result(node(root / "docs", "clean")).rows == 9


def test_partitions_that_are_no_more_are_listed(
    root: Root, store: FakeStore, tmp_path: Path
) -> None:
    file = tmp_path / "location.py"
    parts = 'dg.StaticPartitionsDefinition(["a"])'
    file.write_text(CODE.format(partitions=parts, source=str(tmp_path / "{partition}.jsonl")))
    partitions = root / "docs" / "clean" / "partitions"
    for name in ("a", "b"):
        made(NodeFolder.of(partitions / name, "clean"))
    assert pruned(str(file)) == ["b"]


def test_a_run_that_wrote_lately_keeps_its_folder(
    root: Root, store: FakeStore, location: str
) -> None:
    made(node(root / "docs", "clean"))
    made(node(root / "docs", "gone"))
    with pytest.raises(FolderLockedError, match="counts as at work for an hour"):
        pruned(location, delete=True)
    assert load_result(node(root / "docs", "gone")).rows == 9


def test_a_run_that_goes_on_in_a_deleted_folder_publishes_nothing(
    root: Root, store: FakeStore, location: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its outputs were deleted. It wrote nothing for hours, as an operator may take so long."""
    made(node(root / "docs", "clean"))
    monkeypatch.setattr(ShippedJournal, "least_seconds", 0)
    calls = []

    def entries() -> list[str]:
        return [key for key in store.objects if "/gone/.journal/0" in key]

    @data_register("data.prune_tests", _concurrency_mode="thread", _max_workers=1)
    def slow(record: dict) -> Any:
        calls.append(record)
        until = time.monotonic() + 20
        while len(calls) == 5 and len(entries()) < 2 and time.monotonic() < until:
            time.sleep(0.01)  # the records before are sent beside
        if len(calls) == 9:
            wait_until_all_is_sent(store)
            aged(store, 2)
            assert pruned(location, delete=True) == ["gone"]
        return record

    there = machine(tmp_path / "there", store) / "docs"
    dataset = write_input(tmp_path / "other.jsonl", [{"n": n} for n in range(9)])
    with pytest.raises(LostError):
        run(
            slow(_ignore_errors=False),
            dataset,
            node(there, "gone"),
            flush_seconds=0,
            whole_result_mb=0,
        )
    left = [key for key in store.objects if "/gone/" in key and "/.journal/" not in key]
    assert left == []
