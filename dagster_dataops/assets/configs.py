"""Launchpad configuration of an operator: its options as ``params``, and how it is run.

Options whose type Dagster's config cannot express (callables, objects) are left out; they keep
the value that the pipeline gives them.
"""

import types
import typing
from typing import Any, Final, Literal

import dagster as dg
from pydantic import Field, create_model

from dagster_dataops.checkpoints.resuming import ResumePolicy
from dagster_dataops.graph.graph import OperatorNode
from dagster_dataops.operators.operator import Operator, reconfigured
from dagster_dataops.operators.settings import ExecutionSettings
from dagster_dataops.operators.signature import OptionSpec

_PLAIN: Final = (str, int, float, bool)


class OperatorConfig(dg.Config):
    """How an operator is run this time."""

    max_workers: int = Field(
        default=0, description="Processes, or calls in flight; 0 leaves it as defined."
    )
    concurrency_mode: Literal["defined", "process", "thread", "async", "single"] = Field(
        default="defined", description="How to run it; `defined` leaves it as defined."
    )
    ignore_errors: bool = Field(
        default=True,
        description="Whether failing records go to the error file, or the first fails the step.",
    )
    resume: Literal["auto", "never", "across_code"] = Field(
        default="auto",
        description=(
            "`auto`: go on from an unfinished run with the same options, code and input. "
            "`never`: start afresh. `across_code`: go on even though the code was edited, "
            "keeping the records that the old code finished."
        ),
    )


def config_type_of(node: OperatorNode) -> type[OperatorConfig]:
    """Return the Config class of a node; nodes without options share one."""
    invocation = node.operator.__dataops__
    options = {spec.name: spec for spec in invocation.spec.options}
    fields: dict[str, Any] = {}
    for name, value in invocation.options.items():
        annotation = _config_annotation(options.get(name), value)
        if annotation is not None:
            fields[name] = (annotation, Field(default=value))
    title = "".join(word.capitalize() for word in node.name.split("_"))
    ignoring = invocation.resolved.ignore_errors
    if not fields and ignoring:
        return OperatorConfig
    extra: dict[str, Any] = {}
    if not ignoring:
        info = OperatorConfig.model_fields["ignore_errors"]
        extra["ignore_errors"] = (bool, Field(default=False, description=info.description))
    if fields:
        params: Any = create_model(f"{title}Params", __base__=dg.Config, **fields)
        description = f"Options of data.{invocation.spec.qualified_name}."
        extra["params"] = (params, Field(default=params(), description=description))
    made: type[OperatorConfig] = create_model(f"{title}Config", __base__=OperatorConfig, **extra)
    return made


def _config_annotation(option: OptionSpec | None, value: object) -> Any:
    """Return the type of an option in a Config, or ``None`` if it has none there."""
    if not _expressible(value):
        return None
    annotation = option.annotation if option is not None else Any
    if annotation in _PLAIN and isinstance(value, annotation):
        return annotation
    if typing.get_origin(annotation) is Literal or _is_optional_plain(annotation):
        return annotation
    return type(value) if annotation is Any and type(value) in _PLAIN else Any


def _is_optional_plain(annotation: Any) -> bool:
    if typing.get_origin(annotation) not in {typing.Union, types.UnionType}:
        return False
    members = [member for member in typing.get_args(annotation) if member is not type(None)]
    return len(members) == 1 and members[0] in _PLAIN


def _expressible(value: object) -> bool:
    if value is None or isinstance(value, _PLAIN):
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
    params = getattr(config, "params", None)
    given = {} if params is None else {name: getattr(params, name) for name in _names(params)}
    bound = operator.__dataops__.options
    changed = {name: value for name, value in given.items() if value != bound[name]}
    mode = None if config.concurrency_mode == "defined" else config.concurrency_mode
    settings = ExecutionSettings(
        max_workers=config.max_workers or None,
        concurrency_mode=mode,
        ignore_errors=config.ignore_errors,
    )
    return reconfigured(operator, changed, settings)


def _names(params: dg.Config) -> list[str]:
    return list(type(params).model_fields)


def resume_policy(config: OperatorConfig) -> ResumePolicy:
    """Return the resume policy that was chosen."""
    return ResumePolicy(config.resume)
