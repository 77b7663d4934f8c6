"""Fields of a defs.yaml for the source and for the options of a pipeline."""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    Self,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

import dagster as dg
from pydantic import BaseModel, Field, WithJsonSchema, create_model, model_validator

from dagster_dataops.assets.automation.jobs import JobKind
from dagster_dataops.assets.components.check_fields import (
    CheckModel,
    ErrorRateField,
    resolve_error_rate,
)
from dagster_dataops.assets.components.operator_declaration import OperatorNodeModel
from dagster_dataops.assets.components.partition_fields import (
    BackfillPolicyModel,
    NewFilesModel,
    PartitionsModel,
    resolve_backfill_policy,
    resolve_new_files,
    resolve_partitions,
)
from dagster_dataops.assets.components.schedule_fields import ScheduleField, resolve_schedule
from dagster_dataops.assets.components.source_position import (
    YamlPlace,
    beside,
    in_project,
    rendered,
    written,
)
from dagster_dataops.assets.definitions import PipelineOptions
from dagster_dataops.assets.planning.option_keywords import option_fields
from dagster_dataops.assets.runtime.environment_values import written_values
from dagster_dataops.assets.runtime.llm_resource import LLMResource
from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.assets.steps.source_assets import Source  # noqa: TC001 - text, as it is itself
from dagster_dataops.configuration import root_setting
from dagster_dataops.errors import ConfigurationError
from dagster_dataops.execution.cluster.ray_cluster import RayCluster
from dagster_dataops.foundation.places.url_forms import is_url
from dagster_dataops.operators.options.annotations import UNIONS

Modules: TypeAlias = Iterable[object]
_Class = TypeVar("_Class")


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
            msg = "a source must be a path, `asset: <key>` or `function: <name>`"
            raise ValueError(msg)
        return self


@dataclass(frozen=True, slots=True)
class SourceFunction:
    """A source that is a function of one of the component's modules."""

    name: str
    place: YamlPlace

    def found_in(self, modules: Modules) -> Callable[[], Iterable[dict[str, Any]]]:
        """Return the function.

        Raises:
            ConfigurationError: None of the modules has it.
        """
        for module in modules:
            function: Any = getattr(module, self.name, None)
            if function is not None:
                return function  # type: ignore[no-any-return]
        error = ConfigurationError("source", self.name, "a function in one of `modules`")
        raise self.place.error("source", error)


def resolve_source(
    context: dg.ResolutionContext, model: str | SourceModel
) -> "Source | SourceFunction":
    """Return the source; a path is taken from the folder of the defs.yaml."""
    if isinstance(model, str):
        return beside(context, str(rendered(context, model)))
    if model.asset is not None:
        return dg.AssetKey.from_user_string(rendered(context, model.asset))
    return SourceFunction(str(rendered(context, model.function)), YamlPlace(context))


class RetryPolicyModel(dg.Model):
    """Retry policy of a step; a retry resumes where the failed attempt stopped."""

    max_retries: int = Field(default=1, ge=1, description="Further attempts.")
    delay: float | None = Field(
        default=None, description="Seconds before the second attempt.", ge=0
    )
    backoff: Literal["linear", "exponential"] | None = Field(
        default=None, description="Growth of the delay from one attempt to the next."
    )
    jitter: Literal["full", "plus_minus"] | None = Field(
        default=None, description="Random part of the delay."
    )


def resolve_retry_policy(
    context: dg.ResolutionContext,  # noqa: ARG001
    model: RetryPolicyModel,
) -> dg.RetryPolicy:
    """Return the retry policy."""
    return dg.RetryPolicy(
        max_retries=model.max_retries,
        delay=model.delay,
        backoff=model.backoff and dg.Backoff[model.backoff.upper()],
        jitter=model.jitter and dg.Jitter[model.jitter.upper()],
    )


class EnvironmentVariable(dg.Model):
    """An environment variable, read when a run starts."""

    env: str = Field(description="Its name.", examples=["OPENAI_API_KEY"])


def _resource_model(resource: type[dg.ConfigurableResource[Any]], **others: Any) -> type[dg.Model]:
    """Return a model of a resource: fields may be templates; ``others`` gives types by field."""
    fields: dict[str, Any] = {
        name: (
            others.get(name) or Union[info.annotation, str],  # noqa: UP007 - one is a value
            Field(default=None, description=info.description),
        )
        for name, info in resource.model_fields.items()
    }
    return create_model(f"{resource.__name__}Model", __base__=dg.Model, **fields)


class RayClusterModel(dg.Model):
    """A running Ray cluster, whose nodes run the operators in process mode."""

    address: str = Field(
        default="auto", description="Its address, as `ray.init` takes it.", examples=["auto"]
    )
    agents: int | str = Field(
        default="all", description="Number of agents; `all` is one on each node, or for each GPU."
    )
    cpus_per_agent: int | str | None = Field(
        default=None,
        description="Worker processes of an agent, unless the operator sets `max_workers`. By "
        "default the cores of the smallest node.",
    )
    runtime_env: dict[str, Any] | None = Field(
        default=None, description="The environment of the agents, as `ray.init` takes it."
    )
    start_seconds: float | str = Field(
        default=300.0,
        description="How long to wait, while no agent works, for a node that can hold one. Time in "
        "which other jobs use the nodes does not count.",
    )


ResourceModel = _resource_model(
    DataOpsResource,
    cluster=RayClusterModel,
    storage_options=dict[str, EnvironmentVariable | str],
    url_options=dict[str, dict[str, Any]],
)
ClientModel: Any = _resource_model(LLMResource, api_key=EnvironmentVariable)


