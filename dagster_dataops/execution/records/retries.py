"""Retries: try failed records again, with growing pauses."""

import math
import sys
import threading
import time
from collections.abc import Callable
from typing import Final

from dagster_dataops.errors import UnencodableError
from dagster_dataops.execution.records.breaker import Breaker
from dagster_dataops.execution.records.record_failures import Failure, Outcome
from dagster_dataops.foundation.concurrency.retrying import Backoff
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.operators.options.settings import ResolvedSettings, RetryOn
from dagster_dataops.operators.outcomes.return_contract import ContractError

_LONGEST_PAUSE_SECONDS: Final = 60.0
_LONGEST_ASKED_SECONDS: Final = 3600.0
_LOOK_SECONDS: Final = 0.1  # after which a pausing coroutine looks whether the run stops


class PauseEnded(BaseException):
    """The run stops while a record waits for its next try."""


class Retries:
    """The further attempts of failed records in one run; shared by its threads.

    Args:
        settings: How many, after which exceptions, how soon. Each pause is about twice the one
            before it and a minute at most. A random half of it spreads the calls of many callers.
            It is longer if the exception asks for that in its attribute ``retry_after``, in
            seconds, as servers do; an hour at most.
        pause: Waits for a number of seconds; raises `PauseEnded` if the run stops meanwhile.
        breaker: Counts every failed try but a record's last, which is counted with the record. No
            further try is made once it is open.
    """

    def __init__(
        self,
        settings: ResolvedSettings,
        pause: Callable[[float], None] = time.sleep,
        breaker: Breaker | None = None,
    ) -> None:
        self._settings = settings
        self._backoff = Backoff(settings.backoff, _LONGEST_PAUSE_SECONDS)
        self._lock = threading.Lock()
        self._tried_again = 0
        self._recovered = 0
        self.pause = pause
        self._breaker = breaker or Breaker(0)

    @property
    def most(self) -> int:
        """How often a record may be tried again."""
        return self._settings.retries

    @property
    def ended(self) -> bool:
        """Whether no further try may be made."""
        return self._breaker.open

    def may_help(self, outcome: Outcome) -> bool:
        """Count a failed try; return whether another one may succeed.

        A bad line or a bad result is not tried again.
        """
        if not isinstance(outcome, Failure) or outcome.error is None or self.ended:
            return False
        if not matches(outcome.error, self._settings.retry_on):
            return False
        self._breaker.failed(outcome)
        return not self.ended

    def pause_before(self, number: int, outcome: Outcome) -> float:
        """Return the seconds to wait before a further try.

        Args:
            number: Which further try it is, counted from 1.
            outcome: The failure of the try before it.
        """
        return max(self._backoff.pause(number), _asked_pause(outcome))

    async def pause_async(self, seconds: float) -> None:
        """Wait before another try, in an event loop."""
        import asyncio  # slow to import, and already loaded if a loop runs

        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            await asyncio.sleep(min(left, _LOOK_SECONDS))
            self.pause(0.0)

    def count(self, tried_again: int, recovered: int) -> None:
        """Add to the numbers of records that were tried again, and that succeeded then."""
        with self._lock:
            self._tried_again += tried_again
            self._recovered += recovered

    def report(self, log: Callable[[str], None]) -> None:
        """Log how many records were tried again and recovered, if there were any."""
        if self._tried_again:
            log(
                f"tried {counted(self._tried_again, 'failed records')} again; "
                f"{self._recovered:,} of them succeeded"
            )


def _asked_pause(outcome: Outcome) -> float:
    """Return the seconds that an exception asks to wait, in its attribute ``retry_after``."""
    asked = getattr(outcome.error, "retry_after", None) if isinstance(outcome, Failure) else None
    if isinstance(asked, (int, float)) and 0 <= asked < math.inf:
        return min(float(asked), _LONGEST_ASKED_SECONDS)
    return 0.0


def matches(error: BaseException, retry_on: RetryOn | None) -> bool:
    """Return whether ``error`` is one of ``retry_on``; ``None`` allows all but invalid results."""
    if retry_on is None:
        ours = isinstance(error, (ContractError, UnencodableError))
        return isinstance(error, Exception) and not ours
    return any(_is_a(error, wanted) for wanted in retry_on)


def _is_a(error: BaseException, wanted: type[BaseException] | str) -> bool:
    if isinstance(wanted, type):
        return isinstance(error, wanted)
    module, _, name = wanted.rpartition(".")
    named = getattr(sys.modules.get(module or "builtins"), name, None)
    if isinstance(named, type) and isinstance(error, named):  # an alias of the class
        return True
    kinds = type(error).__mro__
    return any(
        wanted in {kind.__name__, f"{kind.__module__}.{kind.__qualname__}"} for kind in kinds
    )
