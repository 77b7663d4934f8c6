"""Tests that a run whose results are in a bucket holds few outputs that are not sent."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from dagster_dataops import JsonlDataset, data_register, load_result
from dagster_dataops.errors import StorageError
from tests.each import slow_but
from tests.execution.helpers import MODES, Listener, node, run, write_input
from tests.nodes import NodeFolder, ProgressState, ResumePolicy, given_stream
from tests.object_stores import FakeStore, leave_unsent_at_most, machine

_RECORDS = 200
_TEXT_BYTES = 100_000
_MOST_BYTES = 8_000_000
_SPAN_BYTES = 6 << 20  # are written at once: 4 MiB, and a slice of records that exceeds them
_BLOCK_BYTES = 256 << 10  # of a stream, are written at once
_QUIET_SECONDS = 0.15


def _long(n: int) -> dict[str, Any]:
    return {"n": n, "text": f"{n:09} " * (_TEXT_BYTES // 10)}


@data_register("data.unsent", _max_workers=2)
def long(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record with a text of 100 kB."""
    return _long(record["n"])


@data_register("data.unsent", _max_workers=2)
async def long_async(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record with a text of 100 kB."""
    return _long(record["n"])


class _Slow(FakeStore):
    """A store that takes outputs only when the run makes no more.

    Args:
        scratch: The folder of the machine.

    Attributes:
        most_unsent: The most bytes of outputs that waited to be sent.
    """

    def __init__(self, scratch: Path) -> None:
        super().__init__()
        self._scratch = scratch
        self._sent = self.most_unsent = 0

    def forget(self) -> None:
        """Begin to count anew, after a run."""
        self._sent = self.most_unsent = 0

    @override
    def put(self, key: str, data: bytes) -> None:
        if "/data/" in key:
            size, changed = -1, time.monotonic()
            while time.monotonic() < changed + _QUIET_SECONDS:
                now = sum(file.stat().st_size for file in self._scratch.rglob("segment-*.jsonl"))
                if now != size:
                    size, changed = now, time.monotonic()
                time.sleep(0.005)
            self.most_unsent = max(self.most_unsent, size - self._sent)
            self._sent += len(data)
        super().put(key, data)


class _Unreachable(FakeStore):
    """A store that takes no outputs while it is down.

    Attributes:
        down: Whether it is.
        asked: Whether it was to take outputs.
        answers: Whether it refuses them; before, it gives no answer.
    """

    def __init__(self) -> None:
        super().__init__()
        self.down = True
        self.asked, self.answers = threading.Event(), threading.Event()

    @override
    def put(self, key: str, data: bytes) -> None:
        if "/data/" in key and self.down:
            self.asked.set()
            self.answers.wait()
            raise StorageError(key, "write", "the store is down")
        super().put(key, data)


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JsonlDataset:
    leave_unsent_at_most(monkeypatch, _MOST_BYTES)
    return write_input(tmp_path / "input.jsonl", [{"n": n} for n in range(_RECORDS)])


def _stream(dataset: JsonlDataset) -> Any:
    return given_stream(
        "stream", lambda: dataset.stream().map(lambda record: _long(record["n"])).and_return()
    )


def _operator(mode: str) -> Any:
    return (long_async if mode == "async" else long)(_concurrency_mode=mode)


def _assert_whole(folder: NodeFolder) -> None:
    records = [(record["n"], len(record["text"])) for record in load_result(folder).read()]
    assert records == [(n, _TEXT_BYTES) for n in range(_RECORDS)]


@pytest.mark.parametrize("mode", slow_but("thread", MODES))
def test_calls_wait_while_many_outputs_are_not_sent(
    mode: str, tmp_path: Path, dataset: JsonlDataset
) -> None:
    store = _Slow(tmp_path / "scratch")
    folder = node(machine(tmp_path / "scratch", store) / "docs" / "node")

    run(_operator(mode), dataset, folder)

    _assert_whole(folder)
    assert 0 < store.most_unsent <= _MOST_BYTES + _SPAN_BYTES + _TEXT_BYTES


def test_a_stream_waits_while_many_of_its_items_are_not_sent(
    tmp_path: Path, dataset: JsonlDataset
) -> None:
    store = _Slow(tmp_path / "scratch")
    folder = node(machine(tmp_path / "scratch", store) / "docs" / "node")

    run(_stream(dataset), [], folder)

    _assert_whole(folder)
    assert 0 < store.most_unsent <= _MOST_BYTES + _MOST_BYTES // 4 + 2 * _TEXT_BYTES + _BLOCK_BYTES


def test_a_stream_whose_items_wait_can_be_interrupted_and_ends_while_the_store_is_down(
    tmp_path: Path, dataset: JsonlDataset
) -> None:
    store = _Unreachable()
    folder = node(machine(tmp_path / "scratch", store) / "docs" / "node")
    threading.Timer(_QUIET_SECONDS, store.answers.set).start()
    with pytest.raises(StorageError, match="the store is down"):
        run(_stream(dataset), [], folder)
    store.down = False
    run(_stream(dataset), [], folder, resume=ResumePolicy.AUTO)
    _assert_whole(folder)


def test_kept_outcomes_wait_while_many_of_them_are_not_sent(
    tmp_path: Path, dataset: JsonlDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So do those of a result that is not used where it is, such as one with several outputs."""
    claim = "dagster_dataops.checkpoints.places.bucket_claim.BucketClaim"
    monkeypatch.setattr(f"{claim}.take_result", lambda *_: False)
    store = _Slow(tmp_path / "scratch")
    folder = node(machine(tmp_path / "scratch", store) / "docs" / "node")
    run(long(_reuse_outcomes=True, _concurrency_mode="single"), dataset, folder)
    more = dataset.path.with_name("more.jsonl")
    more.write_bytes(dataset.path.read_bytes() + b'{"n":200}\n')

    store.forget()
    run(
        long(_reuse_outcomes=True, _concurrency_mode="single"),
        JsonlDataset.of_file(more),
        folder,
        resume=ResumePolicy.AUTO,
    )

    assert len(load_result(folder).read()) == _RECORDS + 1
    assert 0 < store.most_unsent <= _MOST_BYTES + _SPAN_BYTES + _TEXT_BYTES


@pytest.mark.parametrize("mode", slow_but("thread", MODES))
def test_a_run_whose_outputs_wait_can_be_interrupted(
    mode: str, tmp_path: Path, dataset: JsonlDataset
) -> None:
    """The store is down; the next run finishes the rest."""
    store = _Unreachable()
    folder = node(machine(tmp_path / "scratch", store) / "docs" / "node")

    class Interrupts(Listener):
        @override
        def update(self, state: ProgressState) -> None:
            if store.asked.is_set():
                store.down = False  # for the last try to send the outputs
                store.answers.set()
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(_operator(mode), dataset, folder, progress=Interrupts())

    run(_operator(mode), dataset, folder, resume=ResumePolicy.AUTO)
    _assert_whole(folder)


@pytest.mark.parametrize("mode", slow_but("thread", MODES))
def test_a_store_that_is_down_ends_a_run_whose_outputs_wait(
    mode: str, tmp_path: Path, dataset: JsonlDataset
) -> None:
    store = _Unreachable()
    folder = node(machine(tmp_path / "scratch", store) / "docs" / "node")
    threading.Timer(_QUIET_SECONDS, store.answers.set).start()

    with pytest.raises(StorageError, match="the store is down"):
        run(_operator(mode), dataset, folder)
