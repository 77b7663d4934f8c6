"""Steps that run on this machine at the same time share its cores.

An operator in worker processes takes all cores unless it is told otherwise. Where an executor
runs several such steps at once, each of them would: steps times cores. So every one of them holds
a lock file while it runs, whatever run, executor or deployment it belongs to, and one that begins
takes its part of the cores by how many there are. The files are in a folder of the user's own in
the machine's temporary folder; the system gives up the locks of processes that die.
"""

import errno
import fcntl
import logging
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from dagster_dataops.operators.concurrency_modes import MODES
from dagster_dataops.operators.operator import Operator
from dagster_dataops.operators.settings import ExecutionSettings

_LOG: Final = logging.getLogger("dagster_dataops")


@contextmanager
def fair_settings(operator: Operator, settings: ExecutionSettings) -> Iterator[ExecutionSettings]:
    """Give the settings to run with; counts as a step that computes, as long as it does.

    Only a number of worker processes that nobody has chosen is lowered.

    Args:
        operator: To be run.
        settings: Its own, and those of the resource below them.
    """
    resolved = settings.resolved(asynchronous=operator.__dataops__.spec.asynchronous)
    mode = MODES[resolved.concurrency_mode]
    if settings.max_workers is not None or not mode.separate_processes:
        yield settings
        return
    with running_step() as running:
        yield replace(settings, max_workers=max(1, mode.default_workers() // running))


@contextmanager
def running_step() -> Iterator[int]:
    """Count as a running step; give the number of those that run now, with this one.

    Where there is no temporary folder to write to, or no folder of this user's own can be made
    in it, every step counts as the only one.
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
    """Return this user's folder of lock files, which no other user can write to.

    Raises:
        OSError: There is something else in its place, such as a folder or a link of another user.
    """
    folder = Path(tempfile.gettempdir()) / f"dagster-dataops-steps-{os.getuid()}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        reason = "not a folder that this user owns and others cannot write to; remove it"
        _LOG.warning("%s is %s; steps on this machine do not share its cores", folder, reason)
        raise PermissionError(errno.EPERM, reason, str(folder))
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
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink(missing_ok=True)
            except BlockingIOError:
                running += 1
            finally:
                os.close(descriptor)
    return running
