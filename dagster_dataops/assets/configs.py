"""Launchpad configuration of an operator: its options as ``params``, and how it is run.

Options whose type Dagster's config cannot express (callables, objects) are left out, and so are
secrets, which Dagster would store and show; they keep the value that the pipeline gives them.
"""

import math
import types
import typing
from typing import Any, Final, Literal

import dagster as dg
from pydantic import Field, create_model

from dagster_dataops.checkpoints.resuming import ResumePolicy
from dagster_dataops.graph.graph import OperatorNode
from dagster_dataops.operators.operator import Operator, reconfigured
from dagster_dataops.operators.secrecy import is_secret
from dagster_dataops.operators.settings import ExecutionSettings, parse_settings
from dagster_dataops.operators.signature import OptionSpec

_PLAIN: Final = (str, int, float, bool)


class OperatorConfig(dg.Config):
    """How an operator is run this time."""

    max_workers: int = Field(
        default=0, ge=0, description="Processes, or calls in flight; 0 leaves it as defined."
    )
    concurrency_mode: Literal["defined", "process", "thread", "single"] = Field(
        default="defined", description="How to run it; `defined` leaves it as defined."
    )
    ignore_errors: bool = Field(
        default=True,
        description="Whether failing records go to the error file, or the first fails the step.",
    )
    timeout: float | None = Field(
        default=None,
        ge=0,
        description="Seconds that one call on one record may take, 0 for no limit; left empty, as "
        "defined.",
    )
    retries: int | None = Field(
        default=None,
        ge=0,
        description="Further tries for a record that failed; left empty, as defined.",
    )
    retry_on: list[str] = Field(
        default=[],
        description="Names of the exceptions after which there is another try, such as "
        "`TimeoutError` or `httpx.HTTPError`; left empty, as defined.",
    )
    backoff: float | None = Field(
        default=None,
        ge=0,
        description="Seconds before the second try, about doubled before each further one; left "
        "empty, as defined.",
    )
    resume: Literal["auto", "never", "across_code", "failed_records"] = Field(
        default="auto",
        description=(
            "`auto`: go on from an unfinished run with the same options, code and input. "
            "`never`: start afresh. `across_code`: go on even though the code was edited, "
            "keeping the records that the old code finished. `failed_records`: keep the "
            "result as it is and retry its failed records alone, also with other code or options."
        ),
    )


_AsyncMode = Literal["defined", "process", "thread", "async", "single"]


def config_type_of(node: OperatorNode) -> type[OperatorConfig]:
    """Return the Config class of a node; those that differ in nothing share one."""
    invocation = node.operator.__dataops__
    extra: dict[str, Any] = {}
    if invocation.spec.asynchronous:
        extra["concurrency_mode"] = _changed("concurrency_mode", _AsyncMode, "defined")
    if not invocation.resolved.ignore_errors:
        extra["ignore_errors"] = _changed("ignore_errors", bool, default=False)
    fields = _fields(node)
    title = "".join(word.capitalize() for word in node.name.split("_"))
    if fields:
        params: Any = create_model(f"{title}Params", __base__=dg.Config, **fields)
        description = f"Options of data.{invocation.spec.qualified_name}."
        extra["params"] = (params, Field(default=params(), description=description))
    if not extra:
        return OperatorConfig
    made: type[OperatorConfig] = create_model(f"{title}Config", __base__=OperatorConfig, **extra)
    return made


def _changed(name: str, annotation: Any, default: object) -> tuple[Any, Any]:
    description = OperatorConfig.model_fields[name].description
    return annotation, Field(default=default, description=description)


def _fields(node: OperatorNode) -> dict[str, Any]:
    """Return the fields of the options that a Config can hold.

    Options may have names that pydantic keeps for itself, such as ``json`` or ``_x``: to the user
    a field is known by its alias.
    """
    invocation = node.operator.__dataops__
    options = {spec.name: spec for spec in invocation.spec.options}
    fields: dict[str, Any] = {}
    for name, value in invocation.options.items():
        if is_secret(name) or not _expressible(value):
            continue
        annotation = _config_annotation(options.get(name), value)
        default = float(value) if annotation is float else value
        fields[f"option_{len(fields)}"] = (annotation, Field(default=default, alias=name))
    return fields


def _config_annotation(option: OptionSpec | None, value: Any) -> Any:
    """Return the type of an option in a Config, ``Any`` where Dagster has none for it."""
    annotation = option.annotation if option is not None else Any
    if annotation in _PLAIN:
        whole = annotation is float and type(value) is int
        return annotation if whole or isinstance(value, annotation) else Any
    if typing.get_origin(annotation) is Literal:
        texts = all(isinstance(choice, str) for choice in typing.get_args(annotation))
        return annotation if texts and value in typing.get_args(annotation) else Any
    if _is_optional_plain(annotation):
        return annotation
    if annotation is Any and type(value) in _PLAIN:
        return type(value)
    return Any


def _is_optional_plain(annotation: Any) -> bool:
    if typing.get_origin(annotation) not in {typing.Union, types.UnionType}:
        return False
    members = [member for member in typing.get_args(annotation) if member is not type(None)]
    return len(members) == 1 and members[0] in _PLAIN


def _expressible(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if value is None or type(value) in _PLAIN:
        return True
    if isinstance(value, list):
        return all(_expressible(item) for item in value)
    if isinstance(value, dict):
        return all(isinstance(key, str) and _expressible(item) for key, item in value.items())
    return False


def configured(operator: Operator, config: OperatorConfig) -> Operator:
    """Return ``operator`` with what the launchpad changed.

    Raises:
        OperatorOptionError: It changed something to what the operator does not take.
    """
    bound = operator.__dataops__.options
    given = _given(config)
    changed = {name: value for name, value in given.items() if value != bound[name]}
    return reconfigured(operator, changed, _settings(operator, config))


def _settings(operator: Operator, config: OperatorConfig) -> ExecutionSettings:
    mode = config.concurrency_mode
    chosen = {
        "_max_workers": config.max_workers or None,
        "_concurrency_mode": None if mode == "defined" else mode,
        "_ignore_errors": config.ignore_errors,
        "_timeout": config.timeout,
        "_retries": config.retries,
        "_retry_on": config.retry_on or None,
        "_backoff": config.backoff,
    }
    return parse_settings(operator.__dataops__.spec.qualified_name, chosen)


def _given(config: OperatorConfig) -> dict[str, Any]:
    params = getattr(config, "params", None)
    if params is None:
        return {}
    fields = type(params).model_fields.items()
    return {str(info.alias): getattr(params, field) for field, info in fields}


def resume_policy(config: OperatorConfig) -> ResumePolicy:
    """Return the resume policy that was chosen."""
    return ResumePolicy(config.resume)
