"""Fitness: whether this worker can still work after what its operator has done to the process.

An operator may lower a limit of the process or close files that are not its own. A worker that
fails for such a reason ends, like one that was killed: another one takes its lines.
"""

import errno
import resource
from collections.abc import Callable
from typing import Any, Final, ParamSpec, TypeVar

from dagster_dataops.execution.records.record_failures import Failure
from dagster_dataops.execution.workers.process_environment import limits
from dagster_dataops.foundation.concurrency.memory_limit import MemoryLimit

P = ParamSpec("P")
T = TypeVar("T")
_LIMITED: Final = {errno.EMFILE, errno.EFBIG, errno.EAGAIN, errno.ENOMEM}  # by a limit
_OWN: Final = {errno.EMFILE, errno.EFBIG, errno.EBADF}  # faults of the process, never of a disk
_NAMES: Final = {  # of two names of a limit the first one
    value: name
    for name, value in sorted(vars(resource).items(), reverse=True)
    if name.startswith("RLIMIT_")
}


class UnfitError(Exception):
    """The worker cannot go on; the message says why."""


class Fitness:
    """Notes the limits of this process, and finds those that are lower later.

    Args:
        memory: The memory limit of the run, if it has one.
    """

    def __init__(self, memory: MemoryLimit | None = None) -> None:
        self._memory = memory or MemoryLimit(0)
        self.note_limits()

    def note_limits(self) -> None:
        """Compare with the present limits from now on."""
        self._before = limits()

    def checked(self, call: Callable[P, T]) -> Callable[P, T]:
        """Return ``call``, which raises `UnfitError` if a limit made a record fail.

        It may be due to what earlier records left behind: only a record that fails alone in its
        worker is a failed record.
        """

        def fit(*args: P.args, **named: P.kwargs) -> T:
            returned = call(*args, **named)
            for error in _errors_in(returned):
                if reason := self._memory.reason(error):
                    raise UnfitError(reason)
                limited = isinstance(error, MemoryError) or (
                    isinstance(error, OSError) and error.errno in _LIMITED
                )
                if limited and (lowered := self._lowered()):
                    raise UnfitError(lowered)
            return returned

        return fit

    def reason(self, error: BaseException) -> str:
        """Return why the worker is unfit after an exception of its own work; empty if it is not."""
        cause: BaseException | None = error
        seen: set[int] = set()  # exceptions may be causes of each other
        while cause is not None and id(cause) not in seen:
            seen.add(id(cause))
            if isinstance(cause, OSError) and cause.errno in _OWN:
                return self._lowered() or f"one of the worker's own files fails: {cause.strerror}"
            cause = cause.__cause__ or cause.__context__
        return ""

    def _lowered(self) -> str:
        """Return which limits are lower than before, in words."""
        now = limits()
        lower = [
            f"{_NAMES[limit]} from {_shown(before)} to {_shown(now[limit][0])}"
            for limit, (before, _) in self._before.items()
            if _size(now[limit][0]) < _size(before)
        ]
        return f"a call lowered {', '.join(lower)} in its worker" if lower else ""


def _size(limit: int) -> float:
    return float("inf") if limit == resource.RLIM_INFINITY else limit


def _shown(limit: int) -> str:
    return "no limit" if limit == resource.RLIM_INFINITY else f"{limit:,}"


def _errors_in(returned: Any) -> list[BaseException | None]:
    """Return the exceptions of the failed records in what a function of `Calls` returned."""
    if isinstance(returned, list):
        return [
            message.outcome.error for message in returned if isinstance(message.outcome, Failure)
        ]
    failure = getattr(returned, "failure", None)
    return [] if failure is None else [failure.error]
