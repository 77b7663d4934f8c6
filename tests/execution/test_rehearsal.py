import threading
from pathlib import Path

from dagster_dataops.data import data_register
from dagster_dataops.execution.rehearsal import Rehearsal


def _threads_and_files() -> tuple[int, int]:
    return threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))


def test_a_rehearsal_leaves_nothing_behind() -> None:
    rehearsal = Rehearsal()
    groups = data_register.groups()
    before = _threads_and_files()
    for _ in range(3):
        rehearsal.play()
    assert _threads_and_files() == before
    assert data_register.groups() == groups
