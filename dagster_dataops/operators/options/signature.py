"""Read the inputs and options of an operator from the signature of its function or class."""

import ast
import inspect
import logging
import textwrap
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import GenericAlias
from typing import Any, Final, NamedTuple

from dagster_dataops.errors import OperatorOptionError
from dagster_dataops.foundation.hashing.source_text import parsed
from dagster_dataops.foundation.override import override
from dagster_dataops.operators.options.annotations import plain_type
from dagster_dataops.operators.secrets.secret_options import shown

REQUIRED: Final = inspect.Parameter.empty
_KINDS = (
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.KEYWORD_ONLY,
)
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_ITERABLES = (Iterable, Iterator)
_LOG: Final = logging.getLogger("dagster_dataops")
# Similar enough: text_fild and text_field. Not similar enough: top_k and top_p.
_MISSPELLING_LIKENESS: Final = 0.85
_LONGEST_DEFAULT: Final = 60  # characters


class OptionSpec(NamedTuple):
    """One option of an operator.

    Attributes:
        name: The keyword.
        default: The default value, or `REQUIRED`.
        annotation: The annotated type; ``Any`` without annotation.
        many: Whether it takes all further positional arguments, as ``*names`` does. It is a tuple,
            and counts for no fingerprint if it is empty.
        former: Its former names, the oldest first. The first counts in fingerprints.
    """

    name: str
    default: Any
    annotation: Any
    many: bool = False
    former: tuple[str, ...] = ()

    @property
    def required(self) -> bool:
        """Whether the option must be given."""
        return self.default is REQUIRED


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters, with annotations resolved if possible."""
    try:
        return list(inspect.signature(function, eval_str=True).parameters.values())
    except (NameError, TypeError, SyntaxError):  # for example, names imported under TYPE_CHECKING
        return list(inspect.signature(function).parameters.values())


def takes_any(parameters: Iterable[inspect.Parameter]) -> bool:
    """Return whether there is a ``**kwargs`` parameter."""
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)


class PositionalOptions(NamedTuple):
    """The options of a class that can be given by position.

    Attributes:
        names: Their names, in order.
        rest: The name of the parameter that takes further ones, as ``*names``; empty for none.
        only: Whether one cannot be given to ``__init__`` by keyword.
    """

    names: tuple[str, ...]
    rest: str = ""
    only: bool = False


_NONE: Final = PositionalOptions(())


def options_of(
    parameters: Iterable[inspect.Parameter],
    hidden: Collection[str],
    positional: PositionalOptions = _NONE,
) -> list[OptionSpec]:
    """Return the parameters that can be given by keyword, without the ``hidden`` ones.

    Args:
        parameters: The parameters.
        hidden: Names of those that are no options.
        positional: The options that can be given by position, in which case the operator accepts
            them by keyword, too.
    """
    return [
        _option_of(parameter)
        for parameter in parameters
        if parameter.name not in hidden and _is_option(parameter, positional)
    ]


def _is_option(parameter: inspect.Parameter, positional: PositionalOptions) -> bool:
    if parameter.kind is parameter.VAR_POSITIONAL:
        return parameter.name == positional.rest
    if parameter.kind is parameter.POSITIONAL_ONLY:
        return parameter.name in positional.names
    return parameter.kind in _NAMED


def _option_of(parameter: inspect.Parameter) -> OptionSpec:
    annotation = Any if parameter.annotation is parameter.empty else parameter.annotation
    if parameter.kind is parameter.VAR_POSITIONAL:
        return OptionSpec(parameter.name, (), GenericAlias(tuple, (annotation, ...)), many=True)
    return OptionSpec(parameter.name, parameter.default, annotation)


def positional_of(classes: Sequence[type]) -> PositionalOptions:
    """Return the options of ``__init__`` that can be given by position.

    Args:
        classes: The class, then its bases. A base counts if the classes before it pass on
            ``*args`` to its ``__init__``.
    """
    names: dict[str, inspect.Parameter] = {}
    defining = [cls for cls in classes if "__init__" in cls.__dict__]
    for number, cls in enumerate(defining, 1):
        function = cls.__dict__["__init__"]
        parameters = parameters_of(function)[1:]
        names |= {
            parameter.name: parameter for parameter in parameters if parameter.kind in _POSITIONAL
        }
        rest = next(
            (
                parameter.name
                for parameter in parameters
                if parameter.kind is parameter.VAR_POSITIONAL
            ),
            "",
        )
        passed = bool(rest) and passes_on(function, rest)
        if not rest or passed is False or (passed is None and number == len(defining)):
            only = any(parameter.kind is parameter.POSITIONAL_ONLY for parameter in names.values())
            return PositionalOptions(tuple(names), rest, only)
    only = any(parameter.kind is parameter.POSITIONAL_ONLY for parameter in names.values())
    return PositionalOptions(tuple(names), only=only)


def passes_on(function: Any, rest: str) -> bool | None:
    """Return whether ``__init__`` passes ``*rest`` on to another; ``None`` if it is not known."""
    try:
        tree = parsed(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):  # such as a class of an interactive session
        return None
    return any(
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "__init__"
        and any(_is_starred(argument, rest) for argument in call.args)
        for call in ast.walk(tree)
    )


def _is_starred(argument: ast.expr, name: str) -> bool:
    starred = argument.value if isinstance(argument, ast.Starred) else None
    return isinstance(starred, ast.Name) and starred.id == name


def signature_text(options: Iterable[OptionSpec], positional: Collection[str]) -> str:
    """Return the options as a signature, such as ``(suffix, *, loud=False)``.

    Args:
        options: The options, in the order of the signature.
        positional: The names of options that can be given by position; they come first.
    """
    ordered = sorted(options, key=lambda option: _order(option, positional))
    texts = [_option_text(option) for option in ordered]
    first = next(
        (at for at, parameter in enumerate(ordered) if parameter.name not in positional), None
    )
    if first is not None and not ordered[first].many:
        texts.insert(first, "*")
    return f"({', '.join(texts)})"


def _order(option: OptionSpec, positional: Collection[str]) -> int:
    """Return 0 for an option that can be given by position, 1 for ``*names``, 2 for others."""
    return 0 if option.name in positional else 1 if option.many else 2


def _option_text(option: OptionSpec) -> str:
    if option.many:
        return f"*{option.name}"
    return option.name if option.required else f"{option.name}={_default_text(option)}"


def _default_text(option: OptionSpec) -> str:
    """Return a default without secrets, ``...`` for a long one."""
    text = shown(option.name, option.default)
    return "..." if len(text) > _LONGEST_DEFAULT else text


class ShownDefault:
    """A default value in a signature, shown by a given text."""

    def __init__(self, text: str) -> None:
        self._text = text

    @override
    def __repr__(self) -> str:
        return self._text


def signature_of(
    options: Iterable[OptionSpec], positional: Collection[str], *, takes_settings: bool
) -> inspect.Signature:
    """Return the signature of constructing an operator.

    Args:
        options: Options of the operator.
        positional: Names of those that can be given by position; they come first.
        takes_settings: Whether it takes execution settings, shown as ``**_settings``.
    """
    parameters = [
        inspect.Parameter(
            option.name,
            _KINDS[_order(option, positional)],
            annotation=_shown_type(option),
            default=REQUIRED
            if option.required or option.many
            else ShownDefault(_default_text(option)),
        )
        for option in sorted(options, key=lambda option: _order(option, positional))
    ]
    if takes_settings:
        parameters.append(inspect.Parameter("_settings", inspect.Parameter.VAR_KEYWORD))
    return inspect.Signature(parameters)


def _shown_type(option: OptionSpec) -> Any:
    annotation = typing.get_args(option.annotation)[0] if option.many else option.annotation
    return plain_type(annotation)


def count_inputs(parameters: list[inspect.Parameter], *, dataset: bool) -> int:
    """Return the number of leading input parameters: one, or all datasets of a joining operator."""
    inputs = 0
    for parameter in parameters:
        positional = parameter.kind in {
            parameter.POSITIONAL_ONLY,
            parameter.POSITIONAL_OR_KEYWORD,
        }
        if not positional or parameter.default is not parameter.empty:
            break
        if inputs and not (dataset and _is_dataset(parameter.annotation)):
            break
        inputs += 1
    return inputs


def wants_iterator(parameter: inspect.Parameter) -> bool:
    """Return whether an input is annotated as an iterable, so its records can be streamed."""
    origin = typing.get_origin(parameter.annotation) or parameter.annotation
    return origin in _ITERABLES


def _is_dataset(annotation: object) -> bool:
    origin = typing.get_origin(annotation) or annotation
    return origin is list or origin in _ITERABLES


def bind_options(
    operator: str, known: Iterable[OptionSpec], options: Mapping[str, Any], *, any_option: bool
) -> dict[str, Any]:
    """Return every option with its given or default value, in the order of the signature.

    With ``any_option``, an unknown name that resembles an option that was not given is logged as a
    warning.

    Raises:
        OperatorOptionError: An option is unknown (the message names the nearest one) or missing.
    """
    specs = {spec.name: spec for spec in known}
    free = [name for name in specs if name not in options]
    for name in (name for name in options if name not in specs):
        if not any_option:
            raise OperatorOptionError(operator, name, _unknown(name, specs.values()))
        if near := nearest(name, free, _MISSPELLING_LIKENESS):
            text = "Operator %s: option %r is passed on by **kwargs; did you mean %r?"
            _LOG.warning(text, operator, name, near)
    for spec in specs.values():
        if spec.required and spec.name not in options:
            raise OperatorOptionError(operator, spec.name, "is required and was not given")
    bound = {
        name: _all_of(operator, spec, options) if spec.many else options.get(name, spec.default)
        for name, spec in specs.items()
    }
    return bound | {name: value for name, value in options.items() if name not in specs}


def _all_of(operator: str, spec: OptionSpec, options: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the further positional arguments."""
    value = options.get(spec.name, ())
    if not isinstance(value, (list, tuple)):
        reason = f"is {shown(spec.name, value)}; it must be a list, or be given by position"
        raise OperatorOptionError(operator, spec.name, reason)
    return tuple(value)


def _unknown(name: str, known: Collection[OptionSpec]) -> str:
    names = {spec.name: spec.name for spec in known}
    former = {old: spec.name for spec in known for old in spec.former}
    near = nearest(name, [*names, *former])
    near = near and {**former, **names}[near]
    takes = ", ".join(names) if names else "none"
    return f"is unknown{f'; did you mean {near!r}?' if near else '.'} Its options: {takes}"


def nearest(name: str, known: Collection[str], likeness: float = 0.6) -> str | None:
    """Return the known name that ``name`` most likely misspells.

    Args:
        name: The given name.
        known: The names to compare with.
        likeness: The minimum similarity, in [0, 1].
    """
    from difflib import get_close_matches  # slow to import

    return next(iter(get_close_matches(name, known, n=1, cutoff=likeness)), None)
