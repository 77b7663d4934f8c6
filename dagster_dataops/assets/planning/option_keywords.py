"""takes_options: add the options of ``**options: Unpack[...]`` to signatures and docstrings.

Type checkers and editors read the options from the TypedDict. ``help()``, notebooks and
``inspect.signature`` read them from the signature and docstring that `takes_options` creates.
"""

import inspect
import textwrap
from collections.abc import Callable
from functools import cache, wraps
from typing import Annotated, Any, Final, NamedTuple, TypeVar, cast, get_args, get_origin
from typing import get_type_hints as type_hints

from typing_extensions import Doc, override

from dagster_dataops.operators.options.signature import nearest

_Function = TypeVar("_Function", bound=Callable[..., Any])
_MARK: Final = "**options:"  # the line of a docstring that the options replace
_WIDTH: Final = 96


class OptionField(NamedTuple):
    """One option of a TypedDict.

    Attributes:
        annotation: Type of its value.
        description: Text of its `Doc`.
    """

    annotation: Any
    description: str


class _DescribedDefault:
    """The default of an option in a signature, shown as ``...``: its description explains it."""

    @override
    def __repr__(self) -> str:
        return "..."


_DEFAULT: Final = _DescribedDefault()


@cache
def option_fields(options: type) -> dict[str, OptionField]:
    """Return the options that a TypedDict declares, by name, in order."""
    found: dict[str, OptionField] = {}
    for name, annotation in type_hints(options, include_extras=True).items():
        if get_origin(annotation) is not Annotated:
            msg = f"option {name!r} of {options.__name__} needs Annotated[..., Doc(...)]"
            raise TypeError(msg)
        kind, *extras = get_args(annotation)
        (text,) = (extra.documentation for extra in extras if isinstance(extra, Doc))
        found[name] = OptionField(kind, text)
    return found


def takes_options(options: type) -> Callable[[_Function], _Function]:
    """Return a decorator for a function with ``**options: Unpack[options]``.

    The function gets a signature and a docstring with every option. It refuses unknown options.

    Args:
        options: TypedDict whose fields are ``Annotated[..., Doc(...)]``.
    """
    fields = option_fields(options)

    def decorate(function: _Function) -> _Function:
        signature = _signature(function, fields)

        @wraps(function)
        def checked(*args: Any, **given: Any) -> Any:
            for name in given:
                if name not in signature.parameters:
                    raise TypeError(_unknown(function.__name__, name, list(signature.parameters)))
            return function(*args, **given)

        checked.__signature__ = signature  # type: ignore[attr-defined]
        checked.__doc__ = _documented(function.__doc__ or "", fields)
        return cast("_Function", checked)

    return decorate


def _signature(function: Callable[..., Any], fields: dict[str, OptionField]) -> inspect.Signature:
    signature = inspect.signature(function)
    own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
    kind = inspect.Parameter.KEYWORD_ONLY
    spelled = [
        inspect.Parameter(name, kind, annotation=field.annotation, default=_DEFAULT)
        for name, field in fields.items()
    ]
    return signature.replace(parameters=[*own, *spelled])


def _unknown(function: str, name: str, known: list[str]) -> str:
    near = nearest(name, known)
    hint = f"; did you mean {near!r}?" if near else f". Options: {', '.join(known)}"
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
