"""An operator with the configuration of a launch: changed options, and settings.

Dagster has checked the types. `checked` refuses invalid values before the first record, and Dagster
does not retry.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

import dagster as dg

from dagster_dataops.assets.launchpad.params import changed_options
from dagster_dataops.checkpoints.resume.resume_policy import ChosenRecords, ResumePolicy
from dagster_dataops.errors import ConfigurationError, DataOpsError, OperatorOptionError
from dagster_dataops.operators.definition.operator import Operator, reconfigured
from dagster_dataops.operators.options.settings import (
    ExecutionSettings,
    execution_settings,
    parse_settings,
)

OperatorConfig: TypeAlias = Mapping[str, Any]  # of the fields of `config_schema`


def configured(operator: Operator, config: OperatorConfig) -> Operator:
    """Return ``operator`` with the options and settings of the launchpad.

    Raises:
        OperatorOptionError: The operator does not accept one of them.
    """
    changed = changed_options(operator, config.get("params") or {})
    return reconfigured(operator, changed, _settings(operator, config))


def checked(name: str, operator: Operator, config: OperatorConfig) -> Operator:
    """Return ``operator`` with the options and settings of the launchpad.

    Raises:
        Failure: The configuration is invalid; Dagster does not retry.
    """
    try:
        changed = configured(operator, config)
        _check_numbers(config)
        resume_policy(config)
    except DataOpsError as error:
        raise dg.Failure(f"{name}: {error}", allow_retries=False) from error
    except Exception as error:  # the operator's own constructor checks its options
        refused = f"{type(error).__name__}: {error}"
        text = f"{name}: {operator!r} refuses the options of this launch: {refused}"
        raise dg.Failure(text, allow_retries=False) from error
    return changed


def _check_numbers(config: OperatorConfig) -> None:
    limit, tried = limit_of(config.get("limit")), limit_of(config.get("try"), "try")
    if limit and tried:
        raise ConfigurationError("try", tried, "empty beside limit, which asks for a preview")


def limit_of(limit: int | None, field: str = "limit") -> int:
    """Return the number of records of a preview, 0 for no preview; ``field`` is its name.

    Raises:
        ConfigurationError: The limit is negative.
    """
    if (limit or 0) < 0:
        allowed = "all of them" if field == "limit" else "none"
        raise ConfigurationError(field, limit, f"a number of records, empty for {allowed}")
    return limit or 0


def _settings(operator: Operator, config: OperatorConfig) -> ExecutionSettings:
    chosen = {f"_{name}": config.get(name) for name in execution_settings()}
    chosen["_retry_on"] = chosen["_retry_on"] or None
    try:
        return parse_settings(operator.__dataops__.spec.qualified_name, chosen)
    except OperatorOptionError as error:  # the launchpad shows names without underscore
        name = error.option.removeprefix("_")
        raise OperatorOptionError(error.operator, name, error.reason) from None


def resume_policy(config: OperatorConfig) -> ResumePolicy | ChosenRecords:
    """Return the resume policy of the launch.

    Raises:
        ConfigurationError: There is no such policy.
        ConditionSyntaxError: The condition for records is malformed.
    """
    chosen = config.get("resume") or "auto"
    if isinstance(chosen, Mapping):
        from dagster_dataops.checkpoints.resume.record_condition import RecordCondition

        RecordCondition.parse(chosen["records"])
        return ChosenRecords(chosen["records"])
    try:
        return ResumePolicy(chosen)
    except ValueError:
        names = ", ".join(policy.value for policy in ResumePolicy)
        allowed = f"one of {names}, or records with a condition"
        raise ConfigurationError("resume", chosen, allowed) from None