def resolve_resource(context: dg.ResolutionContext, model: dg.Model) -> DataOpsResource:
    """Return the resource; its folders are taken from the folder of the project."""
    fields = written(context, model)
    if fields.get("root"):
        options = written_values(fields.get("storage_options") or {})
        root_setting("root", fields["root"], options)  # another URL is refused
    for name in ("root", "file_cache"):
        if fields.get(name) and not is_url(fields[name]):
            fields[name] = str(in_project(context, fields[name]))
    if fields.get("cluster"):
        fields["cluster"] = RayCluster(**fields["cluster"])
    return DataOpsResource(**fields)


def resolve_clients(
    context: dg.ResolutionContext, models: Mapping[str, dg.Model]
) -> dict[str, LLMResource]:
    """Return the clients of language models by name."""
    return {name: _client(written(context, model)) for name, model in models.items()}


def _client(fields: dict[str, Any]) -> LLMResource:
    if "api_key" in fields:
        fields["api_key"] = dg.EnvVar(fields["api_key"]["env"])
    return LLMResource(**fields)


@dataclass(frozen=True, slots=True)
class YamlField:
    """The form of a pipeline option in a defs.yaml.

    Attributes:
        model: Type of the written value.
        resolve: Returns the option's value; by default the written value with templates filled in.
        examples: Examples of written values.
    """

    model: Any
    resolve: Callable[[dg.ResolutionContext, Any], Any] = rendered
    examples: tuple[object, ...] = ()


# Options whose type YAML cannot express. Other options are fields with their own types, if YAML can
# express the type. An option that exists only by node is a field of the operator.
_TEXT: Final[Mapping[str, Any]] = {"type": "string", "minLength": 1}
_COLUMNS: Final[dict[str, Any]] = {
    "type": "object",
    "additionalProperties": {"type": ["string", "object"], "minLength": 1}
    | {"additionalProperties": _TEXT},
}
_WRITTEN: Final[Mapping[str, YamlField]] = {
    "automation_condition": YamlField(str, examples=("{{ dg.AutomationCondition.eager() }}",)),
    "backfill_policy": YamlField(BackfillPolicyModel, resolve_backfill_policy),
    "columns": YamlField(
        Annotated[dict[str, Any], WithJsonSchema(_COLUMNS)],
        examples=({"text": "The text of the page."},),
    ),
    "clients": YamlField(dict[str, ClientModel], resolve_clients),
    "freshness_policy": YamlField(str),
    "job_hooks": YamlField(str, examples=("{{ hooks }}",)),
    "job_owners": YamlField(list[str], examples=(["team:search"],)),
    "job_tags": YamlField(dict[str, str], examples=({"team": "search"},)),
    "jobs": YamlField(list[JobKind], examples=(["pipeline", "refresh"],)),
    "max_error_rate": YamlField(ErrorRateField, resolve_error_rate),
    "new_files": YamlField(NewFilesModel, resolve_new_files),
    "op_tags": YamlField(
        dict[str, dict[str, Any]],
        examples=({"source": {"dagster-celery/queue": "io"}},),
    ),
    "partitions_def": YamlField(PartitionsModel, resolve_partitions),
    "resource": YamlField(ResourceModel, resolve_resource),
    "retry_policy": YamlField(RetryPolicyModel, resolve_retry_policy),
    "schedule": YamlField(ScheduleField, resolve_schedule, ("0 2 * * *",)),
}
_PLAIN: Final = (bool, int, float, str)


def _yaml_fields() -> dict[str, YamlField]:
    """Return the pipeline options that are fields of a defs.yaml."""
    fields = {}
    for name, option in option_fields(PipelineOptions).items():
        plain = _plain_type(option.annotation)
        field = _WRITTEN.get(name) or (plain and YamlField(plain))
        if field:
            fields[name] = field
    return fields


def _plain_type(annotation: Any) -> Any:
    """Return the only plain type or choice of texts in a type, ``None`` if there is none."""
    members = get_args(annotation) if get_origin(annotation) in UNIONS else [annotation]
    plain = [member for member in members if member in _PLAIN or get_origin(member) is Literal]
    return plain[0] if len(plain) == 1 else None


YAML_FIELDS: Final = _yaml_fields()


def with_option_fields(cls: type[_Class]) -> type[_Class]:
    """Add a field to a class for each pipeline option; apply it before ``@dataclass``.

    The default ``None`` means that the option is not given.
    """
    annotations = dict(inspect.get_annotations(cls))
    for name, field in YAML_FIELDS.items():
        resolver = dg.Resolver(
            field.resolve,
            model_field_type=field.model | None,
            description=option_fields(PipelineOptions)[name].description,
            examples=list(field.examples),
        )
        annotations[name] = Annotated[Any, resolver]
        setattr(cls, name, None)
    cls.__annotations__ = annotations
    return cls


_STRICT: Final[dict[str, Any]] = {
    "modules": list[str],
    "name": str,
    "operators": list[OperatorNodeModel],
    "source_checks": list[CheckModel],
    **{name: field.model for name, field in YAML_FIELDS.items()},
}


@functools.cache
def strict_model(derived: type[BaseModel]) -> type[BaseModel]:
    """Return the model that Dagster derived, with exact types in place of unions with text.

    Dagster accepts a template in place of every field. For a union, `dg check yaml` would only
    report, at the first line of the field, that no member fits.
    """
    fields: dict[str, Any] = {
        name: (wanted, derived.model_fields[name]) for name, wanted in _STRICT.items()
    }
    return create_model(derived.__name__, __base__=derived, **fields)
