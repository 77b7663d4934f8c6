"""ExecutionSettings: how an operator is run.

`ExecutionSettings` is the only list of execution settings. Three forms are generated from it: the
keywords of registrations and constructors, the fields of the launchpad, and the fields of a
defs.yaml. The keywords have a leading underscore (``_max_workers=48``), so that they never collide
with an operator's own options. Precedence: the instance > the registration > the default.
"""

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, fields
from functools import cache
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

from dagster_dataops.errors import OperatorOptionError
from dagster_dataops.foundation.frozen import frozen
from dagster_dataops.foundation.override import override
from dagster_dataops.operators.options.concurrency_modes import (
    MODES,
    default_stop_after,
    mode_named,
)

# Exception classes, or their names: ``TimeoutError``, ``httpx.HTTPError``.
RetryOn: TypeAlias = tuple[type[BaseException] | str, ...]
DEFAULT_BACKOFF: Final = 0.5
COUNTED: Final = "count"
FAILING: Final = "error"
ALLOWED: Final = "allow"
MISSING_RULES: Final = (COUNTED, FAILING, ALLOWED)
DEFAULT_BATCH_SIZE: Final = 32


class AgentResources(dict[str, Any]):
    """Resources of its machine that an agent reserves, by name; immutable."""

    @override
    def __hash__(self) -> int:  # type: ignore[override]
        return hash(repr(sorted(self.items())))


class SettingKind(NamedTuple):
    """The values that a setting can have.

    Attributes:
        allowed: The values in words, for errors; empty if ``names`` returns them.
        fits: Return whether a value is one of them.
        json_type: The type in JSON Schema.
        names: Return the values if others may be added.
    """

    allowed: str
    fits: Callable[[Any], bool]
    json_type: str
    names: Callable[[], Iterable[str]] = tuple

    def in_words(self) -> str:
        """Return the values, for errors."""
        return self.allowed or f"one of {', '.join(self.names())}"


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_name(value: object) -> bool:
    return isinstance(value, str)


def _is_seconds(value: object) -> bool:
    return type(value) in {int, float} and 0 <= cast("float", value) < math.inf


def _names_exceptions(value: object) -> bool:
    several = isinstance(value, (list, tuple, set, frozenset))
    entries = list(cast("list[object]", value)) if several else [value]
    return bool(entries) and all(
        issubclass(entry, BaseException)
        if isinstance(entry, type)
        else isinstance(entry, str) and all(part.isidentifier() for part in entry.split("."))
        for entry in entries
    )


MODE: Final = SettingKind("", lambda value: value in list(MODES), "string", lambda: MODES)
WORKERS: Final = SettingKind(
    "0 for the default, or a whole number of at least 1", _is_count, "integer"
)
COUNT: Final = SettingKind("a whole number, 0 for none", _is_count, "integer")
SECONDS: Final = SettingKind("a number of seconds, at least 0", _is_seconds, "number")
EXCEPTIONS: Final = SettingKind("exception classes or their names", _names_exceptions, "array")
AGENTS: Final = SettingKind(
    "a dict of resources that an agent reserves, such as {'num_gpus': 1}, or False",
    lambda value: value is False or (isinstance(value, Mapping) and all(map(_is_name, value))),
    "object",
)
MISSING: Final = SettingKind(
    f"one of {', '.join(MISSING_RULES)}", lambda value: value in list(MISSING_RULES), "string"
)
FLAG: Final = SettingKind("True or False", lambda value: isinstance(value, bool), "boolean")


def _of(kind: SettingKind, *, yaml: bool = True, launchpad: bool = True) -> Mapping[str, Any]:
    """Return the metadata of a setting."""
    return {"kind": kind, "yaml": yaml, "launchpad": launchpad}


