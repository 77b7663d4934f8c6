"""Processes that no test leaves behind."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Protocol, TypeVar


class _Process(Protocol):
    """A process in the manner of ``subprocess.Popen``."""

    @property
    def pid(self) -> int: ...
    def kill(self) -> None: ...
    def __enter__(self) -> object: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> object: ...


_Started = TypeVar("_Started", bound=_Process)


@contextmanager
def killed_at_exit(process: _Started) -> Iterator[_Started]:
    """Kill a process after the test, even if the test fails, and close its pipes.

    If it leads a process group, the whole group is killed.
    """
    leads = _leads(process.pid)
    with process:
        try:
            yield process
        finally:
            if leads:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            process.kill()


def _leads(pid: int) -> bool:
    """Return whether a process leads a group, as one that is gone may have done."""
    try:
        return os.getpgid(pid) == pid
    except ProcessLookupError:
        return True
