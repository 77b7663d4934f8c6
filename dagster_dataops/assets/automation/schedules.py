"""Schedules of a pipeline: by a cron line, or once per time window after the window has closed."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any, Final, TypeAlias
from zoneinfo import ZoneInfo

import dagster as dg

from dagster_dataops.assets.planning.run_tags import run_tags
from dagster_dataops.assets.runtime.environment_values import as_run_config, check_written
from dagster_dataops.errors import ConfigurationError
from dagster_dataops.operators.secrets.secret_options import redacted
from dagster_dataops.operators.secrets.secret_texts import HIDDEN, without_named

EACH_WINDOW: Final = "@window"
_ALIASES: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
}
_CRON: Final = "a cron line of five fields, such as '0 2 * * *', or an alias such as '@daily'"
_ANY: Final = dg.mem_io_manager  # stands for a resource of the rest of the code location
_NOT_SET: Final = "FAILED_POST_PROCESSING"  # Dagster's reason for a variable that is not set
_NAMES: Final = frozenset(  # Dagster's reasons whose messages have names, but no values
    {
        "FIELD_NOT_DEFINED",
        "FIELDS_NOT_DEFINED",
        "FIELD_ALIAS_COLLISION",
        "MISSING_REQUIRED_FIELD",
        "MISSING_REQUIRED_FIELDS",
        "SELECTOR_FIELD_ERROR",
    }
)
_TYPES: Final = {  # by the kind of a type of Dagster without a name
    "ARRAY": "list",
    **dict.fromkeys(("MAP", "STRICT_SHAPE", "PERMISSIVE_SHAPE", "SELECTOR"), "dict"),
}
_LONGEST: Final = 500  # characters of one of Dagster's reasons, which may list the whole schema
_FIELDS: Final[tuple[tuple[str, tuple[type, ...], str], ...]] = (
    ("cron", (str,), _CRON),
    ("running", (bool,), "true or false"),
    ("run_config", (Mapping, dg.RunConfig, NoneType), "the run config of a job: a mapping"),
)
Schedule: TypeAlias = "dg.ScheduleDefinition | UnresolvedSchedule"
UnresolvedSchedule: TypeAlias = Any  # the class has no public name


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSchedule:
    """When a schedule materializes a pipeline, and how.

    Attributes:
        cron: Cron line, as for ``schedule``.
        timezone: Time zone of the cron line, such as ``Europe/Berlin``; by default UTC. With time
            windows it is that of the windows.
        running: Whether the schedule is on from the start.
        run_config: Run config of its runs. A ``dg.EnvVar`` in it is read when a run starts. With
            time windows the runs have none.
        tags: Tags of its runs.
    """

    cron: str
    timezone: str | None = None
    running: bool = False
    run_config: Mapping[str, Any] | dg.RunConfig | None = None
    tags: Mapping[str, str] | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The arguments that all kinds of Dagster's schedules take.

        Raises:
            ConfigurationError: A field has a value of another type, or the time zone or a tag is
                invalid.
        """
        status = dg.DefaultScheduleStatus
        self._check_types()
        if self.timezone is not None:
            _check_timezone(self.timezone)
        return {
            "default_status": status.RUNNING if self.running else status.STOPPED,
            "tags": run_tags("schedule.tags", self.tags),
        }

    @property
    def config(self) -> dict[str, Any] | None:
        """The run config as a mapping, with the names of environment variables."""
        settings: Any = self.run_config
        if settings is None:
            return None
        whole = settings if isinstance(settings, Mapping) else settings.to_config_dict()
        config: dict[str, Any] = as_run_config(whole)
        return config

    def _check_types(self) -> None:
        for name in ("cron", "timezone", "tags"):
            check_written(f"schedule.{name}", getattr(self, name))
        for name, kinds, allowed in _FIELDS:
            value = getattr(self, name)
            if not isinstance(value, kinds):
                shown = without_named(value) if isinstance(value, str) else redacted(name, value)
                raise ConfigurationError(f"schedule.{name}", shown, allowed)


