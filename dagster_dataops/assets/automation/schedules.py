"""Schedules of a pipeline: by a cron line, or once per time window after the window has closed."""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import dagster as dg

from dagster_dataops.errors import ConfigurationError

EACH_WINDOW: Final = "@window"
_ALIASES: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
}
Schedule: TypeAlias = "dg.ScheduleDefinition | UnresolvedSchedule"
UnresolvedSchedule: TypeAlias = Any  # the class has no public name


def pipeline_schedule(
    job: Any, cron: str, partitions_def: dg.PartitionsDefinition | None
) -> Schedule:
    """Return the schedule of a pipeline's job.

    Args:
        job: Job of the assets with these partitions.
        cron: Cron line. A time window is materialized after it has closed, so the cron line must
            match once per window; ``@window`` is the moment the window closes. With static
            partitions each tick materializes all of them.
        partitions_def: Partitions of the job.

    Raises:
        ConfigurationError: The partitions have no schedule, or ``cron`` does not fit them.
    """
    name = f"{job.name}_schedule"
    if partitions_def is None and cron != EACH_WINDOW:
        return dg.ScheduleDefinition(name=name, job=job, cron_schedule=cron)
    windows = _windows_of(partitions_def)
    if windows is not None:
        moment = _moment(cron, windows)
        return dg.build_schedule_from_partitioned_job(job, name=name, **moment)
    if isinstance(partitions_def, dg.StaticPartitionsDefinition) and cron != EACH_WINDOW:
        return _static_schedule(name, job, cron, partitions_def)
    allowed = (
        f"a cron line without partitions or with static ones; with time windows, {EACH_WINDOW!r} "
        "or a cron line that matches once per window; with dynamic partitions, none: use "
        "new_files=... or automation_condition=... instead"
    )
    raise ConfigurationError("schedule", cron, allowed)


def _static_schedule(
    name: str, job: Any, cron: str, partitions_def: dg.StaticPartitionsDefinition
) -> dg.ScheduleDefinition:
    def each(_: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest]:
        for key in partitions_def.get_partition_keys():
            yield dg.RunRequest(run_key=key, partition_key=key)

    return dg.ScheduleDefinition(name=name, job=job, cron_schedule=cron, execution_fn=each)


def _windows_of(
    partitions_def: dg.PartitionsDefinition | None,
) -> dg.TimeWindowPartitionsDefinition | None:
    """Return the dimension of time windows, if there is exactly one."""
    if isinstance(partitions_def, dg.MultiPartitionsDefinition):
        found = [dimension.partitions_def for dimension in partitions_def.partitions_defs]
        windows = [one for one in found if isinstance(one, dg.TimeWindowPartitionsDefinition)]
        return windows[0] if len(windows) == 1 else None
    return partitions_def if isinstance(partitions_def, dg.TimeWindowPartitionsDefinition) else None


def _moment(cron: str, windows: dg.TimeWindowPartitionsDefinition) -> dict[str, Any]:
    """Return minute, hour and day of a cron line that matches once per window.

    Raises:
        ConfigurationError: The cron line matches more or less often.
    """
    line = _ALIASES.get(cron, cron)
    if cron == EACH_WINDOW or line == windows.get_cron_schedule():
        return {}
    minute, hour, day, _, weekday = (*line.split(), *"*****")[:5]
    names = ("minute_of_hour", "hour_of_day", "day_of_month", "day_of_week")
    fields = zip(names, (minute, hour, day, weekday), strict=True)
    moment: dict[str, Any] = {name: int(field) for name, field in fields if field.isdecimal()}
    try:
        found = windows.get_cron_schedule(**moment)
    except Exception:  # noqa: BLE001 - Dagster's own checks, whose error has no public name
        found = ""
    if found != line:
        own = windows.get_cron_schedule()
        allowed = f"{EACH_WINDOW!r} or a cron line that matches once per window, such as {own!r}"
        raise ConfigurationError("schedule", cron, allowed)
    return moment
