"""Share the cores of a machine among the steps that run at the same time.

An operator in process mode uses all cores by default. Several concurrent steps would start
``steps * cores`` workers. Therefore every step holds a lock file while it runs, in any run,
executor or deployment. A starting step counts the locked files and divides the cores by that
number. The files are in a private folder of the user inside the temporary folder. The system
releases the locks of processes that die.
"""

import fcntl
import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from dagster_dataops.foundation.concurrency.file_lock import unused
from dagster_dataops.foundation.places.private_folders import ForeignFolderError, private_folder
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.options.concurrency_modes import mode_named
from dagster_dataops.operators.options.settings import ExecutionSettings

_LOG: Final = logging.getLogger("dagster_dataops")


@contextmanager
def fair_settings(operator: Operator, settings: ExecutionSettings) -> Iterator[ExecutionSettings]:
    """Yield the settings of a step with its share of the cores; count the step inside the block.

    The number of worker processes is lowered only if it is the default.
    """
    resolved = settings.resolved(asynchronous=operator.__dataops__.spec.asynchronous)
    mode = mode_named(resolved.concurrency_mode)
    if settings.max_workers is not None or not mode.separate_processes:
        yield settings
        return
    with running_step() as running:
        yield replace(settings, max_workers=max(1, mode.default_workers() // running))


@contextmanager
def running_step() -> Iterator[int]:
    """Count as a running step and yield the number of running steps, including this one.

    The number is 1 if the temporary folder is not writable or the private folder cannot be created.
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
    """Return the folder of lock files, which only this user can write to."""
    try:
        return private_folder("dagster-dataops-steps")
    except ForeignFolderError as error:
        text = "%s cannot be used: %s; steps on this machine do not share its cores"
        _LOG.warning(text, error.filename, error.strerror)
        raise


def _begin(folder: Path) -> tuple[int, Path]:
    descriptor, name = tempfile.mkstemp(prefix=".", dir=folder)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    # The rename makes the file visible, already locked: an unlocked file belongs to a dead step.
    path = Path(name).rename(folder / f"{os.getpid()}{Path(name).name}")
    return descriptor, path


def _running(folder: Path) -> int:
    """Return the number of locked files and delete the others, whose steps died."""
    running = 0
    for path in folder.glob("[0-9]*"):
        with suppress(OSError), unused(path) as free:  # an error: the step has just ended
            if free:
                path.unlink(missing_ok=True)
            else:
                running += 1
    return running
