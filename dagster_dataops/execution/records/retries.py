"""Retries: whether a failed record is tried again, when, and how often."""

import sys
import threading
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from dagster_dataops.errors import UnencodableError
from dagster_dataops.execution.progress import Progress
from dagster_dataops.execution.records.breaker import Breaker
from dagster_dataops.execution.records.record_failures import Failure
from dagster_dataops.operators.return_contract import ContractError
from dagster_dataops.operators.settings import ResolvedSettings, RetryOn

if TYPE_CHECKING:
    from tenacity import RetryCallState

T = TypeVar("T")
_LONGEST_PAUSE_SECONDS: Final = 60.0


class Retries:
    """The further tries of one run's records; shared by its threads.

    Args:
        settings: How many, after what, how soon. Each pause is about twice the one before it and
            a minute at most; a random half of it keeps many callers from coming back together.
        pause: Waits that many seconds; what it raises ends the tries.
        breaker: Counts every failed try but a record's last, which whoever settles it counts. Once
            it is open there are no further tries.
    """

    def __init__(
        self,
        settings: ResolvedSettings,
        pause: Callable[[float], None] = time.sleep,
        breaker: Breaker | None = None,
    ) -> None:
        from tenacity import (
            retry_if_result,
            stop_after_attempt,
            wait_exponential,
            wait_random_exponential,
        )

        half, cap = settings.backoff / 2, _LONGEST_PAUSE_SECONDS / 2
        self._retry_on = settings.retry_on
        self._lock = threading.Lock()
        self._tried_again = 0
        self._recovered = 0
        self._pause = pause
        self._breaker = breaker or Breaker(0)
        self._policy: dict[str, Any] = {
            "stop": stop_after_attempt(settings.retries + 1),
            "wait": wait_exponential(half, max=cap) + wait_random_exponential(half, max=cap),
            "retry": retry_if_result(self.worthwhile),
            "before_sleep": self._count_failed,
            "retry_error_callback": _last_outcome,
        }

    def worthwhile(self, outcome: object) -> bool:
        """Whether another try may end otherwise: not for a bad line, nor for a bad result."""
        return (
            isinstance(outcome, Failure)
            and outcome.error is not None
            and not self._breaker.open
            and matches(outcome.error, self._retry_on)
        )

    def again(self, failure: Failure, attempt: Callable[[], T]) -> T | Failure:
        """Try until it works, is not worthwhile, or enough is enough.

        Args:
            failure: What the first try came to.
            attempt: Makes another one; returns a `Failure` if it fails.

        Returns:
            What the last try came to.
        """
        from tenacity import Retrying

        count = 0

        def tried() -> T | Failure:
            nonlocal count
            if count and self._breaker.open:
                return failure
            count += 1
            return failure if count == 1 else attempt()

        outcome = Retrying(sleep=self._wait, **self._policy)(tried)
        return self._counted(outcome, count)

    async def again_async(
        self, failure: Failure, attempt: Callable[[], Awaitable[T]]
    ) -> T | Failure:
        """Do what `again` does, in an event loop."""
        from tenacity import AsyncRetrying

        count = 0

        async def tried() -> T | Failure:
            nonlocal count
            if count and self._breaker.open:
                return failure
            count += 1
            return failure if count == 1 else await attempt()

        outcome: T | Failure = await AsyncRetrying(**self._policy)(tried)
        return self._counted(outcome, count)

    def _wait(self, seconds: float) -> None:
        if not self._breaker.open:
            self._pause(seconds)

    def _count_failed(self, state: "RetryCallState") -> None:
        outcome = _last_outcome(state)
        if isinstance(outcome, Failure):
            self._breaker.failed(outcome)

    def _counted(self, outcome: T | Failure, attempts: int) -> T | Failure:
        failed = isinstance(outcome, Failure)
        with self._lock:
            self._tried_again += 1
            self._recovered += not failed
        return outcome._replace(attempts=attempts) if isinstance(outcome, Failure) else outcome

    def summary(self) -> str | None:
        """Return what came of the further tries, or ``None`` if there were none."""
        if not self._tried_again:
            return None
        return (
            f"{self._tried_again:,} records failed and were tried again; "
            f"{self._recovered:,} of them went well then"
        )


def retries_of(
    settings: ResolvedSettings,
    pause: Callable[[float], None] = time.sleep,
    breaker: Breaker | None = None,
) -> Retries | None:
    """Return the further tries that ``settings`` ask for; ``None`` if they ask for none."""
    return Retries(settings, pause, breaker) if settings.retries else None


def tell(retries: Retries | None, progress: Progress) -> None:
    """Say what came of the further tries, if there were any."""
    summary = retries.summary() if retries is not None else None
    if summary is not None:
        progress.note(summary)


def matches(error: BaseException, retry_on: RetryOn | None) -> bool:
    """Whether ``error`` is one of ``retry_on``; of any exception but ours if that is ``None``."""
    if retry_on is None:
        ours = isinstance(error, (ContractError, UnencodableError))
        return isinstance(error, Exception) and not ours
    return any(_is_a(error, wanted) for wanted in retry_on)


def _is_a(error: BaseException, wanted: type[BaseException] | str) -> bool:
    if isinstance(wanted, type):
        return isinstance(error, wanted)
    module, _, name = wanted.rpartition(".")
    named = getattr(sys.modules.get(module or "builtins"), name, None)
    if isinstance(named, type) and isinstance(error, named):  # under whatever name it was written
        return True
    kinds = type(error).__mro__
    return any(
        wanted in {kind.__name__, f"{kind.__module__}.{kind.__qualname__}"} for kind in kinds
    )


def _last_outcome(state: "RetryCallState") -> object:
    return state.outcome.result() if state.outcome is not None else None
