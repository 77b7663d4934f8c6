"""ExecutionSettings: how an operator is run, as against what it does.

Written with a leading underscore where an operator is constructed or registered
(``_max_workers=48``), so that they never collide with an operator's own options. Precedence:
operator instance over registration over default.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final, TypeAlias, cast

from dagster_dataops.errors import OperatorOptionError
from dagster_dataops.operators.concurrency_modes import MODES, default_stop_after

# Exception classes, or the names of such: ``TimeoutError``, ``httpx.HTTPError``.
RetryOn: TypeAlias = tuple[type[BaseException] | str, ...]
DEFAULT_BACKOFF: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionSettings:
    """How an operator is run; ``None`` leaves a setting to whoever comes next.

    Attributes:
        concurrency_mode: ``process`` for work that computes, ``thread`` or ``async`` for work
            that waits, ``single`` for debugging.
        max_workers: Processes, or calls in flight; at least 1. Given as 0, it is left open.
        save_data: Whether the result and a checkpoint are written below the results' root.
        ignore_errors: Whether a failing record goes to the error file (and the others go on)
            or fails the step.
        timeout: Seconds that one call on one record may take; 0 for as long as it likes.
        retries: Further tries for a record that failed.
        retry_on: What it must have failed with to be tried again.
        backoff: Seconds before the second try; about doubled before each further one.
        reuse_outcomes: Whether what became of a record is kept for later runs: of an input that
            has changed, the records that were in it before are not worked on again.
        fresh_workers: Whether worker processes are started for this operator alone, instead of
            ones that have served other operators, whose modules they have loaded.
        stop_after_failures: How many calls have to fail with one exception, none succeeding in
            between, for the run to stop; 0 never stops it, and publishes even a result whose
            records all failed.
    """

    concurrency_mode: str | None = None
    max_workers: int | None = None
    save_data: bool | None = None
    ignore_errors: bool | None = None
    timeout: float | None = None
    retries: int | None = None
    retry_on: RetryOn | None = None
    backoff: float | None = None
    reuse_outcomes: bool | None = None
    fresh_workers: bool | None = None
    stop_after_failures: int | None = None

    def over(self, lower: "ExecutionSettings") -> "ExecutionSettings":
        """Return these settings, with what they leave open taken from ``lower``."""
        merged = {
            field.name: getattr(lower, field.name)
            if getattr(self, field.name) is None
            else getattr(self, field.name)
            for field in fields(self)
        }
        return ExecutionSettings(**merged)

    def resolved(self, *, asynchronous: bool) -> "ResolvedSettings":
        """Return these settings with every default filled in."""
        mode = self.concurrency_mode or ("async" if asynchronous else "process")
        workers = self.max_workers or MODES[mode].default_workers()
        stop_after = self.stop_after_failures
        return ResolvedSettings(
            concurrency_mode=mode,
            max_workers=workers,
            save_data=self.save_data is not False,
            ignore_errors=self.ignore_errors is not False,
            timeout=self.timeout or None,
            retries=self.retries or 0,
            retry_on=self.retry_on,
            backoff=DEFAULT_BACKOFF if self.backoff is None else self.backoff,
            reuse_outcomes=self.reuse_outcomes is True,
            fresh_workers=self.fresh_workers is True,
            stop_after_failures=(
                default_stop_after(mode, workers) if stop_after is None else stop_after
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedSettings:
    """`ExecutionSettings` with nothing left open.

    ``timeout`` is ``None`` where there is no limit, ``retry_on`` where every ``Exception`` of the
    operator counts.
    """

    concurrency_mode: str
    max_workers: int
    save_data: bool
    ignore_errors: bool
    timeout: float | None
    retries: int
    retry_on: RetryOn | None
    backoff: float
    reuse_outcomes: bool
    fresh_workers: bool
    stop_after_failures: int


SETTING_NAMES: Final = frozenset(f"_{field.name}" for field in fields(ExecutionSettings))


def parse_settings(operator: str, given: Mapping[str, object]) -> ExecutionSettings:
    """Check settings written with their underscore.

    Args:
        operator: Qualified name, for the error.
        given: Some of `SETTING_NAMES`; ``None`` values, and 0 workers, count as not given.

    Raises:
        OperatorOptionError: A value that the setting cannot have.
    """
    for name, value in given.items():
        if value is not None and (reason := _fault(name, value)):
            raise OperatorOptionError(operator, name, reason)
    values = {name.removeprefix("_"): value for name, value in given.items()}
    if values.get("max_workers") == 0:
        values["max_workers"] = None
    if isinstance(values.get("retry_on"), (str, type)):
        values["retry_on"] = (values["retry_on"],)
    elif values.get("retry_on") is not None:
        values["retry_on"] = tuple(cast("list[str]", values["retry_on"]))
    return ExecutionSettings(**cast("dict[str, None]", values))


def _fault(name: str, value: object) -> str | None:
    """Return why the setting ``name`` cannot be ``value``, or ``None`` if it can."""
    match name:
        case "_concurrency_mode":
            fits, wanted = value in list(MODES), f"one of {', '.join(MODES)}"
        case "_max_workers":
            fits = type(value) is int and value >= 0
            wanted = "0 for the default, or a whole number of at least 1"
        case "_retries" | "_stop_after_failures":
            fits = type(value) is int and value >= 0
            wanted = "a whole number, 0 for none"
        case "_timeout" | "_backoff":
            fits, wanted = _is_seconds(value), "a number of seconds, at least 0"
        case "_retry_on":
            fits, wanted = _names_exceptions(value), "exception classes or their names"
        case _:
            fits, wanted = isinstance(value, bool), "True or False"
    return None if fits else f"must be {wanted}; got {value!r}"


def _is_seconds(value: object) -> bool:
    return type(value) in {int, float} and 0 <= cast("float", value) < math.inf


def _names_exceptions(value: object) -> bool:
    several = isinstance(value, (list, tuple, set, frozenset))
    found = list(cast("list[object]", value)) if several else [value]
    return bool(found) and all(
        issubclass(one, BaseException)
        if isinstance(one, type)
        else isinstance(one, str) and all(part.isidentifier() for part in one.split("."))
        for one in found
    )
