"""Processes that share a file cache are killed: no wrong byte, no exceeded limit."""

import logging
import multiprocessing
import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import FileStoreCachePool
from tests.faults.cases import cases
from tests.training.file_stores import FolderStore

_LOGGER = logging.getLogger(__name__)
PROCESSES = 8
FILES = 60
KILLS = cases(12, campaign=300)
LIMIT = 400 << 10
LARGEST = 41 << 10


def content(number: int) -> bytes:
    return random.Random(number).randbytes((number % 40 + 1) << 10)


def read_for_ever(cache: str, store: str, seed: int, reads: Any, wrong: Any) -> None:
    chance = random.Random(seed)
    pool = FileStoreCachePool(
        parent_cache_dir=cache, num_workers=2, max_cache_size_gbytes=LIMIT / 1024**3
    )
    files = FolderStore(store)
    while True:
        numbers = chance.sample(range(FILES), 5)
        lazy = [pool.get_lazy(files, f"{number}.bin") for number in numbers]
        for number, one in zip(numbers, lazy, strict=True):
            if one.get() != content(number):
                wrong.value += 1
            reads.value += 1


def size_of(cache: Path) -> int:
    return sum(path.stat().st_size for path in cache.rglob("*") if path.is_file())


@contextmanager
def stopped(processes: list[Any]) -> Iterator[None]:
    """Stop all threads of the processes, so that no file changes while the folder is measured."""
    for process in processes:
        os.kill(process.pid, signal.SIGSTOP)
    for process in processes:
        while not all(state_of(task) in "TZX" for task in tasks_of(process.pid)):
            time.sleep(0.0005)
    try:
        yield
    finally:
        for process in processes:
            os.kill(process.pid, signal.SIGCONT)


def tasks_of(pid: int) -> list[Path]:
    return list(Path(f"/proc/{pid}/task").iterdir())


def state_of(task: Path) -> str:
    try:
        return Path(task, "stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # the thread has ended
        return "X"


@pytest.mark.slow
def test_killed_processes_leave_a_cache_without_wrong_bytes_and_within_its_limit(
    tmp_path: Path,
) -> None:
    store, cache = tmp_path / "store", tmp_path / "cache"
    store.mkdir()
    for number in range(FILES):
        (store / f"{number}.bin").write_bytes(content(number))
    context = multiprocessing.get_context("forkserver")
    reads, wrong = context.Value("q", 0, lock=False), context.Value("q", 0, lock=False)

    def started(seed: int) -> Any:
        arguments = (str(cache), str(store), seed, reads, wrong)
        process = context.Process(target=read_for_ever, args=arguments, daemon=True)
        process.start()
        return process

    chance, largest = random.Random(1), 0
    running = [started(seed) for seed in range(PROCESSES)]
    try:
        while not reads.value:
            time.sleep(0.01)
        for kill in range(KILLS):
            at = chance.randrange(PROCESSES)
            before, until = reads.value, time.monotonic() + chance.random() / 5
            while time.monotonic() < until or reads.value == before:
                with stopped(running):
                    largest = max(largest, size_of(cache))
                time.sleep(0.005)
            os.kill(running[at].pid, signal.SIGKILL)
            running[at].join()
            running[at] = started(100 + kill)
    finally:
        for process in running:
            process.kill()
            process.join()

    _LOGGER.info("%s reads, %s kills, at most %s bytes", reads.value, KILLS, largest)
    assert wrong.value == 0
    assert largest <= LIMIT + LARGEST
    pool = FileStoreCachePool(
        parent_cache_dir=cache, num_workers=1, max_cache_size_gbytes=LIMIT / 1024**3
    )
    files = FolderStore(str(store))
    for number in range(FILES):
        assert pool.get_lazy(files, f"{number}.bin").get() == content(number)
    pool.close()
    assert size_of(cache) <= LIMIT + 16
