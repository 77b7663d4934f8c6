"""Build the `OperatorSpec` of a function or class, and refuse invalid definitions.

A class is of the kind whose methods it defines:

* ``stream(self)``: a *reader*, which takes no input and returns a stream of records.
* ``forward(self, record)``: a *record operator*.
* ``forward_batch_input(self, records)``: a *dataset operator*.
* ``sketch(self, record)`` and ``keep(self, sketches)``: a *selection operator*, which selects
  records without changing them. ``sketch`` returns a small JSON value that the selection needs,
  such as a digest. It runs like ``forward`` of a record operator: in parallel, with a checkpoint,
  with failures in the error file. ``keep`` then takes an iterator over the sketches in input order,
  without those of failed records, and yields for each one whether to keep its record. It may read
  several sketches before it yields. If it has a third parameter ``scratch``, it gets the path of an
  empty folder for temporary files. Kept records are written unchanged.
* ``stream(self, first, second)`` or ``stream(self, *streams)``: a *stream operator*. It gets one
  stream per input and returns a stream of records, like ``DataPipeline.sample(first, second)``. It
  is also called with empty streams when the pipeline is built, so it must not read them.
* ``build(self, records, folder)`` or ``build(self, first, second, folder)``: an *artefact
  operator*. It gets an iterator over the records of each input, and the path of an empty folder, to
  which it writes files. The folder is published whole; other operators take it as an option.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, Literal

from dagster_dataops.errors import OperatorDefinitionError
from dagster_dataops.operators.declared_columns import NOTHING, ColumnDeclarations
from dagster_dataops.operators.named_outputs import checked_outputs
from dagster_dataops.operators.operator import Operator, init_parameters
from dagster_dataops.operators.reader_base import Readable, gives_stream, returns_stream
from dagster_dataops.operators.settings import SETTING_NAMES, parse_settings
from dagster_dataops.operators.signature import (
    count_inputs,
    options_of,
    parameters_of,
    takes_any,
    wants_iterator,
)
from dagster_dataops.operators.spec import METHODS, OperatorKind, OperatorSpec

Method = Literal["forward", "forward_batch_input", "stream"]
KINDS: dict[Method, OperatorKind] = {
    "forward": "record",
    "forward_batch_input": "dataset",
    "stream": "reader",
}
_CONTRACTS: Final[dict[OperatorKind, tuple[str, ...]]] = {
    "record": ("forward",),
    "dataset": ("forward_batch_input",),
    "selection": ("sketch", "keep"),
    "stream": ("stream",),
    "artefact": ("build",),
}
CONTEXT: Final = "context"  # name of the parameter that gets an OperatorContext
_WITH_CONTEXT: Final[frozenset[OperatorKind]] = frozenset({"record"})
_INPUTS: Final[dict[OperatorKind, str]] = {
    "record": "one record (a dict)",
    "dataset": "the records (a list of dicts)",
    "selection": "one record (sketch) or the sketches (keep)",
    "stream": "a stream",
    "artefact": "the records (an iterator of dicts)",
}


def spec_of_function(
    function: Callable[..., Any],
    group: str,
    method: Method,
    settings: Mapping[str, Any],
    declared: ColumnDeclarations = NOTHING,
    name: str | None = None,
) -> OperatorSpec:
    """Return the spec of a function operator.

    Args:
        function: The function.
        group: The group's name.
        method: The method it implements: ``forward``, ``forward_batch_input`` or ``stream``.
        settings: The execution settings given at registration.
        declared: The declared columns.
        name: The operator's name; by default the function's.

    Raises:
        OperatorDefinitionError: The function has no valid name, or takes no data.
        OperatorOptionError: A setting has an invalid value.
    """
    name = checked_name(name or function.__name__, function)
    kind = "reader" if returns_stream(function) else KINDS[method]
    _check_reader(name, kind, settings)
    parameters = parameters_of(function)
    inputs = _checked_inputs(name, parameters, kind)
    given = _given(kind, parameters[inputs:])
    return OperatorSpec(
        group=group,
        name=name,
        kind=kind,
        target=function,
        options=tuple(options_of(parameters[inputs:], SETTING_NAMES | given)),
        any_option=takes_any(parameters),
        settings=parse_settings(f"{group}.{name}", settings),
        inputs=inputs,
        streamed=_streamed(parameters[:inputs], kind),
        asynchronous=_asynchronous(name, function, kind),
        declared=declared.checked(name),
        takes_context=bool(given),
    )


def spec_of_class(
    cls: type,
    group: str,
    settings: Mapping[str, Any],
    target: type | None = None,
    declared: ColumnDeclarations = NOTHING,
) -> OperatorSpec:
    """Return the spec of a class operator.

    Args:
        cls: A subclass of a group.
        group: The group's name.
        settings: The execution settings given at registration; class attributes of the same
            names count too.
        target: The original class, if ``cls`` was derived from it.
        declared: The declared columns.

    Raises:
        OperatorDefinitionError: The class defines the methods of no kind, or of several.
    """
    name = checked_name(cls.__name__, cls)
    kind = _kind_of_class(name, cls)
    unbound, parameters = _method_of(cls, METHODS[kind])
    inputs = _checked_inputs(name, parameters, kind)
    if kind == "selection":
        _check_selection(name, cls, parameters)
    if kind == "artefact":
        parameters = parameters[:inputs]  # without the folder
    own = {key: getattr(cls, key) for key in SETTING_NAMES if hasattr(cls, key)}
    _check_reader(name, kind, {**own, **settings}, cls)
    given = _given(kind, parameters[inputs:])
    init = options_of(init_parameters(cls).values(), SETTING_NAMES)
    taken = {option.name for option in init} | SETTING_NAMES | given
    return OperatorSpec(
        group=group,
        name=name,
        kind=kind,
        target=target or cls,
        options=(*init, *options_of(parameters[inputs:], taken)),
        any_option=takes_any(parameters[inputs:]),
        settings=parse_settings(f"{group}.{name}", {**own, **settings}),
        inputs=inputs,
        streamed=_streamed(parameters[:inputs], kind),
        asynchronous=_asynchronous(name, unbound, kind),
        declared=declared.checked(name),
        opens=_opens(name, cls, kind),
        takes_context=bool(given),
    )


def _given(kind: OperatorKind, parameters: list[inspect.Parameter]) -> frozenset[str]:
    """Return the names of the parameters that the engine gives; they are no options."""
    if kind not in _WITH_CONTEXT:
        return frozenset()
    return frozenset(
        one.name for one in parameters if one.name == CONTEXT and one.default is one.empty
    )


def _opens(name: str, cls: type, kind: OperatorKind) -> bool:
    """Return whether a class has ``open`` or ``close``; check what they take.

    Raises:
        OperatorDefinitionError: They take something else, or the kind of operator has none.
    """
    methods = [method for method in ("open", "close") if _callable(cls, method)]
    if not methods or issubclass(cls, Readable):
        return False
    if kind not in _WITH_CONTEXT:
        reason = f"it has {methods[0]}(), which a {kind} operator has not; record operators have"
        raise OperatorDefinitionError(name, reason)
    for method, wanted in (("open", ["context"]), ("close", [])):
        if method in methods:
            parameters = _method_of(cls, method)[1]
            needed = [one.name for one in parameters if one.default is one.empty]
            if len(needed) != len(wanted):
                shown = ", ".join(["self", *wanted])
                raise OperatorDefinitionError(name, f"define {method}({shown})")
    return True


def checked_name(name: str, target: Any) -> str:
    """Check that ``name`` can name an operator, its folder and its asset; return the name."""
    if not name.isidentifier() or not name.isascii():
        reason = "its name cannot name a folder; write it as a `def` with a plain name"
        raise OperatorDefinitionError(f"{target.__module__}.{target.__qualname__}", reason)
    if name.startswith("_") or hasattr(Operator, name):
        raise OperatorDefinitionError(name, "the name is reserved; choose another")
    return name


def _kind_of_class(name: str, cls: type) -> OperatorKind:
    if gives_stream(cls):
        return "reader"
    has = {
        method for methods in _CONTRACTS.values() for method in methods if _callable(cls, method)
    }
    kinds = [kind for kind, methods in _CONTRACTS.items() if has.issuperset(methods)]
    # Other kinds may have methods named stream and build.
    kinds = [kind for kind in kinds if kind not in {"stream", "artefact"}] or kinds
    if len(kinds) > 1:
        first, second = (_CONTRACTS[kind][0] for kind in kinds[:2])
        reason = f"it has both of {first} and {second}; define exactly one"
        raise OperatorDefinitionError(name, reason)
    if not kinds:
        half = f"; it has only {has.pop()}" if has else ""
        reason = (
            "it has neither of forward, forward_batch_input and build, nor sketch with keep; "
            f"define exactly one{half}"
        )
        raise OperatorDefinitionError(name, reason)
    return kinds[0]


def _callable(cls: type, method: str) -> bool:
    return callable(getattr(cls, method, None))


def _method_of(cls: type, method: str) -> tuple[Any, list[inspect.Parameter]]:
    """Return the original function of a method, and its parameters without ``self``."""
    function = inspect.getattr_static(cls, method)
    unbound = function.__func__ if isinstance(function, (staticmethod, classmethod)) else function
    return unbound, parameters_of(unbound)[0 if isinstance(function, staticmethod) else 1 :]


def _check_reader(
    name: str, kind: OperatorKind, settings: Mapping[str, Any], cls: type | None = None
) -> None:
    """Raise an error for ``stream`` in a class other than a reader, or for a reader's settings."""
    if kind != "reader":
        return
    if cls is not None and not issubclass(cls, Readable):
        reason = "it has stream(), as readers have: inherit from dagster_dataops.Reader first"
        raise OperatorDefinitionError(name, reason)
    if settings:
        reason = f"a reader is read in order by one process; leave out {', '.join(settings)}"
        raise OperatorDefinitionError(name, reason)


