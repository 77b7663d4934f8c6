"""Tests of operators that damage their worker process: each costs at most its own record."""

import errno
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import orjson
import pytest

from dagster_dataops.data import data_register
from dagster_dataops.errors import StorageError
from dagster_dataops.execution.workers.fitness import Fitness
from tests.each import each
from tests.execution.engine import Stretch, failure_of
from tests.execution.helpers import error_rows, node, run, run_over, write_input

_COUNT: Final = 40
_RUDE: Final = 23
_FIRST_OWN: Final = 3  # the lowest descriptor that is not a standard stream


def _lower(limit: int, soft: int) -> None:
    resource.setrlimit(limit, (soft, resource.getrlimit(limit)[1]))


def _close_files(name: str) -> None:
    for path in list(Path("/proc/self/fd").iterdir()):
        with suppress(OSError):
            if name in path.readlink().name:
                os.close(int(path.name))


def _goes_to_a_deleted_folder() -> None:
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    Path(folder).rmdir()


DEEDS: Final[dict[str, Callable[[], object]]] = {
    "few files": lambda: _lower(resource.RLIMIT_NOFILE, 5),
    "no files": lambda: _lower(resource.RLIMIT_NOFILE, 0),
    "small files": lambda: _lower(resource.RLIMIT_FSIZE, 1000),
    "no file size": lambda: _lower(resource.RLIMIT_FSIZE, 0),
    "little memory": lambda: _lower(resource.RLIMIT_AS, 1 << 20),
    "no processes": lambda: _lower(resource.RLIMIT_NPROC, 1),
    "closed segments": lambda: _close_files("segment"),
    "closed input": lambda: _close_files("input.jsonl"),
    "closed files": lambda: os.closerange(_FIRST_OWN, 256),
    "blocked signals": lambda: signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals()),
    "ignored signals": lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN),
    "deleted folder": _goes_to_a_deleted_folder,
    "no rights": lambda: os.umask(0o777),
    "nice": lambda: os.nice(5),
    "no environment": os.environ.clear,
    "no output": lambda: setattr(sys, "stdout", None),
    "broken output": lambda: setattr(sys, "stderr", object()),
}
_deed = ["few files"]


@data_register("data.fitness", _concurrency_mode="process", _max_workers=2)
def opens(record, deed: str):
    if record["n"] == _RUDE:
        DEEDS[deed]()
    with Path(os.devnull).open("rb"):  # as an operator that reads a file for each record
        return {**record, "text": "x" * 2000}


@pytest.mark.slow
@each("deed", DEEDS)
def test_a_worker_that_is_damaged_costs_at_most_the_record(tmp_path: Path, deed: str) -> None:
    place = tmp_path / deed.replace(" ", "_")
    place.mkdir()
    dataset = write_input(place / "input.jsonl", [{"n": n} for n in range(_COUNT)])
    folder = node(place)
    run(opens(deed=deed), dataset, folder)
    kept = [orjson.loads(line)["n"] for line in folder.result.read_bytes().splitlines()]
    failed = [row["index"] for row in error_rows(folder)]
    assert [n for n in kept if n != _RUDE] == [n for n in range(_COUNT) if n != _RUDE]
    assert failed == [_RUDE] * (_RUDE not in kept)


def test_the_error_row_names_the_limit_that_was_lowered(tmp_path: Path) -> None:
    run_over(tmp_path, opens(deed="no file size"), [{"n": n} for n in range(_COUNT)])
    (row,) = error_rows(node(tmp_path))
    assert (row["index"], row["exception"]) == (_RUDE, "WorkerDied")
    assert "a call lowered RLIMIT_FSIZE from no limit to 0 in its worker" in row["message"]


def _storage_error(number: int) -> StorageError:
    error = StorageError("/x", "write", "refused")
    error.__cause__ = OSError(number, os.strerror(number))
    return error


@pytest.mark.parametrize(
    ("number", "unfit"),
    [
        (errno.EBADF, True),
        (errno.EMFILE, True),
        (errno.EFBIG, True),
        (errno.ENOSPC, False),
        (errno.EIO, False),
        (errno.EDQUOT, False),
        (errno.EROFS, False),
        (errno.EACCES, False),
        (errno.ENFILE, False),
    ],
)
def test_a_fault_of_the_disk_is_no_fault_of_the_worker(number: int, unfit: bool) -> None:
    assert bool(Fitness().reason(_storage_error(number))) == unfit


def test_failures_of_records_are_kept_when_no_limit_was_lowered() -> None:
    failed = Stretch(0, 0, 0, failure=failure_of(MemoryError("big")))
    assert Fitness().checked(lambda: failed)() is failed
