"""Concurrency modes: the ways to run an operator, and the number of workers that each begins with.

`MODES` is the only list of modes. `register_workplace` adds to it.
"""

import re
from collections.abc import Callable, Mapping
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction, signature
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol

from dagster_dataops.errors import ConfigurationError
from dagster_dataops.foundation.concurrency.cores import usable_cores

_WORKPLACES: Final = "dagster_dataops.execution.workplaces."
MODE_NAME: Final = "[a-z][a-z0-9_]*"
_STOP_AFTER_CALLS: Final = 150  # at least
_STOP_AFTER_ROUNDS: Final = 4  # times the calls in flight
_STOP_AFTER_COMPUTING: Final = 1000  # of all worker processes
_DRAIN_SECONDS: Final = 20.0  # less than the 30 that Docker and Kubernetes give a process to end


class Workplace(Protocol):
    """Runs what is open of one input, and hands finished spans to a sink."""

    def run(self, attempt: Any, work: Any, sink: Any) -> None:
        """Run the open intervals; return when every record in them has an outcome.

        Args:
            attempt: What is run, an `Attempt`: the operator with its settings.
            work: What is open, a `WorkList`.
            sink: Where outcomes go, a `Sink`.

        Raises:
            RecordError: A record failed and failures are not ignored.
            OutageError: Too many consecutive calls failed.
            RunStoppedError: A stop was requested.
        """


class ConcurrencyMode(NamedTuple):
    """One way to run an operator.

    Attributes:
        workplace: What runs it, or the name of a module that does.
        default_workers: Return the number of workers if the settings give none.
        separate_processes: Whether workers are processes, which compute and count their own
            failures; otherwise they are calls in flight.
        only_coroutines: Whether it runs ``async def`` operators alone.
        drain_seconds: How long a run that stops waits for its calls in flight, if the settings do
            not say.
    """

    workplace: Workplace | str
    default_workers: Callable[[], int]
    separate_processes: bool = False
    only_coroutines: bool = False
    drain_seconds: float = 0.0


def _calls_in_flight() -> int:
    """Return LazyLLM's default number of calls in flight."""
    return min(max(32, 5 * usable_cores()), 128)


_MODES: Final[dict[str, ConcurrencyMode]] = {
    "process": ConcurrencyMode(_WORKPLACES + "processes", usable_cores, separate_processes=True),
    "thread": ConcurrencyMode(
        _WORKPLACES + "threads", _calls_in_flight, drain_seconds=_DRAIN_SECONDS
    ),
    "async": ConcurrencyMode(
        _WORKPLACES + "asynchronous",
        _calls_in_flight,
        only_coroutines=True,
        drain_seconds=_DRAIN_SECONDS,
    ),
    "single": ConcurrencyMode(_WORKPLACES + "single", lambda: 1),
}
MODES: Final[Mapping[str, ConcurrencyMode]] = MappingProxyType(_MODES)
PACKAGE_MODES: Final = tuple(_MODES)


def register_workplace(
    name: str,
    workplace: Workplace,
    *,
    default_workers: int,
    separate_processes: bool = False,
    only_coroutines: bool = False,
) -> None:
    """Register where operators can run, as a value of ``_concurrency_mode``.

    Call it in a module that every process with the pipeline imports before it constructs operators,
    such as the module that registers them. Worker processes of the package do not need it.

    Args:
        name: The mode: lower-case letters, digits and underscores.
        workplace: An object whose method ``run(attempt, work, sink)`` runs what is open, as
            `dagster_dataops.workplaces` describes. Registering another object of the same class
            replaces it, for modules that are loaded again.
        default_workers: The default of ``_max_workers``, at least 1.
        separate_processes: Whether its workers are processes that compute: steps that run at the
            same time share the cores of the machine, unless ``_max_workers`` is given.
        only_coroutines: Whether it only runs ``async def`` operators; others are refused.

    Raises:
        ConfigurationError: The name is taken or malformed, the workplace has no such method, the
            number of workers is not a whole number of at least 1, or a flag is no bool.
    """
    if name in PACKAGE_MODES or re.fullmatch(MODE_NAME, str(name)) is None:
        allowed = (
            f"lower-case letters, digits and underscores, and none of {', '.join(PACKAGE_MODES)}"
        )
        raise ConfigurationError("the name of a workplace", name, allowed)
    if not _runs(workplace):
        allowed = "an object with a method run(attempt, work, sink), which is no `async def`"
        raise ConfigurationError("workplace", _class_name(workplace), allowed)
    if type(default_workers) is not int or default_workers < 1:
        raise ConfigurationError("default_workers", default_workers, "a whole number, at least 1")
    flags = {"separate_processes": separate_processes, "only_coroutines": only_coroutines}
    for flag, value in flags.items():
        if type(value) is not bool:
            raise ConfigurationError(flag, value, "True or False")
    known = _MODES.get(name)
    if known is not None and _class_name(known.workplace) != _class_name(workplace):
        allowed = f"another one: {_class_name(known.workplace)} is registered by it"
        raise ConfigurationError("the name of a workplace", name, allowed)
    _MODES[name] = ConcurrencyMode(workplace, lambda: default_workers, **flags)


def _runs(workplace: object) -> bool:
    """Return whether an object has a method that can be called as ``run(attempt, work, sink)``."""
    method = None if isinstance(workplace, type) else getattr(workplace, "run", None)
    later = (iscoroutinefunction, isgeneratorfunction, isasyncgenfunction)  # a call runs nothing
    if not callable(method) or any(is_later(method) for is_later in later):
        return False
    try:
        signature(method).bind(None, None, None)
    except TypeError:
        return False
    except ValueError:  # a builtin may have no signature
        return True
    return True


def _class_name(workplace: object) -> str:
    cls = workplace if isinstance(workplace, type) else type(workplace)
    return f"{cls.__module__}.{cls.__qualname__}"


def mode_named(name: str) -> ConcurrencyMode:
    """Return the concurrency mode with a name.

    Raises:
        ConfigurationError: This process does not know it.
    """
    mode = MODES.get(name)
    if mode is None:
        allowed = f"one of {', '.join(MODES)}; import the module that registers another one"
        raise ConfigurationError("_concurrency_mode", name, allowed)
    return mode


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
    if mode_named(mode).separate_processes:
        return max(_STOP_AFTER_CALLS, _STOP_AFTER_COMPUTING // workers)
    return max(_STOP_AFTER_CALLS, _STOP_AFTER_ROUNDS * workers)
