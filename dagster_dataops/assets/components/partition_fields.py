"""What a defs.yaml says of partitions and of how steps are run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import dagster as dg
from pydantic import Field

from dagster_dataops.assets.automation.sensors import NewFiles
from dagster_dataops.assets.components.source_position import rendered

_PARTITIONS: Final[Mapping[str, type[dg.PartitionsDefinition]]] = {
    "hourly": dg.HourlyPartitionsDefinition,
    "daily": dg.DailyPartitionsDefinition,
    "weekly": dg.WeeklyPartitionsDefinition,
    "monthly": dg.MonthlyPartitionsDefinition,
    "time_window": dg.TimeWindowPartitionsDefinition,
    "static": dg.StaticPartitionsDefinition,
    "dynamic": dg.DynamicPartitionsDefinition,
}


class PartitionsModel(dg.Model):
    """Partitions by time, by name, or added while it runs; the fields are those of Dagster."""

    type: Literal["hourly", "daily", "weekly", "monthly", "time_window", "static", "dynamic"]
    start_date: str = Field(default="", description="Of partitions by time, such as 2026-01-31.")
    end_date: str = Field(default="", description="Of partitions by time.")
    timezone: str = Field(default="", description="Of partitions by time, such as Europe/Paris.")
    minute_offset: int = Field(default=0, description="At which minute a partition begins.")
    hour_offset: int = Field(default=0, description="At which hour a partition begins.")
    day_offset: int = Field(default=0, description="On which day a partition begins.")
    fmt: str = Field(default="", description="Format of the keys of time windows.")
    cron_schedule: str = Field(default="", description="When time windows begin.")
    partition_keys: list[str] = Field(default=[], description="Of static partitions.")
    name: str = Field(default="", description="Of dynamic partitions.")


def resolve_partitions(
    context: dg.ResolutionContext, model: PartitionsModel | None
) -> dg.PartitionsDefinition | None:
    """Return the partitions."""
    if model is None:
        return None
    given: dict[str, Any] = rendered(context, model.model_dump(exclude_unset=True))
    kind = given.pop("type")
    if kind == "time_window":
        given = {{"start_date": "start", "end_date": "end"}.get(k, k): v for k, v in given.items()}
    return _PARTITIONS[kind](**given)


class NewFilesModel(dg.Model):
    """How new input files become dynamic partitions; the fields are those of `NewFiles`."""

    settle_seconds: float = Field(
        default=NewFiles().settle_seconds,
        ge=0,
        description="Seconds for which a file must not have changed.",
    )
    runs_per_tick: int = Field(
        default=NewFiles().runs_per_tick, ge=1, description="Most files a tick."
    )
    changed: bool = Field(
        default=NewFiles().changed,
        description="Whether a file that has changed since is processed again.",
    )
    launch: bool = Field(
        default=NewFiles().launch,
        description="Whether runs are launched, or partitions added and no more.",
    )
    interval_seconds: int = Field(
        default=NewFiles().interval_seconds, description="Least seconds between two ticks."
    )
    running: bool = Field(
        default=NewFiles().running,
        description="Whether the sensor is switched on to begin with.",
    )


def resolve_new_files(
    context: dg.ResolutionContext,  # noqa: ARG001
    model: NewFilesModel | None,
) -> NewFiles | None:
    """Return how new files become partitions."""
    return None if model is None else NewFiles(**model.model_dump())


class BackfillPolicyModel(dg.Model):
    """How the partitions of a backfill are spread over runs."""

    type: Literal["single_run", "multi_run"]
    max_partitions_per_run: int = Field(default=1, ge=1, description="Of `multi_run`.")


class OpModel(dg.Model):
    """Pool and backfill policy of the steps."""

    pool: str | None = Field(
        default=None,
        description="Concurrency pool; that of a single operator stands with it.",
    )
    backfill_policy: BackfillPolicyModel | None = Field(
        default=None, description="How the partitions of a backfill are spread over runs."
    )


@dataclass(frozen=True, kw_only=True)
class PipelineOp:
    """How the steps of all operators are run.

    Attributes:
        pool: Concurrency pool of those that name none themselves.
        backfill_policy: How the partitions of a backfill are spread over runs.
    """

    pool: str | None = None
    backfill_policy: dg.BackfillPolicy | None = None


def resolve_op(context: dg.ResolutionContext, model: OpModel | None) -> PipelineOp | None:
    """Return how the steps are run."""
    if model is None:
        return None
    return PipelineOp(
        pool=rendered(context, model.pool), backfill_policy=_backfill_policy(model.backfill_policy)
    )


def _backfill_policy(model: BackfillPolicyModel | None) -> dg.BackfillPolicy | None:
    if model is None:
        return None
    if model.type == "single_run":
        return dg.BackfillPolicy.single_run()
    return dg.BackfillPolicy.multi_run(model.max_partitions_per_run)
