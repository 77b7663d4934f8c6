"""Tests of ``_max_worker_memory_mb``: a record that needs more memory fails, and no other."""

import ctypes
import os
import resource
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from dagster_dataops.data import data_register
from dagster_dataops.execution.workers.scheduler import Scheduler
from tests.execution.helpers import error_rows, node, run, run_over, write_input

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the limit is that of Linux")

COUNT: Final = 60
_LIMIT: Final = 200  # megabytes
_kept: Final[list[bytearray]] = []


def _in_c() -> None:
    """Ask for memory as a library in C++ does, which ends the process if it gets none."""
    library = ctypes.CDLL(None)
    library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    if not library.malloc((_LIMIT + 100) << 20):
        os.abort()


@data_register("data.memory_limits", _max_workers=2)
def needing(record: dict[str, Any]) -> dict[str, Any]:
    match record["do"]:
        case "much":
            bytearray((_LIMIT + 100) << 20)
        case "much in C":
            _in_c()
        case "leak":
            _kept.append(bytearray(8 << 20))
        case "most":
            _kept.append(bytearray(120 << 20))
        case "some":
            bytearray(70 << 20)
        case "limit":
            record["limit"] = resource.getrlimit(resource.RLIMIT_DATA)[0]
    return record


def over(path: Path, deeds: list[str], **settings: Any) -> Any:
    operator = needing(_max_worker_memory_mb=_LIMIT, **settings)  # type: ignore[call-arg]
    return run_over(path, operator, [{"do": deed, "n": n} for n, deed in enumerate(deeds)])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("deed", "reason"),
    [
        ("much", "it needs more than its memory limit of 200 MB; raise _max_worker_memory_mb"),
        ("much in C", "killed by SIGABRT; its memory limit was 200 MB"),
    ],
)
def test_a_record_that_needs_more_memory_fails_alone(
    tmp_path: Path, deed: str, reason: str
) -> None:
    deeds = [deed if n in {7, 8, 40} else "little" for n in range(COUNT)]
    report = over(tmp_path, deeds)
    rows = error_rows(node(tmp_path))

    assert [record["n"] for record in report.dataset] == [
        n for n, deed in enumerate(deeds) if deed == "little"
    ]
    assert [row["index"] for row in rows] == [7, 8, 40]
    assert all(reason in row["message"] for row in rows)


@pytest.mark.slow
def test_records_do_not_fail_for_what_others_have_left_in_memory(tmp_path: Path) -> None:
    deeds = ["some" if n % 10 == 9 else "leak" for n in range(60)]

    report = over(tmp_path, deeds)

    assert [record["n"] for record in report.dataset] == list(range(60))


@pytest.mark.slow
def test_a_worker_that_ends_for_its_memory_is_no_death_in_the_range_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaths: list[object] = []
    monkeypatch.setattr(Scheduler, "give_back_after_death", lambda *order: deaths.append(order))

    report = over(tmp_path, [("most" if n % 400 == 0 else "little") for n in range(1200)])

    assert deaths == []
    assert error_rows(node(tmp_path)) == []
    assert report.manifest.rows_out == 1200


def test_a_worker_has_its_own_limit_again_in_the_next_run(tmp_path: Path) -> None:
    inputs = write_input(tmp_path / "input.jsonl", [{"do": "limit"}])
    limited = needing(_max_worker_memory_mb=_LIMIT)  # type: ignore[call-arg]
    first = run(limited, inputs, node(tmp_path, "first"))
    second = run(needing(), inputs, node(tmp_path, "second"))  # type: ignore[call-arg]

    (record,) = first.dataset
    assert 0 < record["limit"] < 4 << 30
    (record,) = second.dataset
    assert record["limit"] == resource.getrlimit(resource.RLIMIT_DATA)[0]


@pytest.mark.parametrize("mode", ["single", "thread"])
def test_other_modes_have_no_limit(tmp_path: Path, mode: str) -> None:
    report = over(tmp_path, ["limit"], _concurrency_mode=mode)

    (record,) = report.dataset
    assert record["limit"] == resource.getrlimit(resource.RLIMIT_DATA)[0]
