"""Test how much disk the machines of a run hold whose only shared place is a bucket."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import data_register, load_result
from dagster_dataops.checkpoints.places import sent_segments, uploaded_draft
from tests.execution.cluster.fixtures import Apart, Meanwhile, input_of
from tests.execution.cluster.test_bucket_alone import bucket, head, server
from tests.execution.helpers import run
from tests.nodes import NodeFolder, ResumePolicy

__all__ = ["bucket", "server"]

_RECORDS = 3000
_TEXT_BYTES = 100_000
_KEPT_BYTES = 4 << 20
_UNSENT_BYTES = 16 << 20  # of an agent with at most four workers
_BLOCKS_BYTES = 1 << 20  # files of blocks, not of bytes


@data_register("data.over_agents", _concurrency_mode="process", _max_workers=2)
def long(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record with a text of 100 kB."""
    return {"n": record["n"], "text": f"{record['n']:09} " * (_TEXT_BYTES // 10)}


def used(folder: Path) -> int:
    """Return the bytes of disk that the files below a folder take; holes take none."""
    total = 0
    for place, _, names in os.walk(folder):  # without an error if it is deleted meanwhile
        for name in names:
            with suppress(OSError):
                total += (Path(place) / name).stat().st_blocks * 512
    return total


@contextmanager
def most_used(*folders: Path) -> Iterator[dict[Path, int]]:
    """Yield the most bytes that folders, and folders in them, take during the block."""
    most, ended = dict.fromkeys(folders, 0), threading.Event()

    def watch() -> None:
        while not ended.wait(0.01):
            for folder in [*folders, *(one for place in folders for one in place.glob("*/"))]:
                most[folder] = max(most.get(folder, 0), used(folder))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield most
    finally:
        ended.set()
        thread.join()


@pytest.mark.slow
def test_no_machine_holds_more_than_a_part_of_a_result(
    tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The workers make outputs faster than the server takes them."""
    for place, name in ((sent_segments, "KEPT_BYTES"), (uploaded_draft, "LARGE_BYTES")):
        monkeypatch.setattr(place, name, _KEPT_BYTES)
    dataset = input_of(tmp_path, ["keep"] * _RECORDS)
    first, second, agents = (tmp_path / name for name in ("head", "other", "machines"))

    def work(folder: Path, **context: object) -> object:
        cluster = Apart(agents=2, cpus_per_agent=1)
        there = NodeFolder.of(head(folder, bucket) / "long")
        return run(long(), dataset, there, cluster=cluster, resume=ResumePolicy.AUTO, **context)

    def stopped() -> None:
        raise KeyboardInterrupt

    with most_used(first, second, agents) as most:
        with pytest.raises(KeyboardInterrupt):
            work(first, progress=Meanwhile(_RECORDS // 2, stopped))
        before = set(agents.iterdir())  # agents that are stopped write what they have finished
        work(second)
    there = NodeFolder.of(head(tmp_path / "reader", bucket) / "long")
    assert [record["n"] for record in load_result(there).read()] == list(range(_RECORDS))
    result_bytes = _RECORDS * _TEXT_BYTES
    assert all(taken < result_bytes / 3 for taken in most.values()), most
    of_agents = [
        taken for folder, taken in most.items() if folder.parent == agents and folder not in before
    ]
    assert max(of_agents) <= _UNSENT_BYTES + _BLOCKS_BYTES, most
