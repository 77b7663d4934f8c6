"""Fields of a defs.yaml for partitions, backfills and new files."""

import inspect
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final, Literal

import dagster as dg
from pydantic import Field, create_model

from dagster_dataops.assets.automation.sensors import NewFiles
from dagster_dataops.assets.components.source_position import written
from dagster_dataops.operators.options.docstrings import described_parameters

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
    """Partitions by time, by name, or added at run time; the fields are those of Dagster."""

    type: Literal["hourly", "daily", "weekly", "monthly", "time_window", "static", "dynamic"]
    start_date: str = Field(default="", description="Start of partitions by time: 2026-01-31.")
    end_date: str = Field(default="", description="End of partitions by time.")
    timezone: str = Field(default="", description="Time zone of partitions by time: Europe/Paris.")
    minute_offset: int = Field(default=0, description="Minute at which a partition begins.")
    hour_offset: int = Field(default=0, description="Hour at which a partition begins.")
    day_offset: int = Field(default=0, description="Day on which a partition begins.")
    fmt: str = Field(default="", description="Format of the keys of time windows.")
    cron_schedule: str = Field(default="", description="Cron line of the starts of time windows.")
    partition_keys: list[str] = Field(default=[], description="Keys of static partitions.")
    name: str = Field(default="", description="Name of dynamic partitions.")


def resolve_partitions(
    context: dg.ResolutionContext, model: PartitionsModel
) -> dg.PartitionsDefinition:
    """Return the partitions."""
    values = written(context, model)
    kind = values.pop("type")
    if kind == "time_window":
        values = {
            {"start_date": "start", "end_date": "end"}.get(k, k): v for k, v in values.items()
        }
    return _PARTITIONS[kind](**values)


def _new_files_model() -> type[dg.Model]:
    """Return a model with the fields of `NewFiles` and their descriptions from its docstring."""
    texts = described_parameters(inspect.cleandoc(NewFiles.__doc__ or ""))
    limits: dict[str, dict[str, Any]] = {"settle_seconds": {"ge": 0}, "runs_per_tick": {"ge": 1}}
    model_fields: dict[str, Any] = {
        entry.name: (
            type(entry.default),
            Field(
                default=entry.default, description=texts[entry.name], **limits.get(entry.name, {})
            ),
        )
        for entry in fields(NewFiles)
    }
    return create_model(
        "NewFilesModel", __base__=dg.Model, __doc__=NewFiles.__doc__, **model_fields
    )


NewFilesModel = _new_files_model()


def resolve_new_files(context: dg.ResolutionContext, model: dg.Model) -> NewFiles:
    """Return how new files become partitions."""
    return NewFiles(**written(context, model))


class BackfillPolicyModel(dg.Model):
    """The division of the partitions of a backfill into runs."""

    type: Literal["single_run", "multi_run"]
    max_partitions_per_run: int = Field(default=1, ge=1, description="Of `multi_run`.")


def resolve_backfill_policy(
    context: dg.ResolutionContext,  # noqa: ARG001
    model: BackfillPolicyModel,
) -> dg.BackfillPolicy:
    """Return the backfill policy."""
    if model.type == "single_run":
        return dg.BackfillPolicy.single_run()
    return dg.BackfillPolicy.multi_run(model.max_partitions_per_run)
