import gc
import logging
import multiprocessing
import os
import pickle
import threading
from contextlib import closing
from pathlib import Path

import orjson
import pytest

from dagster_dataops import FileStoreCachePool, NoCachePool
from dagster_dataops.errors import AuxFileMissingError, ConfigurationError
from tests.lazy_records import with_lazy_files
from tests.training.file_stores import FolderStore
from tests.training.filestores.shards import write_tar

KILOBYTE = 1 / 1024**2


class CountingStore(FolderStore):
    """A folder that counts its reads, and can wait or fail."""

    def __init__(self, path):
        super().__init__(str(path))
        self.reads = []
        self.error = None
        self.gate = threading.Event()
        self.gate.set()

    def read(self, name):
        self.gate.wait(60)
        self.reads.append(name)
        if self.error is not None:
            raise self.error
        return super().read(name)


@pytest.fixture
def store(tmp_path):
    folder = tmp_path / "store"
    folder.mkdir()
    for number in range(8):
        (folder / f"{number}.txt").write_bytes(f"{number}".encode() * 10_000)
    return CountingStore(folder)


@pytest.fixture
def pool(tmp_path):
    with FileStoreCachePool(parent_cache_dir=tmp_path / "cache", num_workers=2) as made:
        yield made


def content(number):
    return f"{number}".encode() * 10_000


def cached(tmp_path):
    paths = (tmp_path / "cache" / "v1").rglob("*")
    return [path for path in paths if path.is_file() and path.name != "account"]


def test_a_lazy_file_is_read_once_and_stays_for_later_pools(store, pool, tmp_path):
    lazy = pool.get_lazy(store, "1.txt")

    assert (lazy.get(), lazy.get()) == (content(1), content(1))
    with FileStoreCachePool(parent_cache_dir=str(tmp_path / "cache")) as other:
        assert other.get_lazy(store, "1.txt").get() == content(1)
    assert store.reads == ["1.txt"]


def test_a_source_is_recorded_once_and_is_that_of_the_store(store, pool):
    lazy = pool.get_lazy(store, "1.txt")
    sample, read = {}, {}
    lazy.get(sample)
    lazy.get(sample)
    store.get("1.txt", read)

    assert sample == read
    assert len(sample["__sources__"]) == 1
    again = {}
    pool.get_lazy(store, "1.txt").get(again)
    assert again == read


def test_a_file_that_waits_for_a_thread_is_read_by_the_caller(store, tmp_path):
    with FileStoreCachePool(parent_cache_dir=tmp_path / "cache", num_workers=1) as pool:
        store.gate.clear()
        lazy = [pool.get_lazy(store, f"{number}.txt") for number in range(3)]
        threading.Timer(0.05, store.gate.set).start()

        assert lazy[2].get() == content(2)
        assert [one.get() for one in lazy] == [content(0), content(1), content(2)]
    assert sorted(store.reads) == ["0.txt", "1.txt", "2.txt"]


def test_threads_that_ask_for_one_file_share_a_read(store, pool):
    store.gate.clear()
    lazy = [pool.get_lazy(store, "5.txt") for _ in range(5)]
    store.gate.set()

    assert {one.get() for one in lazy} == {content(5)}
    assert store.reads == ["5.txt"]


def test_equal_names_of_two_stores_are_two_files(store, pool, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "1.txt").write_text("other")

    assert pool.get_lazy(store, "1.txt").get() == content(1)
    assert pool.get_lazy(FolderStore(str(other)), "1.txt").get() == b"other"


def test_the_least_recently_used_files_make_room(store, tmp_path):
    pool = FileStoreCachePool(
        parent_cache_dir=tmp_path / "cache", num_workers=1, max_cache_size_gbytes=35 * KILOBYTE
    )
    for number in range(8):
        assert pool.get_lazy(store, f"{number}.txt").get() == content(number)
        assert sum(path.stat().st_size for path in cached(tmp_path)) <= 35 * 1024
    store.reads.clear()

    assert pool.get_lazy(store, "7.txt").get() == content(7)
    assert pool.get_lazy(store, "0.txt").get() == content(0)
    assert store.reads == ["0.txt"]
    pool.close()


def test_a_number_of_files_is_a_limit_too(store, tmp_path):
    with FileStoreCachePool(parent_cache_dir=tmp_path / "cache", max_cache_count=2) as pool:
        for number in range(8):
            assert pool.get_lazy(store, f"{number}.txt").get() == content(number)
            assert len(cached(tmp_path)) <= 2


def test_a_file_above_the_limit_is_read_from_the_store(store, tmp_path):
    with FileStoreCachePool(
        parent_cache_dir=tmp_path / "cache", max_cache_size_gbytes=KILOBYTE
    ) as pool:
        assert pool.get_lazy(store, "1.txt").get() == content(1)
    assert not cached(tmp_path)