def pipeline_schedule(
    job: Any, schedule: str | PipelineSchedule, partitions_def: dg.PartitionsDefinition | None
) -> Schedule:
    """Return the schedule of a pipeline's job.

    Args:
        job: Job of the assets with these partitions.
        schedule: Cron line, or the schedule with it. A time window is materialized after it has
            closed, so the cron line must match once per window; ``@window`` is the moment the
            window closes. With static partitions each tick materializes all of them.
        partitions_def: Partitions of the job.

    Raises:
        ConfigurationError: The partitions have no schedule, or ``schedule`` does not fit them.
    """
    name = f"{job.name}_schedule"
    asked = schedule if isinstance(schedule, PipelineSchedule) else PipelineSchedule(cron=schedule)
    cron, options = asked.cron, asked.options
    windows = _windows_of(partitions_def)
    if windows is not None:
        _check_windows(asked, windows)
        moment = _moment(cron, windows)
        return dg.build_schedule_from_partitioned_job(job, name=name, **moment, **options)
    options["execution_timezone"] = asked.timezone
    if partitions_def is None and cron != EACH_WINDOW:
        return _defined(cron, name=name, job=job, run_config=asked.config, **options)
    if isinstance(partitions_def, dg.StaticPartitionsDefinition) and cron != EACH_WINDOW:
        return _static_schedule(name, job, asked, partitions_def, options)
    allowed = (
        f"a cron line without partitions or with static ones; with time windows, {EACH_WINDOW!r} "
        "or a cron line that matches once per window; with dynamic partitions, none: use "
        "new_files=... or automation_condition=... instead"
    )
    raise ConfigurationError("schedule", cron, allowed)


def _defined(cron: str, **keywords: Any) -> dg.ScheduleDefinition:
    """Return a schedule of Dagster; its error for a cron line names no setting."""
    try:
        return dg.ScheduleDefinition(cron_schedule=cron, **keywords)
    except dg.DagsterInvalidDefinitionError as error:
        if "cron" not in str(error):
            raise
        raise ConfigurationError("schedule", cron, _CRON) from None


def check_run_config(
    schedule: object, job: str, hooks: Iterable[dg.HookDefinition], definitions: dg.Definitions
) -> None:
    """Check that the run config of a schedule fits its job, as far as a pipeline knows the job.

    Resources of the rest of the code location are not known, nor environment variables of the runs.

    Raises:
        ConfigurationError: The run config has an unknown key, or a value of another type.
    """
    config = schedule.config if isinstance(schedule, PipelineSchedule) else None
    if config is None:
        return
    resources, known = config.get("resources"), definitions.resources or {}
    if isinstance(resources, Mapping):
        own_resources = {name: value for name, value in resources.items() if name in known}
        wanted = {**config, "resources": own_resources}
    else:
        wanted = config
    others = dg.Definitions(
        resources=dict.fromkeys(_required(hooks, definitions) - known.keys(), _ANY)
    )
    resolved = dg.Definitions.merge(definitions, others).resolve_job_def(job)
    try:
        dg.validate_run_config(resolved, {str(name): value for name, value in wanted.items()})
    except dg.DagsterInvalidConfigError as error:
        reasons = [_reason(fault) for fault in error.errors if fault.reason.name != _NOT_SET]
        if reasons:
            allowed = f"the run config of {job}: {' '.join(reasons)}"
            raise ConfigurationError("schedule.run_config", HIDDEN, allowed) from None


def _required(hooks: Iterable[dg.HookDefinition], definitions: dg.Definitions) -> set[str]:
    """Return the keys of the resources that definitions and hooks need."""
    assets = (asset for asset in definitions.assets or () if isinstance(asset, dg.AssetsDefinition))
    users: list[Any] = [*assets, *(definitions.asset_checks or ()), *hooks]
    return {key for user in users for key in user.required_resource_keys}


