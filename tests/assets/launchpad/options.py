"""Operators with one option, and launches that change it."""

import dataclasses
import enum
from pathlib import Path
from typing import Annotated, Any

import dagster as dg
import pydantic
from dagster._core.snap.snap_to_yaml import default_values_yaml_from_type_snap
from dagster_shared.yaml_utils import load_run_config_yaml

from dagster_dataops import Operator
from dagster_dataops.assets.launchpad.config_schema import config_field
from dagster_dataops.assets.launchpad.operator_config import configured
from tests.assets.helpers import definitions_of, pipeline_of
from tests.registries import OperatorRegistry


class Color(enum.Enum):
    RED = "red"
    BLUE = 2


class Client:
    pass


@dataclasses.dataclass
class Sampling:
    temperature: float = 0.7
    stop: list[str] | None = None


class Model(pydantic.BaseModel):
    name: str = "small"
    size: Annotated[int, pydantic.Field(ge=1, description="Of it, in billions.")] = 7


def operator_of(annotation: Any, value: Any) -> Operator:
    def node(record: dict, option: Any = value) -> dict:
        return record

    node.__annotations__["option"] = annotation
    made: Operator = OperatorRegistry(lambda *_: None)("data.text")(node)()
    return made


def scaffolded(operator: Operator) -> Any:
    """Return the configuration of a launch with what the launchpad proposes."""
    definitions = definitions_of(pipeline_of(node=operator), "texts.jsonl", Path("nowhere"))
    job = definitions.resolve_implicit_global_asset_job_def()
    snapshot = job.get_config_schema_snapshot()
    root = snapshot.get_config_snap(job.run_config_schema.run_config_schema_type.key)
    filled = load_run_config_yaml(default_values_yaml_from_type_snap(snapshot, root))
    resolved = dg.validate_run_config(job, as_a_page_has_it(filled))
    return resolved["ops"]["docs__node"]["config"]


def as_a_page_has_it(value: Any) -> Any:
    """Return numbers as JavaScript has them: it has one kind of number."""
    if isinstance(value, dict):
        return {key: as_a_page_has_it(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_a_page_has_it(item) for item in value]
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return int(value) if whole else value


def given_in_launchpad(operator: Operator, value: Any) -> Operator:
    return configured(operator, {"params": {"option": value}})


def params_of(operator: Operator) -> dg.Field:
    """Return the field of all options."""
    return fields_of(config_field(operator))["params"]


def fields_of(field: dg.Field) -> dict[str, dg.Field]:
    """Return the fields in a field."""
    return field.config_type.fields  # type: ignore[attr-defined, no-any-return]
