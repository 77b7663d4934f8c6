"""Retries: try failed records again, with growing pauses."""

import random
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Final

from dagster_dataops.errors import UnencodableError
from dagster_dataops.execution.progress import Progress
from dagster_dataops.execution.records.breaker import Breaker
from dagster_dataops.execution.records.record_failures import Failure, Outcome
from dagster_dataops.operators.return_contract import ContractError
from dagster_dataops.operators.settings import ResolvedSettings, RetryOn

_LONGEST_PAUSE_SECONDS: Final = 60.0
_MOST_DOUBLINGS: Final = 60


class Retries:
    """The further attempts of failed records in one run; shared by its threads.

    Args:
        settings: The number of attempts, their exceptions and their pauses. Each pause is about
            twice the previous one, and at most a minute. A random half of it spreads the calls of
            many callers.
        pause: Waits for a number of seconds; an exception that it raises ends the attempts.
        breaker: Counts every failed attempt except a record's last one, which is counted with the
            record. No further attempt is made once it is open.
    """

    def __init__(
        self,
        settings: ResolvedSettings,
        pause: Callable[[float], None] = time.sleep,
        breaker: Breaker | None = None,
    ) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._tried_again = 0
        self._recovered = 0
        self._pause = pause
        self._breaker = breaker or Breaker(0)

    def worthwhile(self, outcome: object) -> bool:
        """Whether another attempt may succeed; not for an invalid line or an invalid result."""
        return (
            isinstance(outcome, Failure)
            and outcome.error is not None
            and not self._breaker.open
            and matches(outcome.error, self._settings.retry_on)
        )

    def again(self, failure: Failure, attempt: Callable[[], Outcome]) -> Outcome:
        """Try a record until it succeeds, further attempts are not worthwhile, or none is left.

        Args:
            failure: The outcome of the first attempt.
            attempt: Makes another attempt and returns its outcome.

        Returns:
            The outcome of the last attempt.
        """
        tries = _Tries(failure)
        while (seconds := self._next_pause(tries)) is not None:
            self._pause(seconds)
            if self._breaker.open:
                break
            tries.add(attempt())
        return self._counted(tries)

    async def again_async(
        self, failure: Failure, attempt: Callable[[], Awaitable[Outcome]]
    ) -> Outcome:
        """Do what `again` does, in an event loop."""
        import asyncio  # slow to import, and already loaded if a loop runs

        tries = _Tries(failure)
        while (seconds := self._next_pause(tries)) is not None:
            await asyncio.sleep(seconds)
            if self._breaker.open:
                break
            tries.add(await attempt())
        return self._counted(tries)

    def _next_pause(self, tries: "_Tries") -> float | None:
        """Count a failed attempt; return the seconds before the next one, ``None`` for the last."""
        outcome = tries.outcome
        if tries.count > self._settings.retries or not self.worthwhile(outcome):
            return None
        if isinstance(outcome, Failure):
            self._breaker.failed(outcome)
        if self._breaker.open:
            return None
        doublings = min(tries.count - 1, _MOST_DOUBLINGS)
        half = min(self._settings.backoff * 2.0**doublings, _LONGEST_PAUSE_SECONDS) / 2
        return half + random.uniform(0, half)  # noqa: S311 - spreads calls, protects nothing

    def _counted(self, tries: "_Tries") -> Outcome:
        """Return the outcome of the last attempt, with the number of attempts if it failed."""
        outcome = tries.outcome
        failed = isinstance(outcome, Failure)
        with self._lock:
            self._tried_again += 1
            self._recovered += not failed
        return outcome._replace(attempts=tries.count) if isinstance(outcome, Failure) else outcome

    def summary(self) -> str | None:
        """Return the numbers of retried and recovered records, in words; ``None`` without any."""
        if not self._tried_again:
            return None
        return (
            f"{self._tried_again:,} records failed and were tried again; "
            f"{self._recovered:,} of them succeeded then"
        )


class _Tries:
    """The attempts of one record.

    Attributes:
        outcome: The outcome of the latest attempt.
        count: Number of attempts.
    """

    def __init__(self, failure: Failure) -> None:
        self.outcome: Outcome = failure
        self.count = 1

    def add(self, outcome: Outcome) -> None:
        """Record another attempt."""
        self.outcome = outcome
        self.count += 1


def retries_of(
    settings: ResolvedSettings,
    pause: Callable[[float], None] = time.sleep,
    breaker: Breaker | None = None,
) -> Retries | None:
    """Return the further attempts that the settings allow; ``None`` without any."""
    return Retries(settings, pause, breaker) if settings.retries else None


def tell(retries: Retries | None, progress: Progress) -> None:
    """Report the number of records that were tried again, if there were any."""
    summary = retries.summary() if retries is not None else None
    if summary is not None:
        progress.note(summary)


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