def _reason(error: Any) -> str:
    """Return the reason of one of Dagster's errors without the value, which may be private."""
    if error.reason.name in _NAMES:
        message = str(error.message)
        return message if len(message) <= _LONGEST else f"{message[:_LONGEST]}..."
    path = ":".join(["root", *error.stack.levels])
    wanted = getattr(error.error_data, "config_type_snap", None)
    if wanted is None:
        return f"The value at path {path} is invalid."
    if wanted.enum_values:
        expected = f"one of {', '.join(repr(value.value) for value in wanted.enum_values)}"
    else:
        expected = wanted.given_name or _TYPES.get(wanted.kind.name, wanted.kind.name)
    return f"The value at path {path} must be {expected}."


def _check_timezone(timezone: str) -> None:
    try:
        ZoneInfo(timezone)
    except (KeyError, OSError, TypeError, ValueError):  # an unknown or impossible name
        allowed = "the name of a time zone, such as 'UTC' or 'Europe/Berlin'"
        raise ConfigurationError("schedule.timezone", timezone, allowed) from None


def _check_windows(asked: PipelineSchedule, windows: dg.TimeWindowPartitionsDefinition) -> None:
    """Check what a schedule of time windows cannot have."""
    if asked.timezone not in (None, windows.timezone):
        allowed = f"that of the time windows, {windows.timezone!r}, or left out"
        raise ConfigurationError("schedule.timezone", asked.timezone, allowed)
    if asked.run_config is not None:
        allowed = "left out: schedules of time windows have no run config"
        raise ConfigurationError("schedule.run_config", HIDDEN, allowed)


def _static_schedule(
    name: str,
    job: Any,
    asked: PipelineSchedule,
    partitions_def: dg.StaticPartitionsDefinition,
    options: dict[str, Any],
) -> dg.ScheduleDefinition:
    tags = options.pop("tags")  # Dagster takes them from the requests

    def each(_: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest]:
        for key in partitions_def.get_partition_keys():
            yield dg.RunRequest(run_key=key, partition_key=key, run_config=asked.config, tags=tags)

    return _defined(asked.cron, name=name, job=job, execution_fn=each, **options)


def _windows_of(
    partitions_def: dg.PartitionsDefinition | None,
) -> dg.TimeWindowPartitionsDefinition | None:
    """Return the dimension of time windows, if there is exactly one."""
    if isinstance(partitions_def, dg.MultiPartitionsDefinition):
        dimensions = [dimension.partitions_def for dimension in partitions_def.partitions_defs]
        windows = [
            dimension
            for dimension in dimensions
            if isinstance(dimension, dg.TimeWindowPartitionsDefinition)
        ]
        return windows[0] if len(windows) == 1 else None
    return partitions_def if isinstance(partitions_def, dg.TimeWindowPartitionsDefinition) else None


def _moment(cron: str, windows: dg.TimeWindowPartitionsDefinition) -> dict[str, Any]:
    """Return minute, hour and day of a cron line that matches once per window."""
    line = _ALIASES.get(cron, cron)
    if cron == EACH_WINDOW or line == windows.get_cron_schedule():
        return {}
    minute, hour, day, _, weekday = (*line.split(), *"*****")[:5]
    names = ("minute_of_hour", "hour_of_day", "day_of_month", "day_of_week")
    fields = zip(names, (minute, hour, day, weekday), strict=True)
    moment: dict[str, Any] = {name: int(field) for name, field in fields if field.isdecimal()}
    try:
        own_line = windows.get_cron_schedule(**moment)
    except Exception:  # noqa: BLE001 - Dagster's own checks, whose error has no public name
        own_line = ""
    if own_line != line:
        example = windows.get_cron_schedule()
        allowed = (
            f"{EACH_WINDOW!r} or a cron line that matches once per window, such as {example!r}"
        )
        raise ConfigurationError("schedule", cron, allowed)
    return moment
