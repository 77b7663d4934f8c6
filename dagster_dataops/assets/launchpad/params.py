"""``params`` of the launchpad: the options of an operator, each with its value of the pipeline.

An option that a launch leaves unchanged keeps that value, so an unchanged launchpad gives the same
operator. A changed option is converted and checked before the first record.
"""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from dagster_dataops.assets.launchpad.option_fields import options_field
from dagster_dataops.assets.launchpad.option_types import option_type
from dagster_dataops.assets.launchpad.shown_values import in_order_of, is_unchanged
from dagster_dataops.errors import OperatorOptionError
from dagster_dataops.operators.chains.chain import PartOptions
from dagster_dataops.operators.definition.operator import Operator


def params_field(operator: Operator) -> dg.Field | None:
    """Return the field of an operator's options; ``None`` without options to show."""
    use = operator.__dataops__
    spec = use.spec
    return options_field(spec.reference, spec.target, _annotations(operator), use.options)


def changed_options(operator: Operator, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were changed in the launchpad, with their new values.

    Args:
        operator: The operator of the pipeline.
        given: The options of the launch, by name.

    Raises:
        OperatorOptionError: An option cannot have its new value.
    """
    field = params_field(operator) if given else None
    if field is None:
        return {}
    name = operator.__dataops__.spec.qualified_name
    return _changed(name, "", _annotations(operator), given, field.default_value)


def _annotations(operator: Operator) -> dict[str, Any]:
    return {option.name: option.annotation for option in operator.__dataops__.spec.options}


def _changed(
    operator: str,
    part: str,
    annotations: Mapping[str, Any],
    given: Mapping[str, Any],
    shown: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the options whose given value is not the shown one, with their values."""
    return {
        name: _loaded(
            operator,
            f"{part}{name}",
            annotations.get(name, Any),
            in_order_of(value, shown[name]),
            shown[name],
        )
        for name, value in given.items()
        if not is_unchanged(value, shown[name])
    }


def _loaded(operator: str, name: str, annotation: Any, value: Any, shown: Any) -> Any:
    """Return the new value of an option; of a part of a chain its changed options."""
    if isinstance(annotation, PartOptions):
        return _changed(operator, f"{name}.", annotation, value, shown)
    kind = None if annotation is Any else option_type(annotation)
    if kind is None:
        return value
    try:
        return kind.load(value)
    except ValueError as error:
        allowed = f" Allowed: {kind.allowed}." if kind.allowed else ""
        reason = f"cannot be {value!r}: {error}.{allowed}"
        raise OperatorOptionError(operator, name, reason) from None
