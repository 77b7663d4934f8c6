"""Tests of dagster_dataops.foundation.places.open_stores."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from dagster_dataops import config
from dagster_dataops.configuration import root_setting
from dagster_dataops.foundation.places import object_store, open_stores
from dagster_dataops.foundation.places.mounted_buckets import bucket_of
from dagster_dataops.foundation.places.open_stores import reading, writing
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
        bucket, _ = bucket_of(path)
        found = list(pool.map(writing, [bucket] * threads))

    assert opened == [False]
    assert {id(store) for store in found} == {id(found[0])}


def test_a_store_that_was_opened_for_reading_is_opened_anew_for_writing(path, opened):
    bucket, _ = bucket_of(path)
    first, second = reading(bucket), writing(bucket)

    assert opened == [True, False]
    assert first is not second
    assert reading(bucket) is second
    assert opened == [True, False]