@pytest.mark.parametrize("damage", [b"", b"x" * 9, None])
def test_a_damaged_or_deleted_file_is_read_again(store, pool, tmp_path, damage):
    pool.get_lazy(store, "1.txt").get()
    (path,) = cached(tmp_path)
    lazy = pool.get_lazy(store, "1.txt")
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage + path.read_bytes()[len(damage) + 1 :])

    assert lazy.get() == content(1)
    assert store.reads == ["1.txt", "1.txt"]


def test_a_cache_that_cannot_be_written_is_no_error(store, tmp_path, caplog):
    (tmp_path / "cache").write_text("a file in place of the folder")
    with (
        caplog.at_level(logging.WARNING),
        FileStoreCachePool(parent_cache_dir=tmp_path / "cache") as pool,
    ):
        found = [pool.get_lazy(store, f"{number}.txt").get() for number in range(3)]

    assert found == [content(number) for number in range(3)]
    assert len(caplog.records) == 1


def test_a_failed_read_is_tried_again_by_the_caller(store, pool):
    store.error = OSError("gone")
    lazy = pool.get_lazy(store, "1.txt")
    with pytest.raises(OSError, match="gone"):
        lazy.get()
    store.error = None

    assert lazy.get() == content(1)
    with pytest.raises(AuxFileMissingError):
        pool.get_lazy(store, "nowhere.txt").get()


def test_a_closed_pool_reads_the_store(store, pool):
    lazy = pool.get_lazy(store, "1.txt")
    pool.close()

    assert lazy.get() == content(1)
    assert pool.get_lazy(store, "2.txt").get() == content(2)


def test_keep_false_deletes_only_the_own_files(store, pool, tmp_path):
    pool.get_lazy(store, "1.txt").get()
    with FileStoreCachePool(parent_cache_dir=tmp_path / "cache", keep=False) as other:
        other.get_lazy(store, "1.txt").get()
        other.get_lazy(store, "2.txt").get()
        assert len(cached(tmp_path)) == 2

    assert len(cached(tmp_path)) == 1


def _read(pool, store):
    pool.get_lazy(store, "2.txt").get()
    pool.close()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_keep_false_deletes_the_files_of_copies_in_other_processes(store, tmp_path, method):
    store = FolderStore(store.path)
    pool = FileStoreCachePool(parent_cache_dir=tmp_path / "cache", keep=False)
    pool.get_lazy(store, "1.txt").get()
    pickle.loads(pickle.dumps(pool)).close()
    process = multiprocessing.get_context(method).Process(target=_read, args=(pool, store))
    process.start()
    process.join()
    assert len(cached(tmp_path)) == 2

    pool.close()
    assert cached(tmp_path) == list((tmp_path / "cache").glob(".written*")) == []


@pytest.mark.slow
def test_keep_false_deletes_the_files_with_the_pool(store, tmp_path):
    pool = FileStoreCachePool(parent_cache_dir=tmp_path / "cache", keep=False)
    pool.get_lazy(store, "1.txt").get()
    del pool
    gc.collect()

    assert cached(tmp_path) == []


def test_a_changed_store_has_other_files(store, pool):
    assert pool.get_lazy(store, "1.txt").get() == content(1)
    Path(store.path, "1.txt").write_text("changed, and of another size")

    assert pool.get_lazy(FolderStore(store.path), "1.txt").get() == b"changed, and of another size"


@pytest.mark.parametrize("kind", ["file", "none"])
def test_a_lazy_file_survives_json_and_pickle(store, tmp_path, kind):
    pool = FileStoreCachePool(parent_cache_dir=tmp_path / "c") if kind == "file" else NoCachePool()
    plain = FolderStore(store.path)
    lazy = pool.get_lazy(plain, "3.txt")
    line = orjson.dumps({"text": "x", "media": lazy, "other": {"~lazy": 1, "more": 2}})
    record = with_lazy_files(orjson.loads(line))

    assert orjson.loads(line)["media"] == {"~lazy": [f"filesystem://{store.path}", "3.txt"]}
    assert record["media"] == lazy
    assert record["media"].get() == content(3)
    assert record["other"] == {"~lazy": 1, "more": 2}
    assert pickle.loads(pickle.dumps(lazy)).get() == content(3)
    assert orjson.dumps(record) == line
    pool.close()