def _check_selection(name: str, cls: type, sketch: list[inspect.Parameter]) -> None:
    if len(sketch) != 1:
        reason = "sketch must take one record and nothing else; options belong to __init__"
        raise OperatorDefinitionError(name, reason)
    function, keep = _method_of(cls, "keep")
    if [parameter.name for parameter in keep[1:]] not in ([], ["scratch"]):
        reason = "keep must take the sketches, then `scratch` or nothing; options go to __init__"
        raise OperatorDefinitionError(name, reason)
    _checked_inputs(name, keep, "selection")
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise OperatorDefinitionError(name, "keep cannot be `async def`; sketch can")


def _checked_inputs(name: str, parameters: list[inspect.Parameter], kind: OperatorKind) -> int:
    if kind == "reader":
        return 0
    positional = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
    if kind == "stream" and parameters and parameters[0].kind is inspect.Parameter.VAR_POSITIONAL:
        return 0
    if not parameters or parameters[0].kind not in positional:
        what = _INPUTS[kind]
        raise OperatorDefinitionError(name, f"its first parameter must take {what}")
    if kind == "stream":
        return sum(one.kind in positional and one.default is one.empty for one in parameters)
    if kind == "artefact":
        return _inputs_of_build(name, parameters)
    return max(1, count_inputs(parameters, dataset=kind == "dataset"))


