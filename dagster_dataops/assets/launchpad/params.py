"""``params`` of the launchpad: an operator's options as a Config class, and back.

The class shows every option with its value of the pipeline. An option that a launch leaves
unchanged keeps that value, so an unchanged launchpad gives the same operator. A changed option is
converted and checked before the first record.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import dagster as dg
from pydantic import ConfigDict, Field, SkipValidation, create_model

from dagster_dataops.assets.launchpad.option_fields import LaunchpadField, option_field
from dagster_dataops.assets.launchpad.option_types import option_type
from dagster_dataops.assets.launchpad.shown_values import is_unchanged
from dagster_dataops.errors import OperatorOptionError
from dagster_dataops.operators.chains.chain import PartOptions
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.options.artefact_options import referenced
from dagster_dataops.operators.options.docstrings import option_descriptions


class AliasedConfig(dg.Config):
    """A Config whose fields are shown to the user by their ``alias``.

    Dagster passes a nested Config by the field's own name, so that name must be accepted too.
    """

    model_config = ConfigDict(populate_by_name=True)


def params_class(operator: Operator, title: str) -> type[dg.Config] | None:
    """Return the Config class of an operator's options; ``None`` without options to show.

    Its docstring names the options that it leaves out, with the reason.
    """
    fields: list[LaunchpadField] = []
    left_out: list[str] = []
    spec = operator.__dataops__.spec
    descriptions = option_descriptions(spec.target)
    for name, annotation, value in _options(operator):
        nodes = ", ".join(referenced(value))
        found: LaunchpadField | str = f"artefact of {nodes}"
        if not nodes:
            found = option_field(name, annotation, value, descriptions.get(name, ""))
        if isinstance(found, LaunchpadField):
            fields.append(found)
        else:
            left_out.append(f"`{name}` ({found})")
    if not fields:
        return None
    made = _config_class(f"{title}Params", fields)
    made.__doc__ = f"Options of {spec.reference}."
    if left_out:
        made.__doc__ += f" Not shown, with their values of the pipeline: {', '.join(left_out)}."
    return made


def changed_options(operator: Operator, params: dg.Config | None) -> dict[str, Any]:
    """Return the options that were changed in the launchpad, with their new values.

    Raises:
        OperatorOptionError: An option cannot have its new value.
    """
    if params is None:
        return {}
    given, shown = _plain(params), _plain(type(params)())
    annotations = {name: annotation for name, annotation, _ in _options(operator)}
    qualified = operator.__dataops__.spec.qualified_name
    return {
        name: _loaded(qualified, name, annotations[name], value, shown[name])
        for name, value in given.items()
        if not is_unchanged(value, shown[name])
    }


def _loaded(operator: str, name: str, annotation: Any, value: Any, shown: Any) -> Any:
    """Return the new value of an option; of a part of a chain its changed options."""
    if isinstance(annotation, PartOptions):
        return {
            one: _loaded(operator, f"{name}.{one}", annotation.get(one, Any), given, shown[one])
            for one, given in value.items()
            if not is_unchanged(given, shown[one])
        }
    kind = None if annotation is Any else option_type(annotation)
    if kind is None:
        return value
    try:
        return kind.load(value)
    except ValueError as error:
        allowed = f" Allowed: {kind.allowed}." if kind.allowed else ""
        reason = f"cannot be {value!r}: {error}.{allowed}"
        raise OperatorOptionError(operator, name, reason) from None


def _options(operator: Operator) -> Iterable[tuple[str, Any, Any]]:
    """Yield name, annotation and value of every option."""
    invocation = operator.__dataops__
    annotations = {option.name: option.annotation for option in invocation.spec.options}
    for name, value in invocation.options.items():
        yield name, annotations.get(name, Any), value


def _config_class(title: str, fields: Sequence[LaunchpadField]) -> type[dg.Config]:
    """Return a Config class of ``fields``.

    Options may have names that are reserved in pydantic, such as ``json`` or ``_x``. So the user
    sees the alias of each field. Dagster confuses a field whose name is the alias of another field.
    So the names of these fields are longer than any alias.
    """
    stem = f"o{max((field.name for field in fields), key=len)}_"
    made: dict[str, Any] = {}
    for number, field in enumerate(fields):
        made[f"{stem}{number}"] = _pydantic_field(title, field)
    model: type[dg.Config] = create_model(title, __base__=AliasedConfig, **made)
    return model


def _pydantic_field(title: str, field: LaunchpadField) -> tuple[Any, Any]:
    """Return a field without validation by pydantic: Dagster and `checked` validate instead."""
    kind, default = field.config, field.default
    if isinstance(kind, tuple):
        kind = _config_class(f"{title}_{field.name}", kind)
        default = kind()
    elif kind is float:
        default = float(default)
    annotation = kind if isinstance(default, dg.Config) else Annotated[kind, SkipValidation]
    text = field.description or None
    return annotation, Field(default=default, alias=field.name, description=text)


def _plain(params: dg.Config) -> dict[str, Any]:
    """Return the content of a Config, by the names that the launchpad shows."""
    found = {}
    for field, info in type(params).model_fields.items():
        value = getattr(params, field)
        found[str(info.alias)] = _plain(value) if isinstance(value, dg.Config) else value
    return found