def test_a_lazy_file_of_a_result_is_read_from_the_store_that_replaced_the_first(tmp_path):
    def lazy():
        return with_lazy_files({"media": {"~lazy": [str(tmp_path / "s.tar"), "a.txt"]}})["media"]

    write_tar(tmp_path / "s.tar", [("a.txt", b"one")])
    assert lazy().get() == b"one"
    write_tar(tmp_path / "new.tar", [("b.txt", b"x" * 5000), ("a.txt", b"another")])
    (tmp_path / "new.tar").replace(tmp_path / "s.tar")
    assert lazy().get() == b"another"


def _read_all(pool, path, numbers, wrong):
    store = FolderStore(path)
    for number in numbers:
        if pool.get_lazy(store, f"{number}.txt").get() != content(number):
            wrong.put(number)
    wrong.put("done")
    wrong.close()
    wrong.join_thread()
    os._exit(0)


def test_forked_processes_share_the_folder(store, pool, tmp_path):
    store.gate.set()
    plain = FolderStore(store.path)
    for number in range(4):
        pool.get_lazy(plain, f"{number}.txt").get()
    context = multiprocessing.get_context("forkserver")
    wrong = context.Queue()
    children = [
        context.Process(target=_read_all, args=(pool, store.path, list(range(8)), wrong))
        for _ in range(2)
    ]
    for child in children:
        child.start()
    found = [wrong.get(timeout=120) for _ in children]
    for child in children:
        child.join()

    assert found == ["done", "done"]
    assert len(cached(tmp_path)) == 8


@pytest.mark.parametrize(
    "options",
    [
        {"num_workers": 0},
        {"num_workers": "2"},
        {"max_cache_size_gbytes": -1},
        {"max_cache_size_gbytes": float("nan")},
        {"method": "zip"},
        {"parent_cache_dir": "s3://bucket"},
    ],
)
def test_invalid_options_are_refused(options):
    with pytest.raises(ConfigurationError):
        FileStoreCachePool(**options)


def blocks_of(number, failure=None):
    for start in range(0, 10_000, 1000):
        yield content(number)[start : start + 1000]
    if failure is not None:
        raise failure


def test_a_file_that_arrives_in_blocks_is_read_by_ranges(pool, store, tmp_path):
    assert pool.find_file(store, "1.txt") is None
    assert b"".join(pool.keeping(store, "1.txt", blocks_of(1))) == content(1)
    with closing(pool.find_file(store, "1.txt")) as file:
        assert (file.size, file.read(5, 9998), file.read(4, 20_000)) == (10_000, b"11", b"")
    assert pool.find(store, "1.txt")[0] == content(1)  # the same form
    pool.read(store, "2.txt", None)
    with closing(pool.find_file(store, "2.txt")) as file:
        assert file.size == 10_000
    assert len(cached(tmp_path)) == 2


def test_a_file_that_is_not_whole_is_not_kept(pool, store, tmp_path):
    with pytest.raises(OSError, match="broken"):
        list(pool.keeping(store, "1.txt", blocks_of(1, OSError("broken"))))
    next(pool.keeping(store, "1.txt", blocks_of(1)))  # the reader stops
    assert pool.find_file(store, "1.txt") is None
    assert not cached(tmp_path)


def test_a_file_that_was_damaged_is_not_read_by_ranges(pool, store, tmp_path):
    list(pool.keeping(store, "1.txt", blocks_of(1)))
    (path,) = cached(tmp_path)
    damaged = path.read_bytes()
    for other in (b"2" + damaged[1:], damaged[:-1], damaged[100:], b""):
        path.unlink()
        path.write_bytes(other)
        assert pool.find_file(store, "1.txt") is None


def test_a_disk_that_refuses_an_arriving_file_is_no_error(pool, store, tmp_path, caplog):
    (tmp_path / "cache").write_text("a file where the folder should be")
    for _ in range(2):
        assert b"".join(pool.keeping(store, "1.txt", blocks_of(1))) == content(1)
    assert sum("cannot be written" in record.getMessage() for record in caplog.records) == 1


def test_an_eviction_deletes_parts_of_killed_processes_and_spares_those_in_use(store, tmp_path):
    place = tmp_path / "cache"
    with FileStoreCachePool(parent_cache_dir=place, max_cache_size_gbytes=25_000 / 2**30) as pool:
        arriving = pool.keeping(store, "1.txt", blocks_of(1))
        next(arriving)
        (part,) = cached(tmp_path)
        killed = part.with_name(".part-of-a-killed-process")
        killed.write_bytes(b"x" * 1000)
        for number in (2, 3, 4):
            pool.read(store, f"{number}.txt", None)
        assert not killed.exists()
        assert part.exists()
        assert b"".join(arriving) == content(1)[1000:]
        with closing(pool.find_file(store, "1.txt")) as file:
            assert file.size == 10_000
        assert sum(path.stat().st_size for path in cached(tmp_path)) <= 25_000
