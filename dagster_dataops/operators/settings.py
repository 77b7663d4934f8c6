"""ExecutionSettings: how an operator is run, as against what it does.

Written with a leading underscore where an operator is constructed or registered
(``_max_workers=48``), so that they never collide with an operator's own options. Precedence:
operator instance over registration over default.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final, Literal, TypeAlias, cast, get_args

from dagster_dataops.errors import OperatorOptionError

ConcurrencyMode: TypeAlias = Literal["process", "thread", "async", "single"]
MODES: Final[tuple[str, ...]] = get_args(ConcurrencyMode)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionSettings:
    """How an operator is run; ``None`` leaves a setting to whoever comes next.

    Attributes:
        concurrency_mode: ``process`` for work that computes, ``thread`` or ``async`` for work
            that waits, ``single`` for debugging.
        max_workers: Processes, or calls in flight; at least 1.
        save_data: Whether the result and a checkpoint are written below the results' root.
        ignore_errors: Whether a failing record goes to the error file (and the others go on)
            or fails the step.
    """

    concurrency_mode: ConcurrencyMode | None = None
    max_workers: int | None = None
    save_data: bool | None = None
    ignore_errors: bool | None = None

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
        return ResolvedSettings(
            concurrency_mode=mode,
            max_workers=self.max_workers or default_workers(mode),
            save_data=self.save_data is not False,
            ignore_errors=self.ignore_errors is not False,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedSettings:
    """`ExecutionSettings` with nothing left open."""

    concurrency_mode: ConcurrencyMode
    max_workers: int
    save_data: bool
    ignore_errors: bool


SETTING_NAMES: Final = frozenset(f"_{field.name}" for field in fields(ExecutionSettings))


def default_workers(mode: ConcurrencyMode) -> int:
    """Return the workers of ``mode``: the usable cores, or calls in flight as LazyLLM has them."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    match mode:
        case "process":
            return cores or 1
        case "thread" | "async":
            return min(max(32, 5 * (cores or 1)), 128)
        case "single":
            return 1


def parse_settings(operator: str, given: Mapping[str, object]) -> ExecutionSettings:
    """Check settings written with their underscore.

    Args:
        operator: Qualified name, for the error.
        given: Some of `SETTING_NAMES`; ``None`` values count as not given.

    Raises:
        OperatorOptionError: A value that the setting cannot have.
    """
    for name, value in given.items():
        if value is not None and (reason := _fault(name, value)):
            raise OperatorOptionError(operator, name, reason)
    values = {name.removeprefix("_"): value for name, value in given.items()}
    return ExecutionSettings(**cast("dict[str, None]", values))


def _fault(name: str, value: object) -> str | None:
    if name == "_concurrency_mode" and value not in MODES:
        return f"must be one of {', '.join(MODES)}; got {value!r}"
    if name == "_max_workers" and (type(value) is not int or value < 1):
        return f"must be a whole number of at least 1; got {value!r}"
    if name in {"_save_data", "_ignore_errors"} and not isinstance(value, bool):
        return f"must be True or False; got {value!r}"
    return None
