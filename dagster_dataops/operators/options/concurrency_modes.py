"""Concurrency modes: the ways to run an operator, and the defaults that each mode brings.

`MODES` is the only list of modes. Each has a backend of the same name in
`dagster_dataops.execution.backends.backend`.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from dagster_dataops.concurrency.cores import usable_cores

_STOP_AFTER_CALLS: Final = 150  # at least
_STOP_AFTER_ROUNDS: Final = 4  # times the calls in flight
_STOP_AFTER_COMPUTING: Final = 1000  # of all worker processes
_DRAIN_SECONDS: Final = 20.0  # less than the 30 that Docker and Kubernetes give a process to end


class ConcurrencyMode(NamedTuple):
    """One way to run an operator.

    Attributes:
        default_workers: Return the number of workers if the settings give none.
        separate_processes: Whether workers are processes, which compute and count their own
            failures; otherwise they are calls in flight.
        only_coroutines: Whether it runs ``async def`` operators alone.
        drain_seconds: How long a run that stops waits for its calls in flight, if the settings do
            not say.
    """

    default_workers: Callable[[], int]
    separate_processes: bool = False
    only_coroutines: bool = False
    drain_seconds: float = 0.0


def _calls_in_flight() -> int:
    """Return LazyLLM's default number of calls in flight."""
    return min(max(32, 5 * usable_cores()), 128)


MODES: Final[Mapping[str, ConcurrencyMode]] = {
    "process": ConcurrencyMode(usable_cores, separate_processes=True),
    "thread": ConcurrencyMode(_calls_in_flight, drain_seconds=_DRAIN_SECONDS),
    "async": ConcurrencyMode(_calls_in_flight, only_coroutines=True, drain_seconds=_DRAIN_SECONDS),
    "single": ConcurrencyMode(lambda: 1),
}


def default_stop_after(mode: str, workers: int) -> int:
    """Return the default of ``stop_after_failures``: a number of consecutive failures of one kind.

    An endpoint that is down, or that rejects the key, fails every call. Any limit detects that. Bad
    records need a limit that is not too small. Failing calls often end sooner than others: of ``w``
    calls in flight, ``w * p / (1 - p)`` fail on average before the first success returns, if the
    share ``p`` fails. Four times the calls in flight tolerates four failing records in five. 150
    tolerates as many consecutive bad records, for example at the start of sorted input. With 32
    calls in flight, an outage then costs fewer than 200 calls.

    Each worker process counts its own failures. Its calls are mostly computation, so a failing call
    costs little, and bad records of one origin come in longer rows. The limit is about 1,000
    failures of all workers together, and at least 150 failures of each worker.

    Args:
        mode: The concurrency mode.
        workers: The number of processes, or of calls in flight.
    """
    if MODES[mode].separate_processes:
        return max(_STOP_AFTER_CALLS, _STOP_AFTER_COMPUTING // workers)
    return max(_STOP_AFTER_CALLS, _STOP_AFTER_ROUNDS * workers)
