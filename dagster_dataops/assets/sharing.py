"""Steps that run on this machine at the same time share its cores.

An operator in worker processes takes all cores unless it is told otherwise. Where an executor
runs several such steps at once, each of them would: steps times cores. So every one of them holds
a lock file while it runs, whatever run, executor or deployment it belongs to, and one that begins
takes its part of the cores by how many there are. The files are in the machine's temporary
folder; the system gives up the locks of processes that die.
"""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from dagster_dataops.operators.operator import Operator
from dagster_dataops.operators.settings import ExecutionSettings, default_workers


@contextmanager
def fair_settings(operator: Operator, settings: ExecutionSettings) -> Iterator[ExecutionSettings]:
    """Give the settings to run with; counts as a step that computes, as long as it does.

    Only a number of worker processes that nobody has chosen is lowered.

    Args:
        operator: To be run.
        settings: Its own, and those of the resource below them.
    """
    resolved = settings.resolved(asynchronous=operator.__dataops__.spec.asynchronous)
    if settings.max_workers is not None or resolved.concurrency_mode != "process":
        yield settings
        return
    with running_step() as running:
        yield replace(settings, max_workers=max(1, default_workers("process") // running))


@contextmanager
def running_step() -> Iterator[int]:
    """Count as a running step; give the number of those that run now, with this one.

    Where there is no temporary folder to write to, every step counts as the only one.
    """
    try:
        descriptor, path = _begin(_folder())
    except OSError:
        yield 1
        return
    try:
        yield max(1, _running(path.parent))
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _folder() -> Path:
    folder = Path(tempfile.gettempdir()) / f"dagster-dataops-steps-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _begin(folder: Path) -> tuple[int, Path]:
    descriptor, name = tempfile.mkstemp(prefix=".", dir=folder)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    # Seen by others only now: a file that they find unlocked is one whose step has died.
    path = Path(name).rename(folder / f"{os.getpid()}{Path(name).name}")
    return descriptor, path


def _running(folder: Path) -> int:
    """Return how many files are locked; those of steps that died are deleted."""
    running = 0
    for path in folder.glob("[0-9]*"):
        with suppress(OSError):  # its step has just ended
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink(missing_ok=True)
            except BlockingIOError:
                running += 1
            finally:
                os.close(descriptor)
    return running