def _inputs_of_build(name: str, parameters: list[inspect.Parameter]) -> int:
    plain = all(
        one.kind is one.POSITIONAL_OR_KEYWORD and one.default is one.empty for one in parameters
    )
    if len(parameters) < 2 or parameters[-1].name != "folder" or not plain:
        found = ", ".join(str(one) for one in parameters)
        reason = (
            f"build must take (self, records, folder), or several inputs before the folder; it "
            f"takes (self, {found}); options belong to __init__"
        )
        raise OperatorDefinitionError(name, reason)
    return len(parameters) - 1


def _streamed(inputs: list[inspect.Parameter], kind: OperatorKind) -> tuple[bool, ...]:
    return tuple(kind == "artefact" or wants_iterator(parameter) for parameter in inputs)


def with_outputs(spec: OperatorSpec, outputs: object) -> OperatorSpec:
    """Return the spec of an operator with several results.

    Args:
        spec: The spec.
        outputs: The names of its results; the empty tuple for one result without a name.

    Raises:
        OperatorDefinitionError: The names are invalid, or the operator gets all records at once.
    """
    if outputs == ():
        return spec
    if spec.kind != "record":
        reason = (
            f"it is a {spec.kind} operator and has one result; outputs= needs an operator that "
            "gets one record at a time (forward)"
        )
        raise OperatorDefinitionError(spec.name, reason)
    return replace(spec, outputs=checked_outputs(spec.name, outputs))


def _asynchronous(name: str, function: Callable[..., Any], kind: OperatorKind) -> bool:
    asynchronous = inspect.iscoroutinefunction(function)
    if asynchronous and kind in {"dataset", "stream", "artefact"}:
        raise OperatorDefinitionError(name, f"a {kind} operator cannot be `async def`")
    if kind == "artefact" and inspect.isgeneratorfunction(function):
        raise OperatorDefinitionError(name, "build writes to its folder; it cannot `yield`")
    return asynchronous
