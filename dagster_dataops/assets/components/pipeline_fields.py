"""What the fields of a defs.yaml become: source, retry policy, resource."""

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal, Self, TypeAlias

import dagster as dg
from pydantic import BaseModel, Field, create_model, model_validator

from dagster_dataops.assets.components.check_fields import CheckModel, ErrorRateField
from dagster_dataops.assets.components.operator_declaration import OperatorNodeModel
from dagster_dataops.assets.components.partition_fields import (
    NewFilesModel,
    OpModel,
    PartitionsModel,
)
from dagster_dataops.assets.components.source_position import (
    YamlPlace,
    beside,
    in_project,
    rendered,
)
from dagster_dataops.assets.planning.source_assets import Source  # noqa: TC001 - text, as it is itself
from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.configuration import check_local
from dagster_dataops.errors import ConfigurationError

Modules: TypeAlias = Iterable[object]


class SourceModel(dg.Model):
    """An upstream asset, or a function of one of the modules that yields dicts."""

    asset: str | None = Field(
        default=None, description="Key of the upstream asset.", examples=["raw/documents"]
    )
    function: str | None = Field(
        default=None, description="Name of a function in `modules` that yields dicts."
    )

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if len(self.model_fields_set) != 1:
            msg = "a source is a path, `asset: <key>` or `function: <name>`"
            raise ValueError(msg)
        return self


@dataclass(frozen=True, slots=True)
class SourceFunction:
    """A source that is a function of one of the component's modules.

    Attributes:
        name: Of the function.
        place: Where it is asked for.
    """

    name: str
    place: YamlPlace

    def found_in(self, modules: Modules) -> Callable[[], Iterable[dict[str, Any]]]:
        """Return the function.

        Raises:
            ConfigurationError: None of the modules has it.
        """
        for module in modules:
            found: Any = getattr(module, self.name, None)
            if found is not None:
                return found  # type: ignore[no-any-return]
        error = ConfigurationError("source", self.name, "a function in one of `modules`")
        raise self.place.error("source", error)


def resolve_source(
    context: dg.ResolutionContext, model: str | SourceModel
) -> "Source | SourceFunction":
    """Return the source; a path is taken from the folder of the defs.yaml."""
    if isinstance(model, str):
        place = str(rendered(context, model))
        return place if "://" in place else beside(context, place)
    if model.asset is not None:
        return dg.AssetKey.from_user_string(rendered(context, model.asset))
    return SourceFunction(str(rendered(context, model.function)), YamlPlace(context))


class RetryPolicyModel(dg.Model):
    """When a failed step is tried again; it goes on where it stopped."""

    max_retries: int = Field(default=1, ge=1, description="Further attempts.")
    delay: float | None = Field(
        default=None, description="Seconds before the second attempt.", ge=0
    )
    backoff: Literal["linear", "exponential"] | None = Field(
        default=None, description="How the delay grows from one attempt to the next."
    )
    jitter: Literal["full", "plus_minus"] | None = Field(
        default=None, description="What chance does to the delay."
    )


def resolve_retry_policy(
    context: dg.ResolutionContext,  # noqa: ARG001
    model: RetryPolicyModel | None,
) -> dg.RetryPolicy | None:
    """Return the retry policy."""
    if model is None:
        return None
    return dg.RetryPolicy(
        max_retries=model.max_retries,
        delay=model.delay,
        backoff=model.backoff and dg.Backoff[model.backoff.upper()],
        jitter=model.jitter and dg.Jitter[model.jitter.upper()],
    )


def _resource_model() -> type[dg.Model]:
    """Return the fields of the resource, each of which may be a template."""
    fields: dict[str, Any] = {
        name: (info.annotation | str, Field(default=None, description=info.description))
        for name, info in DataOpsResource.model_fields.items()
    }
    return create_model("DataOpsResourceModel", __base__=dg.Model, **fields)


ResourceModel = _resource_model()


def resolve_resource(
    context: dg.ResolutionContext, model: dg.Model | None
) -> DataOpsResource | None:
    """Return the resource; its root is taken from the folder of the project."""
    if model is None:
        return None
    given = rendered(context, model.model_dump(exclude_unset=True))
    if given.get("root"):
        check_local("root", given["root"])
        given["root"] = str(in_project(context, given["root"]))
    return DataOpsResource(**given)


_STRICT: Final[dict[str, Any]] = {
    "allow_missing_partitions": bool,
    "executor": Literal["in_process", "multiprocess"],
    "layout": Literal["steps", "single_step"],
    "max_error_rate": ErrorRateField,
    "modules": list[str],
    "name": str,
    "new_files": NewFilesModel,
    "op": OpModel,
    "operators": list[OperatorNodeModel],
    "partitions_def": PartitionsModel,
    "resource": ResourceModel,
    "retry_policy": RetryPolicyModel,
    "schedule": str,
    "source_checks": list[CheckModel],
}


@functools.cache
def strict_model(derived: type[BaseModel]) -> type[BaseModel]:
    """Return the model that Dagster derived, its fields as what they are or nothing.

    Dagster lets every field be a template as well, as a whole. Of such a choice `dg check yaml`
    would say no more than that nothing fits, at the line where the field begins.
    """
    fields: dict[str, Any] = {
        name: (wanted, derived.model_fields[name]) for name, wanted in _STRICT.items()
    }
    return create_model(derived.__name__, __base__=derived, **fields)
