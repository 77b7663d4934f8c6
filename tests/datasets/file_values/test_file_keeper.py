"""Tests of the files that operators make below a root in a bucket."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from dagster_dataops import config
from dagster_dataops.datasets.file_values.file_keeper import FileKeeper
from dagster_dataops.datasets.file_values.result_roots import roots, use_root, use_roots_above
from dagster_dataops.errors import FileError, FileNotStoredError, StorageError
from dagster_dataops.files import File, FileReference
from dagster_dataops.foundation.places.bucket import BucketFile, StoreBucket
from dagster_dataops.foundation.places.result_store import Status
from dagster_dataops.foundation.places.root import Root
from tests.each import each
from tests.execution.helpers import node, operator_for, run, write_input
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


@each("in_bucket", [False, True])
def test_a_file_can_be_read_while_another_run_stores_it_again(
    tmp_path: Path, in_bucket: bool
) -> None:
    data = bytes(range(256)) * 2000  # an object of this size is read by several requests
    keeper = FileKeeper(Root(tmp_path / "root"))
    if in_bucket:
        keeper = keeper_of(FakeStore(), tmp_path)  # each object has another version
    reference = FileReference.of(keeper.keep(File(data)))
    keeper.sync()
    use_root(keeper.root)
    with reference.open() as file:
        found = file.read(1000)
        again = FileKeeper(keeper.root)
        again.keep(File(data))
        again.sync()
        found += file.read()
    assert found == data


def test_the_roots_that_were_used_last_are_known_and_no_others(tmp_path: Path) -> None:
    for number in range(1000):
        use_root(Root(tmp_path / str(number)))

    with config.temporary(data_process_path=tmp_path / "999"):
        found = [int(root.path.name) for root in roots()]
    assert found == list(range(999, 999 - len(found), -1))
    assert len(found) < 100


def test_a_root_that_is_used_again_stays_known(tmp_path: Path) -> None:
    (tmp_path / "first" / "files").mkdir(parents=True)
    for number in range(1000):
        use_roots_above(tmp_path / "first" / "node" / "node_results.jsonl")
        use_root(Root(tmp_path / str(number)))

    assert Root(tmp_path / "first") in roots()


def test_the_root_of_a_run_is_searched_before_those_of_its_inputs(tmp_path: Path) -> None:
    (tmp_path / "inputs" / "files").mkdir(parents=True)
    inputs = write_input(tmp_path / "inputs" / "a" / "a.jsonl", [{"kind": "dict"}])
    run(operator_for("single", 1), inputs, node(tmp_path, "b"), root=str(tmp_path / "root"))

    first, *others = (Path(root.path) for root in roots())
    assert first == tmp_path / "root"
    assert tmp_path / "inputs" in others


def test_each_prefix_of_a_result_in_a_bucket_may_be_a_root(tmp_path: Path) -> None:
    bucket = StoreBucket("s3://b", tmp_path, {})
    use_roots_above(BucketFile(bucket, "root/node/.versions/1/node_results.jsonl"))

    assert {Root(tmp_path, bucket), Root(tmp_path / "root", bucket)} <= set(roots())
