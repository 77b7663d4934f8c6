"""The cache folder of indices is bounded, by last use."""

import os
import time

import pytest

from dagster_dataops import crude
from dagster_dataops.training.filestores.tars.index_cache import cache_folder, locked, sweep
from tests.training.filestores.shards import samples, write_tar

DAY = 24 * 60 * 60


@pytest.fixture
def folder():
    return cache_folder()


def aged(path, days, size=10):
    path.write_bytes(bytes(size))
    used = time.time() - days * DAY
    os.utime(path, (used, used))
    return path


def names(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != ".swept")


def test_files_that_were_not_used_for_a_month_are_deleted(folder):
    for days in (0, 2, 29, 31, 90):
        aged(folder / f"{days}.json", days)
    aged(folder / ".draft-of-a-killed-process", 40)
    sweep(folder)

    assert names(folder) == ["0.json", "2.json", "29.json"]


def test_beyond_the_limit_those_that_were_used_least_recently_are_deleted(folder):
    for days in (0, 2, 3, 4):
        aged(folder / f"{days}.json", days)
    sweep(folder, max_bytes=25)

    assert names(folder) == ["0.json", "2.json"]


def test_files_that_were_used_within_a_day_stay_beyond_the_limit(folder):
    aged(folder / "now.json", 0.5, size=100)
    sweep(folder, max_bytes=1)

    assert names(folder) == ["now.json"]


def test_a_file_that_is_open_stays_until_it_is_dropped(folder):
    opened = locked(aged(folder / "open.index", 90))
    sweep(folder)
    assert names(folder) == ["open.index"]

    os.close(opened)
    (folder / ".swept").unlink()
    sweep(folder)
    assert names(folder) == []


def test_it_is_swept_once_a_day(folder):
    sweep(folder)
    aged(folder / "old.json", 90)
    sweep(folder)

    assert names(folder) == ["old.json"]


def test_a_new_index_sweeps_and_an_old_one_counts_as_used(folder, tmp_path):
    path = write_tar(tmp_path / "a.tar", samples("k", 0, 3))
    assert len(list(crude(path))) == 3
    (folder / ".swept").unlink()
    for known in folder.iterdir():
        os.utime(known, (0, 0))
    assert len(list(crude(path))) == 3
    aged(folder / "old.json", 90)
    assert len(list(crude(write_tar(tmp_path / "b.tar", samples("k", 3, 2))))) == 2

    assert "old.json" not in names(folder)
    assert len(names(folder)) == 3
