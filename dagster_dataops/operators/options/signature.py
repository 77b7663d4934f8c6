"""Read the inputs and options of an operator from the signature of its function or class."""

import difflib
import inspect
import logging
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from typing_extensions import override

from dagster_dataops.errors import OperatorOptionError
from dagster_dataops.operators.options.ranges import plain_type
from dagster_dataops.operators.options.secret_options import shown

REQUIRED: Final = inspect.Parameter.empty
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_ITERABLES = (Iterable, Iterator)
_LOG: Final = logging.getLogger("dagster_dataops")
# Similar enough: text_fild and text_field. Not similar enough: top_k and top_p.
_MISSPELLING_LIKENESS: Final = 0.85
_LONGEST_DEFAULT: Final = 60  # characters


@dataclass(frozen=True, slots=True)
class OptionSpec:
    """One option of an operator.

    Attributes:
        name: The keyword.
        default: The default value, or `REQUIRED`.
        annotation: The annotated type; ``Any`` without annotation.
    """

    name: str
    default: Any
    annotation: Any

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


def options_of(
    parameters: Iterable[inspect.Parameter], hidden: Collection[str]
) -> list[OptionSpec]:
    """Return the parameters that can be given by keyword, without the ``hidden`` ones."""
    return [
        OptionSpec(
            parameter.name,
            parameter.default,
            Any if parameter.annotation is parameter.empty else parameter.annotation,
        )
        for parameter in parameters
        if parameter.kind in _NAMED and parameter.name not in hidden
    ]


def positional_names(classes: Iterable[type]) -> list[str]:
    """Return the names of the positional parameters of ``__init__``, in order.

    Args:
        classes: The class, then its bases. A base counts if the classes before it pass on
            ``*args``.
    """
    names: dict[str, None] = {}
    for cls in classes:
        if "__init__" not in cls.__dict__:
            continue
        parameters = parameters_of(cls.__dict__["__init__"])[1:]
        names |= {one.name: None for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD}
        if all(one.kind is not one.VAR_POSITIONAL for one in parameters):
            break
    return list(names)


def signature_text(options: Iterable[OptionSpec], positional: Collection[str]) -> str:
    """Return the options as a signature, such as ``(suffix, *, loud=False)``.

    Args:
        options: The options, in the order of the signature.
        positional: The names of options that can be given by position; they come first.
    """
    ordered = sorted(options, key=lambda option: option.name not in positional)
    texts = [_option_text(option) for option in ordered]
    first = next((at for at, one in enumerate(ordered) if one.name not in positional), None)
    if first is not None:
        texts.insert(first, "*")
    return f"({', '.join(texts)})"


def _option_text(option: OptionSpec) -> str:
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
    options: Iterable[OptionSpec], positional: Collection[str], settings: Iterable[str]
) -> inspect.Signature:
    """Return the signature of constructing an operator.

    Args:
        options: Options of the operator.
        positional: Names of those that can be given by position; they come first.
        settings: Names of the execution settings that it takes.
    """
    parameters = [
        inspect.Parameter(
            option.name,
            _NAMED[option.name not in positional],
            annotation=plain_type(option.annotation),
            default=REQUIRED if option.required else ShownDefault(_default_text(option)),
        )
        for option in sorted(options, key=lambda option: option.name not in positional)
    ]
    kind = inspect.Parameter.KEYWORD_ONLY
    parameters += [inspect.Parameter(name, kind, default=None) for name in settings]
    return inspect.Signature(parameters)


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
    operator: str, known: Iterable[OptionSpec], given: Mapping[str, Any], *, any_option: bool
) -> dict[str, Any]:
    """Return every option with its given or default value, in the order of the signature.

    With ``any_option``, an unknown name that resembles an option that was not given is logged as a
    warning.

    Raises:
        OperatorOptionError: An option is unknown (the message names the nearest one) or missing.
    """
    specs = {spec.name: spec for spec in known}
    free = [name for name in specs if name not in given]
    for name in (name for name in given if name not in specs):
        if not any_option:
            raise OperatorOptionError(operator, name, _unknown(name, specs))
        if near := nearest(name, free, _MISSPELLING_LIKENESS):
            text = "Operator %s: option %r is passed on by **kwargs; did you mean %r?"
            _LOG.warning(text, operator, name, near)
    for spec in specs.values():
        if spec.required and spec.name not in given:
            raise OperatorOptionError(operator, spec.name, "is required and was not given")
    bound = {name: given.get(name, spec.default) for name, spec in specs.items()}
    return bound | {name: value for name, value in given.items() if name not in specs}


def _unknown(name: str, known: Collection[str]) -> str:
    near = nearest(name, known)
    takes = ", ".join(known) if known else "none"
    return f"is unknown{f'; did you mean {near!r}?' if near else '.'} Its options: {takes}"


def nearest(name: str, known: Collection[str], likeness: float = 0.6) -> str | None:
    """Return the known name that ``name`` most likely misspells.

    Args:
        name: The given name.
        known: The names to compare with.
        likeness: The minimum similarity, in [0, 1].
    """
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=likeness)), None)
