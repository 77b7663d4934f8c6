"""Launchpad configuration of an operator: its options as ``params``, and its settings.

Options without a JSON form (callables, objects) are left out and keep their value of the pipeline.
So do secrets, because Dagster would store and show them.

Dagster checks types at launch, before a run exists. Constraints of pydantic would only fail in the
step, with an error that Dagster retries. So the fields have no constraints. `checked` refuses
invalid values before the first record, without a retry.
"""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias
from weakref import WeakKeyDictionary

import dagster as dg
from pydantic import Field, SkipValidation, create_model

from dagster_dataops.assets.launchpad.params import changed_options, params_class
from dagster_dataops.checkpoints.resume.resume_policy import ResumePolicy
from dagster_dataops.errors import ConfigurationError, DataOpsError, OperatorOptionError
from dagster_dataops.graph.operator_node import OperatorNode
from dagster_dataops.hashing.values import digest
from dagster_dataops.operators.definition.operator import Operator, reconfigured
from dagster_dataops.operators.options.concurrency_modes import MODES
from dagster_dataops.operators.options.settings import (
    FLAG,
    MODE,
    ExecutionSettings,
    Setting,
    execution_settings,
    parse_settings,
)

# Enums, because Dagster accepts no optional `Literal`.
if TYPE_CHECKING:
    Mode: TypeAlias = StrEnum
    AsyncMode: TypeAlias = StrEnum
else:
    Mode = StrEnum("Mode", {n: n for n, mode in MODES.items() if not mode.only_coroutines})
    AsyncMode = StrEnum("AsyncMode", {name: name for name in MODES})
_TYPES: Final = {"integer": int, "number": float, "array": list[str]}


class OperatorConfig(dg.Config):
    """Settings of an operator for one run."""

    limit: Annotated[int | None, SkipValidation] = Field(
        default=None,
        description="Number of input records to preview. The preview is shown as an observation. "
        "Result, error file and checkpoint stay unchanged, and steps that need the result are "
        "skipped. Model calls of a preview cost the usual price. Empty: all records.",
    )
    resume: Literal["auto", "never", "across_code", "failed_records"] = Field(
        default="auto",
        description=(
            "`auto`: resume an unfinished run with the same options, code and input. "
            "`never`: start afresh and use no earlier outcome. `across_code`: resume although "
            "the code was edited, and keep the records that the old code finished. "
            "`failed_records`: keep the result and retry its failed records alone, also "
            "with other code or options."
        ),
    )


def _field(setting: Setting, mode: type[StrEnum] = Mode, *, default: bool = True) -> Any:
    """Return type and field of a setting; ``default`` is the default of a flag."""
    if setting.kind is FLAG:
        return Annotated[bool, SkipValidation], Field(
            default=default, description=setting.description
        )
    annotation: Any = mode if setting.kind is MODE else _TYPES[setting.kind.json_type]
    return Annotated[annotation | None, SkipValidation], Field(
        default=None, description=f"{setting.description} Empty: as defined."
    )


_SETTINGS: Final = {name: one for name, one in execution_settings().items() if one.launchpad}
SettingsConfig: Final[type[OperatorConfig]] = create_model(
    "OperatorConfig",
    __base__=OperatorConfig,
    **{name: _field(setting) for name, setting in _SETTINGS.items()},
)
_Made = dict[tuple[str, bool], type[OperatorConfig]]

_MADE: WeakKeyDictionary[type[Operator], _Made] = WeakKeyDictionary()


def config_type_of(node: OperatorNode) -> type[OperatorConfig]:
    """Return the Config class of a node; nodes with equal operators and options share one."""
    invocation = node.operator.__dataops__
    made = _MADE.setdefault(type(node.operator), {})
    stops = not invocation.resolved.ignore_errors
    # The digest is of all options: those that fingerprints leave out are shown, too.
    key = (digest(dict(invocation.options)), stops)
    if key not in made:
        made[key] = _config_type(node.operator, stops=stops)
    return made[key]


def _config_type(operator: Operator, *, stops: bool) -> type[OperatorConfig]:
    spec = operator.__dataops__.spec
    extra: dict[str, Any] = {}
    if spec.asynchronous:
        extra["concurrency_mode"] = _field(_SETTINGS["concurrency_mode"], AsyncMode)
    if spec.batch:
        extra["batch_size"] = _field(execution_settings()["batch_size"])
    if stops:
        extra["ignore_errors"] = _field(_SETTINGS["ignore_errors"], default=False)
    title = "".join(word.capitalize() for word in spec.name.split("_"))
    params: Any = params_class(operator, title)
    if params is not None:
        extra["params"] = (params, Field(default=params(), description=params.__doc__))
    if not extra:
        return SettingsConfig
    made: type[OperatorConfig] = create_model(f"{title}Config", __base__=SettingsConfig, **extra)
    return made


def configured(operator: Operator, config: OperatorConfig) -> Operator:
    """Return ``operator`` with the options and settings of the launchpad.

    Raises:
        OperatorOptionError: The operator does not accept one of them.
    """
    changed = changed_options(operator, getattr(config, "params", None))
    return reconfigured(operator, changed, _settings(operator, config))


def checked(name: str, operator: Operator, config: OperatorConfig) -> Operator:
    """Return ``operator`` with the options and settings of the launchpad.

    Args:
        name: Name of the asset or op, for the error.
        operator: Operator of the pipeline.
        config: Configuration of the launch.

    Raises:
        Failure: The configuration is invalid; Dagster does not retry.
    """
    try:
        made = configured(operator, config)
        limit_of(config.limit)
    except DataOpsError as error:
        raise dg.Failure(f"{name}: {error}", allow_retries=False) from error
    except Exception as error:  # the operator's own constructor checks its options
        refused = f"{type(error).__name__}: {error}"
        text = f"{name}: {operator!r} refuses the options of this launch: {refused}"
        raise dg.Failure(text, allow_retries=False) from error
    return made


def limit_of(limit: int | None) -> int:
    """Return the number of records of a preview, 0 for no preview.

    Raises:
        ConfigurationError: The limit is negative.
    """
    if (limit or 0) < 0:
        raise ConfigurationError("limit", limit, "a number of records, empty for all of them")
    return limit or 0


def _settings(operator: Operator, config: OperatorConfig) -> ExecutionSettings:
    chosen = {f"_{name}": getattr(config, name) for name in _SETTINGS}
    chosen["_batch_size"] = getattr(config, "batch_size", None)
    chosen["_retry_on"] = chosen["_retry_on"] or None
    try:
        return parse_settings(operator.__dataops__.spec.qualified_name, chosen)
    except OperatorOptionError as error:  # the launchpad shows names without underscore
        name = error.option.removeprefix("_")
        raise OperatorOptionError(error.operator, name, error.reason) from None


def resume_policy(config: OperatorConfig) -> ResumePolicy:
    """Return the resume policy of the launch."""
    return ResumePolicy(config.resume)
