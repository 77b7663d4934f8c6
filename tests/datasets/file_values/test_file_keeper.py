"""Tests of the files that operators make below a root in a bucket."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from dagster_dataops.datasets.file_values.file_keeper import FileKeeper
from dagster_dataops.datasets.file_values.result_roots import use_root
from dagster_dataops.errors import FileError, FileNotStoredError, StorageError
from dagster_dataops.files import File, FileReference
from dagster_dataops.foundation.places.bucket import StoreBucket
from dagster_dataops.foundation.places.result_store import Status
from dagster_dataops.foundation.places.root import Root
from tests.object_stores import FakeStore, use


class Slow:
    """A store that takes objects once it may go on."""

    def __init__(self, refuses: bool = False) -> None:
        self.begun, self.may_go_on = threading.Event(), threading.Event()
        self.refuses, self.requests = refuses, 0
        self.objects: dict[str, bytes] = {}

    def read(self, key: str) -> None:
        """Return that there is no such object."""

    def put(self, key: str, data: bytes) -> None:
        self.requests += 1
        self.begun.set()
        assert self.may_go_on.wait(60)
        if self.refuses:
            raise StorageError(key, "write", "no")
        self.objects[key] = data


def keeper_of(store: Any, tmp_path: Path) -> FileKeeper:
    bucket = StoreBucket("s3://slow", tmp_path, {})
    use(bucket, store)
    return FileKeeper(Root(tmp_path / "root", bucket))


def test_nobody_passes_files_that_another_thread_uploads(tmp_path: Path) -> None:
    store = Slow()
    keeper = keeper_of(store, tmp_path)
    reference = keeper.keep(File(b"text"))
    first, second = (threading.Thread(target=keeper.sync) for _ in range(2))
    first.start()
    assert store.begun.wait(60)
    second.start()
    second.join(0.3)
    passed = not second.is_alive()
    store.may_go_on.set()
    first.join()
    second.join()

    assert not passed
    assert store.objects == {f"root/{reference['file']}": b"text"}


def test_a_store_that_refuses_files_stops_the_run_and_they_are_sent_again(tmp_path: Path) -> None:
    store = Slow(refuses=True)
    store.may_go_on.set()
    keeper = keeper_of(store, tmp_path)
    reference = keeper.keep(File(b"text"))
    with pytest.raises(FileNotStoredError):
        keeper.sync()
    store.refuses = False
    keeper.sync()

    assert store.objects == {f"root/{reference['file']}": b"text"}


def test_a_file_is_sent_once(tmp_path: Path) -> None:
    store = Slow()
    store.may_go_on.set()
    keeper = keeper_of(store, tmp_path)
    for _ in range(3):
        keeper.keep(File(b"text"))
        keeper.sync()
        keeper.keep(File(b"more"))
    keeper.sync()

    assert len(store.objects) == store.requests == 2


class Watched(FakeStore):
    """A store that notes which objects are opened."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []

    @override
    def read_start(self, key: str, length: int) -> tuple[Status, bytes] | None:
        self.opened.append(key)
        return super().read_start(key, length)


@contextmanager
def out_of_reach() -> Iterator[None]:
    raise StorageError("s3://slow", "read", "connection refused")
    yield


def test_a_stored_object_is_opened_once_and_a_store_out_of_reach_is_named(tmp_path: Path) -> None:
    store = Watched()
    keeper = keeper_of(store, tmp_path)
    reference = keeper.keep(File(b"text"))
    keeper.sync()
    use_root(keeper.root)
    assert FileReference.of(reference).read() == b"text"
    assert store.opened == [f"root/{reference['file']}"]

    store.request = out_of_reach
    with pytest.raises(FileError, match="s3://slow/root cannot be read: connection refused"):
        FileReference.of(reference).read()