@frozen(eq=True)
class ExecutionSettings:
    """How an operator is run. ``None`` means that a setting is not given.

    Attributes:
        concurrency_mode: Where calls run: `process` for operators that compute, `thread` or
            `async` for operators that wait, `single` for debugging, or the name of a registered
            workplace.
        max_workers: Number of processes, or of calls in flight. 0 is the default: the usable
            cores, or 5 per core but at least 32 and at most 128 calls.
        save_data: Whether the result and a checkpoint are written below the root of the results.
        ignore_errors: Whether a failed record goes to the error file and the others continue.
            Otherwise the first failed record fails the step.
        timeout: Seconds that one call on one record may take; 0 for no limit.
        retries: Number of further attempts for a failed record.
        retry_on: Exceptions after which there is another attempt, such as `TimeoutError` or
            `httpx.HTTPError`; by default every `Exception`.
        backoff: Seconds before the second attempt, about doubled before each further one.
        reuse_outcomes: Whether outcomes of records are kept for later runs: after the input has
            changed, only records that are new in it are processed: those of which a column has
            changed that the operator reads.
        trace: Whether the map from input records to result lines is written, which `trace` reads:
            at most a few bytes a record, and nothing if every record became one line.
        fresh_workers: Whether worker processes are started for this operator alone. Otherwise
            processes that served other operators, with their modules loaded, are used again.
        max_worker_memory_mb: Megabytes that calls may add to the memory of their worker process; 0
            for no limit. A record that needs more is a failed record, and the others go on. It
            holds in process mode, on Linux.
        stop_after_failures: Number of calls that must fail with one exception, without a success
            in between, to stop the run; a later run resumes there. 0 never stops it, and
            publishes even a result whose records all failed.
        drain_seconds: How long a run that is canceled or stops waits for the calls in flight, so
            that none has to be made again. No new call is begun. 0 abandons them at once. 20 for
            threads and asyncio, otherwise 0; in single mode it has no effect.
        missing: What to do about a column that the operator reads and a record lacks: `count`
            stops the run before anything is published if every record lacks it, and otherwise
            counts these records; with `error` each of them fails; `allow` does neither. A column
            that is ``null`` is there.
        batch_size: Number of records that ``forward_batch`` gets at once; 32 by default. Batches
            begin at fixed records of the input, whatever the mode and the number of workers. A
            change makes finished records count as made with other options.
        agents: Resources of its machine that each agent reserves, by the cluster's names:
            ``{"num_gpus": 1}``. Without a cluster, that divides the GPUs of this machine: there is
            one process for each, whatever ``max_workers`` is; other resources need a cluster. False
            runs the operator on this machine. Otherwise operators in process mode use the cluster
            of the run, if it has one.
        keep_versions: Number of earlier results that are kept whole beside the published one, to
            compare with it and to publish them again; 0 by default. On one file system they are
            hard links and take no time.
    """

    concurrency_mode: str | None = field(default=None, metadata=_of(MODE))
    max_workers: int | None = field(default=None, metadata=_of(WORKERS))
    save_data: bool | None = field(default=None, metadata=_of(FLAG, yaml=False, launchpad=False))
    ignore_errors: bool | None = field(default=None, metadata=_of(FLAG))
    timeout: float | None = field(default=None, metadata=_of(SECONDS))
    retries: int | None = field(default=None, metadata=_of(COUNT))
    retry_on: RetryOn | None = field(default=None, metadata=_of(EXCEPTIONS))
    backoff: float | None = field(default=None, metadata=_of(SECONDS))
    reuse_outcomes: bool | None = field(default=None, metadata=_of(FLAG, launchpad=False))
    trace: bool | None = field(default=None, metadata=_of(FLAG, launchpad=False))
    fresh_workers: bool | None = field(default=None, metadata=_of(FLAG, launchpad=False))
    max_worker_memory_mb: int | None = field(default=None, metadata=_of(COUNT))
    stop_after_failures: int | None = field(default=None, metadata=_of(COUNT))
    drain_seconds: float | None = field(default=None, metadata=_of(SECONDS))
    missing: str | None = field(default=None, metadata=_of(MISSING))
    batch_size: int | None = field(default=None, metadata=_of(WORKERS, launchpad=False))
    agents: AgentResources | Literal[False] | None = field(
        default=None, metadata=_of(AGENTS, launchpad=False)
    )
    keep_versions: int | None = field(default=None, metadata=_of(COUNT, launchpad=False))

    def over(self, lower: "ExecutionSettings") -> "ExecutionSettings":
        """Return these settings; missing ones are taken from ``lower``."""
        return ExecutionSettings(**{**lower.set_values(), **self.set_values()})

    def set_values(self) -> dict[str, Any]:
        """Return the settings that are given, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def resolved(self, *, asynchronous: bool) -> "ResolvedSettings":
        """Return these settings with every default filled in."""
        mode = self.concurrency_mode or ("async" if asynchronous else "process")
        chosen = mode_named(mode)
        workers = self.max_workers or chosen.default_workers()
        filled: dict[str, Any] = {
            "stop_after_failures": default_stop_after(mode, workers),
            "drain_seconds": chosen.drain_seconds,
            **self.set_values(),
            "concurrency_mode": mode,
            "max_workers": workers,
            "timeout": self.timeout or None,
        }
        return ResolvedSettings(**filled)


class ResolvedSettings(NamedTuple):
    """`ExecutionSettings` with every default filled in.

    ``timeout`` is ``None`` without a limit. ``retry_on`` is ``None`` if every ``Exception`` counts.
    """

    concurrency_mode: str
    max_workers: int
    timeout: float | None
    stop_after_failures: int
    drain_seconds: float
    save_data: bool = True
    ignore_errors: bool = True
    retries: int = 0
    retry_on: RetryOn | None = None
    backoff: float = DEFAULT_BACKOFF
    reuse_outcomes: bool = False
    trace: bool = True
    fresh_workers: bool = False
    max_worker_memory_mb: int = 0
    missing: str = COUNTED
    batch_size: int = DEFAULT_BATCH_SIZE
    agents: AgentResources | Literal[False] | None = None
    keep_versions: int = 0


class Setting(NamedTuple):
    """One execution setting. The keyword, the YAML field and the launchpad field are made from it.

    Attributes:
        kind: The values that it can have.
        description: Text of the docstring of `ExecutionSettings`.
        yaml: Whether the operators of a defs.yaml have it.
        launchpad: Whether it can be changed in the launchpad.
    """

    kind: SettingKind
    description: str
    yaml: bool
    launchpad: bool


@cache
def execution_settings() -> dict[str, Setting]:
    """Return every setting by name, without its underscore, in order."""
    from dagster_dataops.operators.options.docstrings import (
        described_parameters,  # import takes 30 ms
    )

    texts = described_parameters(inspect.cleandoc(ExecutionSettings.__doc__ or ""))
    return {
        setting.name: Setting(description=" ".join(texts[setting.name].split()), **setting.metadata)
        for setting in fields(ExecutionSettings)
    }


_KINDS: Final[Mapping[str, SettingKind]] = {
    f"_{setting.name}": setting.metadata["kind"] for setting in fields(ExecutionSettings)
}
SETTING_NAMES: Final = frozenset(_KINDS)
REMOVED_SETTINGS: Final[Mapping[str, str]] = {
    "_part_records": "was removed: a result is one file. For other programs, write files of so many"
    " records with a node export.Jsonl('<folder>', records_per_file=...)",
}
"""Why a setting of earlier versions is refused, by its name."""


def parse_settings(operator: str, settings: Mapping[str, object]) -> ExecutionSettings:
    """Check settings written with their underscore.

    Args:
        operator: Qualified name, for the error.
        settings: Some of `SETTING_NAMES`; ``None`` values, and 0 workers, count as not given.

    Raises:
        OperatorOptionError: A setting has an invalid value.
    """
    for name, value in settings.items():
        kind = _KINDS[name]
        if value is not None and not kind.fits(value):
            raise OperatorOptionError(operator, name, f"must be {kind.in_words()}; got {value!r}")
    values = {name.removeprefix("_"): value for name, value in settings.items()}
    for name in ("max_workers", "batch_size"):
        values[name] = values.get(name) or None
    if isinstance(values.get("retry_on"), (str, type)):
        values["retry_on"] = (values["retry_on"],)
    elif values.get("retry_on") is not None:
        values["retry_on"] = tuple(cast("list[str]", values["retry_on"]))
    if isinstance(values.get("agents"), Mapping):
        values["agents"] = AgentResources(cast("Mapping[str, Any]", values["agents"]))
    return ExecutionSettings(**cast("dict[str, None]", values))
