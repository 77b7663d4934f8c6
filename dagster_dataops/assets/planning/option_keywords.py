"""takes_options: add the options of ``**options: Unpack[...]`` to signatures and docstrings.

Type checkers and editors read the options from the TypedDict. ``help()``, notebooks and
``inspect.signature`` read them from the signature and docstring that `takes_options` creates.
"""

import inspect
import textwrap
from collections.abc import Callable, Collection, Mapping
from functools import cache, wraps
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    TypeVar,
    cast,
    get_args,
    get_origin,
)
from typing import get_type_hints as type_hints

import dagster as dg
from typing_extensions import Doc

from dagster_dataops.assets.runtime.environment_values import check_written
from dagster_dataops.errors import ConfigurationError
from dagster_dataops.operators.options.annotations import UNIONS
from dagster_dataops.operators.options.declared_columns import type_text
from dagster_dataops.operators.options.signature import ShownDefault, nearest
from dagster_dataops.operators.options.type_checks import matches_type

_Function = TypeVar("_Function", bound=Callable[..., Any])
_MARK: Final = "**options:"  # the line of a docstring that the options replace
_WIDTH: Final = 96
_DEFAULT: Final = ShownDefault("...")  # the description of the option explains it
_OF_TRANSLATOR: Final = {*inspect.signature(dg.AssetSpec).parameters, "key_prefix"}


class OptionField(NamedTuple):
    """One option of a TypedDict."""

    annotation: Any
    description: str


@cache
def option_fields(options: type) -> dict[str, OptionField]:
    """Return the options that a TypedDict declares, by name, in order."""
    fields: dict[str, OptionField] = {}
    for name, annotation in type_hints(options, include_extras=True).items():
        if get_origin(annotation) is not Annotated:
            msg = f"option {name!r} of {options.__name__} needs Annotated[..., Doc(...)]"
            raise TypeError(msg)
        kind, *extras = get_args(annotation)
        (text,) = (extra.documentation for extra in extras if isinstance(extra, Doc))
        fields[name] = OptionField(kind, text)
    return fields


def takes_options(options: type) -> Callable[[_Function], _Function]:
    """Return a decorator for a function with ``**options: Unpack[options]``.

    The function gets a signature and a docstring with every option. It refuses unknown options
    with a `TypeError`, and values of other types and environment variables with a
    `ConfigurationError`.

    Args:
        options: TypedDict whose fields are ``Annotated[..., Doc(...)]``.
    """
    fields = option_fields(options)

    def decorate(function: _Function) -> _Function:
        signature = _signature(function, fields)

        @wraps(function)
        def checked(*args: Any, **keywords: Any) -> Any:
            for name, value in keywords.items():
                if name not in signature.parameters:
                    raise TypeError(_unknown(function.__name__, name, list(signature.parameters)))
                check_written(name, value)
                if name in fields:
                    _check_type(name, value, fields[name].annotation)
            return function(*args, **keywords)

        checked.__signature__ = signature  # type: ignore[attr-defined]
        checked.__doc__ = _documented(function.__doc__ or "", fields)
        return cast("_Function", checked)

    return decorate


def _signature(function: Callable[..., Any], fields: dict[str, OptionField]) -> inspect.Signature:
    signature = inspect.signature(function)
    plain = [
        parameter
        for parameter in signature.parameters.values()
        if parameter.kind is not parameter.VAR_KEYWORD
    ]
    kind = inspect.Parameter.KEYWORD_ONLY
    spelled = [
        inspect.Parameter(name, kind, annotation=field.annotation, default=_DEFAULT)
        for name, field in fields.items()
    ]
    return signature.replace(parameters=[*plain, *spelled])


def _check_type(name: str, value: Any, annotation: Any) -> None:
    """Raise `ConfigurationError` if a value, or one that a mapping gives by node, has another type.

    Texts and collections in a mapping have rules of their own, where they are used.
    """
    _check_kinds(name, value, _kinds(annotation))
    if isinstance(value, Mapping) and (of_values := _kinds_of_values(annotation)):
        for key, item in value.items():
            if not isinstance(key, str):
                raise ConfigurationError(name, value, "a mapping whose keys are texts")
            if not any(issubclass(kind, (str, Collection)) for kind in of_values):
                _check_kinds(f"{name}.{key}", item, of_values)


def _check_kinds(name: str, value: Any, kinds: list[Any]) -> None:
    if not any(matches_type(value, kind) for kind in kinds):
        raise ConfigurationError(name, value, " or ".join(dict.fromkeys(map(_named, kinds))))


def _kinds_of_values(annotation: Any) -> list[Any]:
    """Return the classes that the values of a mapping may have; none if it allows no mapping."""
    members = get_args(annotation) if get_origin(annotation) in UNIONS else [annotation]
    mappings = [member for member in members if get_origin(member) is Mapping]
    return [kind for mapping in mappings for kind in _kinds(get_args(mapping)[1])]


def _kinds(annotation: Any) -> list[Any]:
    """Return the classes and literal types that an annotation allows."""
    members = get_args(annotation) if get_origin(annotation) in UNIONS else [annotation]
    return [
        member if get_origin(member) is Literal else _origin(member) or member for member in members
    ]


def _origin(kind: Any) -> Any:
    """Return the class without its parameters, also that of a generic model; ``None`` if none."""
    return get_origin(kind) or getattr(kind, "__pydantic_generic_metadata__", {}).get("origin")


def _named(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return " or ".join(map(repr, get_args(kind)))
    return type_text(kind)


def _unknown(function: str, name: str, known: list[str]) -> str:
    near = nearest(name, known)
    hint = f"; did you mean {near!r}?" if near else f". Options: {', '.join(known)}"
    if name in _OF_TRANSLATOR and "dagster_dataops_translator" in known:
        hint = "; a DataOpsTranslator, given as dagster_dataops_translator, sets it for each asset"
        hint += f", and job_{name} for the jobs" if f"job_{name}" in known else ""
    return f"{function}() got an unexpected keyword argument {name!r}{hint}"


def _documented(docstring: str, fields: dict[str, OptionField]) -> str:
    """Return ``docstring`` with one entry per option in place of the line ``**options: ...``."""
    lines = docstring.splitlines()
    at = next((at for at, line in enumerate(lines) if line.strip().startswith(_MARK)), None)
    if at is None:
        return docstring
    indent = lines[at][: -len(lines[at].lstrip())]
    entries = [
        wrapped
        for name, field in fields.items()
        for wrapped in textwrap.wrap(
            f"{name}: {field.description}",
            _WIDTH,
            initial_indent=indent,
            subsequent_indent=f"{indent}    ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    ]
    return "\n".join([*lines[:at], *entries, *lines[at + 1 :]])
