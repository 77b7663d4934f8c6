"""``params`` of the launchpad: the options of an operator, each with its value of the pipeline.

An option that a launch leaves unchanged keeps that value, so an unchanged launchpad gives the same
operator. A changed option is converted and checked before the first record.
"""

from collections.abc import Mapping
from typing import Any

from dagster_dataops.assets.launchpad.option_fields import ShownOptions, shown_options
from dagster_dataops.assets.launchpad.option_types import option_type
from dagster_dataops.assets.launchpad.shown_values import in_order_of, is_unchanged
from dagster_dataops.errors import OperatorOptionError
from dagster_dataops.operators.chains.chain import PartOptions, annotations_of
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.options.renamed_options import given_twice, warn_of_former


def shown_params(operator: Operator) -> ShownOptions | None:
    """Return the options of an operator that the launchpad can show; ``None`` without any."""
    use = operator.__dataops__
    return shown_options(annotations_of(use.spec), use.options)


def changed_options(operator: Operator, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were changed in the launchpad, with their new values.

    Raises:
        OperatorOptionError: An option cannot have its new value.
    """
    shown = shown_params(operator) if values else None
    if shown is None:
        return {}
    spec = operator.__dataops__.spec
    return _changed(spec.qualified_name, "", annotations_of(spec), values, shown.values)


def _changed(
    operator: str,
    part: str,
    annotations: PartOptions,
    values: Mapping[str, Any],
    shown: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the options whose given value is not the shown one, with their values."""
    values = _by_present_names(operator, part, annotations, values, shown)
    return {
        name: _loaded(
            operator,
            f"{part}{name}",
            annotations.get(name, Any),
            in_order_of(value, shown[name]),
            shown[name],
        )
        for name, value in values.items()
        if not is_unchanged(value, shown[name])
    }


def _by_present_names(
    operator: str,
    part: str,
    annotations: PartOptions,
    values: Mapping[str, Any],
    shown: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the given options by their present names; warn of each former name.

    A launchpad gives every option with its shown value, so that two names of an option are given
    only if neither has that value.
    """
    renamed = {name: value for name, value in values.items() if name not in annotations.present}
    former: dict[str, str] = {}
    for old in (name for name in values if name in annotations.present):
        new = annotations.present[old]
        warn_of_former(
            operator, f"{part}{old}", new, shipped=annotations.shipped, place="Run configuration"
        )
        if is_unchanged(values[old], shown[new]):
            continue
        if not is_unchanged(renamed.get(new, shown[new]), shown[new]):
            raise given_twice(operator, former.get(new, f"{part}{new}"), f"{part}{old}")
        renamed[new], former[new] = values[old], f"{part}{old}"
    return renamed


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
