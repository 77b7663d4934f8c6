"""Launchpad configuration of an operator: its options as ``params``, and how it is run.

Options without a JSON form (callables, objects) are left out, and so are secrets, which Dagster
would store and show; they keep the value that the pipeline gives them.

Dagster checks what it can at launch, before there is a run. Constraints of pydantic it would meet
only in the step, as an error worth a retry; so there are none here, and `checked` refuses what
is left before a record is touched, for good.
"""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias
from weakref import WeakKeyDictionary

import dagster as dg
from pydantic import Field, SkipValidation, create_model

from dagster_dataops.assets.launchpad.params import changed_options, params_class
from dagster_dataops.checkpoints.resume.resume_policy import ResumePolicy
from dagster_dataops.errors import ConfigurationError, DataOpsError, OperatorOptionError
from dagster_dataops.graph.graph import OperatorNode
from dagster_dataops.hashing.values import digest
from dagster_dataops.operators.concurrency_modes import MODES
from dagster_dataops.operators.operator import Operator, reconfigured
from dagster_dataops.operators.settings import ExecutionSettings, parse_settings

# Enums: Dagster takes no `Literal` that may be left empty.
if TYPE_CHECKING:
    Mode: TypeAlias = StrEnum
    AsyncMode: TypeAlias = StrEnum
else:
    Mode = StrEnum("Mode", {n: n for n, mode in MODES.items() if not mode.only_coroutines})
    AsyncMode = StrEnum("AsyncMode", {name: name for name in MODES})


class OperatorConfig(dg.Config):
    """How an operator is run this time."""

    max_workers: Annotated[int | None, SkipValidation] = Field(
        default=None, description="Processes, or calls in flight; left empty, as defined."
    )
    concurrency_mode: Annotated[Mode | None, SkipValidation] = Field(
        default=None, description="How to run it; left empty, as defined."
    )
    ignore_errors: Annotated[bool, SkipValidation] = Field(
        default=True,
        description="Whether failing records go to the error file, or the first fails the step.",
    )
    timeout: Annotated[float | None, SkipValidation] = Field(
        default=None,
        description="Seconds that one call on one record may take, 0 for no limit; left empty, as "
        "defined.",
    )
    retries: Annotated[int | None, SkipValidation] = Field(
        default=None,
        description="Further tries for a record that failed; left empty, as defined.",
    )
    retry_on: Annotated[list[str] | None, SkipValidation] = Field(
        default=None,
        description="Names of the exceptions after which there is another try, such as "
        "`TimeoutError` or `httpx.HTTPError`; left empty, as defined.",
    )
    backoff: Annotated[float | None, SkipValidation] = Field(
        default=None,
        description="Seconds before the second try, about doubled before each further one; left "
        "empty, as defined.",
    )
    stop_after_failures: Annotated[int | None, SkipValidation] = Field(
        default=None,
        description="How many calls have to fail with one exception, none succeeding in between, "
        "for the run to stop; re-execution then goes on from there. 0 never stops it, and "
        "publishes even a result whose records all failed. Left empty, as defined.",
    )
    limit: Annotated[int | None, SkipValidation] = Field(
        default=None,
        description="A preview of so many input records. It is shown as an observation; "
        "result, error file and checkpoint stay as they are, and steps that need the result are "
        "skipped. Model calls made for it are paid for. Left empty: all records.",
    )
    resume: Literal["auto", "never", "across_code", "failed_records"] = Field(
        default="auto",
        description=(
            "`auto`: go on from an unfinished run with the same options, code and input. "
            "`never`: start afresh, and use no outcome again. `across_code`: go on even though "
            "the code was edited, keeping the records that the old code finished. "
            "`failed_records`: keep the result as it is and retry its failed records alone, also "
            "with other code or options."
        ),
    )


_Made = dict[tuple[str, bool], type[OperatorConfig]]

_MADE: WeakKeyDictionary[type[Operator], _Made] = WeakKeyDictionary()


def config_type_of(node: OperatorNode) -> type[OperatorConfig]:
    """Return the Config class of a node; nodes with equal operators and options share one."""
    invocation = node.operator.__dataops__
    made = _MADE.setdefault(type(node.operator), {})
    stops = not invocation.resolved.ignore_errors
    key = (digest(dict(invocation.options)), stops)  # what does not count is shown as well
    if key not in made:
        made[key] = _config_type(node.operator, stops=stops)
    return made[key]


def _config_type(operator: Operator, *, stops: bool) -> type[OperatorConfig]:
    spec = operator.__dataops__.spec
    extra: dict[str, Any] = {}
    if spec.asynchronous:
        extra["concurrency_mode"] = _changed("concurrency_mode", AsyncMode | None, None)
    if stops:
        extra["ignore_errors"] = _changed("ignore_errors", bool, default=False)
    title = "".join(word.capitalize() for word in spec.name.split("_"))
    params: Any = params_class(operator, title)
    if params is not None:
        extra["params"] = (params, Field(default=params(), description=params.__doc__))
    if not extra:
        return OperatorConfig
    made: type[OperatorConfig] = create_model(f"{title}Config", __base__=OperatorConfig, **extra)
    return made


def _changed(name: str, annotation: Any, default: object) -> tuple[Any, Any]:
    description = OperatorConfig.model_fields[name].description
    return Annotated[annotation, SkipValidation], Field(default=default, description=description)


def configured(operator: Operator, config: OperatorConfig) -> Operator:
    """Return ``operator`` with what the launchpad changed.

    Raises:
        OperatorOptionError: It changed something to what the operator does not take.
    """
    changed = changed_options(operator, getattr(config, "params", None))
    return reconfigured(operator, changed, _settings(operator, config))


def checked(name: str, operator: Operator, config: OperatorConfig) -> Operator:
    """Return what `configured` does; what is refused fails the step for good, in words.

    Args:
        name: Of the asset or op, for the error.
        operator: As the pipeline has it.
        config: From the launchpad.

    Raises:
        Failure: The configuration is refused; Dagster shall not try again.
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
    """Return how many records a preview takes, 0 for no preview.

    Raises:
        ConfigurationError: That is no number of records.
    """
    if (limit or 0) < 0:
        raise ConfigurationError("limit", limit, "a number of records, empty for all of them")
    return limit or 0


def _settings(operator: Operator, config: OperatorConfig) -> ExecutionSettings:
    chosen = {
        "_max_workers": config.max_workers or None,
        "_concurrency_mode": config.concurrency_mode,
        "_ignore_errors": config.ignore_errors,
        "_timeout": config.timeout,
        "_retries": config.retries,
        "_retry_on": config.retry_on or None,
        "_backoff": config.backoff,
        "_stop_after_failures": config.stop_after_failures,
    }
    try:
        return parse_settings(operator.__dataops__.spec.qualified_name, chosen)
    except OperatorOptionError as error:  # without the underscore that it has in Python
        name = error.option.removeprefix("_")
        raise OperatorOptionError(error.operator, name, error.reason) from None


def resume_policy(config: OperatorConfig) -> ResumePolicy:
    """Return the resume policy that was chosen."""
    return ResumePolicy(config.resume)
