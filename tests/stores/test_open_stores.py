"""Tests of dagster_dataops.stores.open_stores."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from dagster_dataops import config
from dagster_dataops.configuration import bucket_of, root_setting
from dagster_dataops.stores import object_store, open_stores
from dagster_dataops.stores.open_stores import reading, store_of
from tests.object_stores import FakeStore


@pytest.fixture
def opened(monkeypatch):
    """Replace stores by stores in memory; return the arguments of each opening."""
    calls = []

    def open_store(bucket, *, read_only=False):
        calls.append(read_only)
        return FakeStore()

    monkeypatch.setattr(object_store, "open_store", open_store)
    return calls


@pytest.fixture
def path(tmp_path):
    with config.temporary(data_process_scratch=tmp_path / "scratch"):
        return root_setting("root", "memory://bucket/root") / "part"


class CountingLock:
    """A lock that counts the threads that have come to it."""

    def __init__(self):
        self._lock = threading.Lock()
        self.came = threading.Semaphore(0)

    def __enter__(self):
        self.came.release()
        self._lock.acquire()

    def __exit__(self, *_):
        self._lock.release()


def test_threads_that_need_a_store_at_once_open_it_once(path, opened, monkeypatch):
    threads, lock, open_store = 8, CountingLock(), object_store.open_store
    monkeypatch.setattr(open_stores, "_OPENING", lock)

    def open_late(bucket, *, read_only):
        if not opened:
            assert all(lock.came.acquire(timeout=60) for _ in range(threads))
        return open_store(bucket, read_only=read_only)

    monkeypatch.setattr(object_store, "open_store", open_late)
    with ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(store_of, [path] * threads))

    assert opened == [False]
    assert {(id(store), key) for store, key in found} == {(id(found[0][0]), "root/part")}


def test_a_store_that_was_opened_for_reading_is_opened_anew_for_writing(path, opened):
    bucket, _ = bucket_of(path)
    first, writing = reading(bucket), store_of(path)

    assert opened == [True, False]
    assert first is not writing[0]
    assert reading(bucket) is writing[0]
    assert opened == [True, False]


def test_a_local_path_has_no_store(tmp_path, opened):
    assert store_of(tmp_path) is None
    assert not opened
