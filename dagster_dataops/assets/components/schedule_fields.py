"""The field of a defs.yaml for the schedule: a cron line, or an object with all of it."""

import inspect
from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeAlias

import dagster as dg
from pydantic import BeforeValidator, Field, WithJsonSchema

from dagster_dataops.assets.automation.schedules import PipelineSchedule
from dagster_dataops.assets.components.source_position import or_template, written
from dagster_dataops.operators.options.docstrings import described_parameters

_TEXTS: Final = described_parameters(inspect.cleandoc(PipelineSchedule.__doc__ or ""))


class ScheduleModel(dg.Model):
    """When a schedule materializes the pipeline, and how."""

    cron: str = Field(description=_TEXTS["cron"], examples=["0 2 * * *"])
    timezone: str | None = Field(
        default=None, description=_TEXTS["timezone"], examples=["Europe/Berlin"]
    )
    running: Annotated[bool | str, or_template("boolean")] = Field(
        default=False, description=_TEXTS["running"]
    )
    run_config: dict[str, Any] | None = Field(default=None, description=_TEXTS["run_config"])
    tags: dict[str, str] | None = Field(default=None, description=_TEXTS["tags"])


def _as_fields(value: object) -> object:
    """Return a cron line as the fields of the object; errors then name the field."""
    if isinstance(value, str):
        return {"cron": value}
    if isinstance(value, (Mapping, ScheduleModel)):
        return value
    msg = "a schedule must be a cron line, or an object with `cron`"
    raise ValueError(msg)


ScheduleField: TypeAlias = Annotated[
    ScheduleModel,
    BeforeValidator(_as_fields),
    WithJsonSchema({**ScheduleModel.model_json_schema(), "type": ["string", "object"]}),
]


def resolve_schedule(context: dg.ResolutionContext, model: ScheduleModel) -> PipelineSchedule:
    """Return the schedule, with templates filled in."""
    return PipelineSchedule(**written(context, model))
