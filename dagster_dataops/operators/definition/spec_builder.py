"""Build the `OperatorSpec` of a function or class, and refuse invalid definitions.

A class is of the kind whose methods it defines:

* ``stream(self)``: a *reader*, which takes no input and returns a stream of records.
* ``forward(self, record)``: a *record operator*.
* ``forward_batch_input(self, records)``: a *dataset operator*.
* ``select_samples_to_pack(self, samples)`` and ``pack_selected_samples(self, samples)``: a record
  operator over windows of the input. The first returns groups of the records of a window, the
  second makes a record, or several, of a group.
* ``sketch(self, record)`` and ``keep(self, sketches)``: a *selection operator*, which selects
  records without changing them. ``sketch`` returns a small JSON value that the selection needs,
  such as a digest. It runs like ``forward`` of a record operator: in parallel, with a checkpoint,
  with failures in the error file. ``keep`` then takes an iterator over the sketches in input order,
  without those of failed records, and yields for each one whether to keep its record. It may read
  several sketches before it yields. If it has a third parameter ``scratch``, it gets the path of an
  empty folder for temporary files. Kept records are written unchanged. Instead of ``sketch`` it may
  define ``sketch_batch(self, records)``, which returns a sketch for each record of a batch. If the
  class also defines ``change(self, record, verdict)``, ``keep`` may yield other values than bools:
  ``change`` gets the record and that value, and returns what ``forward`` of a record operator may
  return.
* ``stream(self, first, second)`` or ``stream(self, *streams)``: a *stream operator*. It gets one
  stream per input and returns a stream of records, like ``DataPipeline.sample(first, second)``. It
  is also called with empty streams when the pipeline is built, so it must not read them.
* ``build(self, records, folder)`` or ``build(self, first, second, folder)``: an *artefact
  operator*. It gets an iterator over the records of each input, and the path of an empty folder, to
  which it writes files. The folder is published whole; other operators take it as an option.
* ``write(self, records, place)``: an *export operator*. Its first option is the path of the export.
  It writes the records, which it may read several times, to ``place``: a file to create, or an
  empty folder if the class has ``place = "folder"``. The export then replaces the earlier one.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

from dagster_dataops.errors import OperatorDefinitionError, OperatorOptionError
from dagster_dataops.operators.definition.operator import (
    Operator,
    init_parameters,
    positional_options,
)
from dagster_dataops.operators.definition.reader_base import Readable, gives_stream, returns_stream
from dagster_dataops.operators.definition.spec import OperatorSpec
from dagster_dataops.operators.kinds.class_methods import checked_inputs, has_method, method_of
from dagster_dataops.operators.kinds.kind import Inputs, OperatorKind
from dagster_dataops.operators.kinds.kind_table import READER, classes, function_methods, kinds
from dagster_dataops.operators.options.declared_columns import NOTHING, ColumnDeclarations
from dagster_dataops.operators.options.renamed_options import (
    RENAMED,
    renamed_in,
    with_former_names,
)
from dagster_dataops.operators.options.settings import (
    REMOVED_SETTINGS,
    SETTING_NAMES,
    parse_settings,
)
from dagster_dataops.operators.options.signature import (
    OptionSpec,
    options_of,
    parameters_of,
    takes_any,
    wants_iterator,
)
from dagster_dataops.operators.outcomes.packed_window import add_forward_window

Method: TypeAlias = str  # the name of a method that a function can implement
CONTEXT: Final = "context"  # name of the parameter that gets an OperatorContext
_CONTEXT_TYPE: Final = "OperatorContext"
_NONE: Final[Mapping[str, Any]] = MappingProxyType({})


class OperatorTerms(NamedTuple):
    """What a registration says about an operator.

    Attributes:
        group: The group's name.
        method: The method that a function implements; classes define the method.
        settings: The execution settings.
        declared: The declared columns.
        outputs: The names of its results, or a function of the options that returns them; the empty
            tuple for one result without a name.
        renamed: The present names of options by former ones; classes have an attribute, too.
    """

    group: str
    method: Method = "forward"
    settings: Mapping[str, Any] = _NONE
    declared: ColumnDeclarations = NOTHING
    outputs: object = ()
    renamed: object = _NONE


def spec_of_function(
    function: Callable[..., Any], terms: OperatorTerms, name: str | None = None
) -> OperatorSpec:
    """Return the spec of a function operator.

    Raises:
        OperatorDefinitionError: The function has no valid name, or takes no data.
        OperatorOptionError: A setting has an invalid value.
    """
    name = checked_name(name or function.__name__, function)
    kind = READER if returns_stream(function) else function_methods()[terms.method]
    _check_reader(name, kind, terms.settings)
    parameters = parameters_of(function)
    inputs = checked_inputs(kind, name, parameters)
    context = _given(kind, parameters[inputs:])
    _check_reachable(name, parameters[inputs:], kind)
    spec = OperatorSpec(
        group=terms.group,
        name=name,
        kind=kind,
        target=function,
        options=with_former_names(
            name, options_of(parameters[inputs:], SETTING_NAMES | context), terms.renamed, {}
        ),
        any_option=takes_any(parameters),
        settings=parse_settings(f"{terms.group}.{name}", terms.settings),
        inputs=inputs,
        streamed=_streamed(parameters[:inputs], kind),
        asynchronous=_asynchronous(name, function, kind),
        declared=terms.declared.checked(name),
        takes_context=bool(context),
        batch=terms.method if terms.method in kind.batch_methods else "",
    )
    return _with_outputs(spec, terms.outputs)


def spec_of_class(cls: type, terms: OperatorTerms, target: type | None = None) -> OperatorSpec:
    """Return the spec of a class operator.

    Args:
        cls: A subclass of a group.
        terms: Of its registration; class attributes with the names of settings count too.
        target: The original class, if ``cls`` was derived from it.

    Raises:
        OperatorDefinitionError: The class defines the methods of no kind, or of several.
    """
    name = checked_name(cls.__name__, cls)
    add_forward_window(cls)
    kind, method = _kind_of_class(name, cls)
    unbound, parameters = method_of(cls, method)
    inputs = checked_inputs(kind, name, parameters)
    if kind.check is not None:
        kind.check(kind, name, cls, method)
    if kind.path_parameter:
        parameters = parameters[:inputs]
    for key in [key for key in REMOVED_SETTINGS if hasattr(cls, key)]:
        raise OperatorOptionError(f"{terms.group}.{name}", key, REMOVED_SETTINGS[key])
    of_class = {key: getattr(cls, key) for key in SETTING_NAMES if hasattr(cls, key)}
    settings = {**of_class, **terms.settings}
    _check_reader(name, kind, settings, cls)
    context = _given(kind, parameters[inputs:])
    positional = positional_options(cls)
    init = options_of(init_parameters(cls).values(), SETTING_NAMES, positional)
    _check_reachable(name, parameters[inputs:], kind)
    if kind.exports:
        _check_export(name, cls, init)
    names = {option.name for option in init} | SETTING_NAMES | context
    spec = OperatorSpec(
        group=terms.group,
        name=name,
        kind=kind,
        target=target or cls,
        options=with_former_names(
            name,
            [*init, *options_of(parameters[inputs:], names)],
            terms.renamed or vars(target or cls).get(RENAMED, {}),
            renamed_in(cls.__mro__[1:]),
        ),
        any_option=takes_any(parameters[inputs:]),
        settings=parse_settings(f"{terms.group}.{name}", settings),
        inputs=inputs,
        streamed=_streamed(parameters[:inputs], kind),
        asynchronous=_asynchronous(name, unbound, kind),
        declared=terms.declared.checked(name),
        opens=_opens(name, cls, kind),
        takes_context=bool(context),
        batch=method if method in kind.batch_methods else "",
        positional_only=positional.only,
    )
    return _with_outputs(spec, terms.outputs)


def _check_reachable(name: str, parameters: list[inspect.Parameter], kind: OperatorKind) -> None:
    """Check that each required parameter behind the inputs can be given, as a keyword.

    ``*args`` together with ``**kwargs`` is how a wrapper passes on all arguments.
    """
    if kind.takes_streams:
        return
    for parameter in parameters:
        rest = parameter.kind is parameter.VAR_POSITIONAL and not takes_any(parameters)
        if rest or (
            parameter.kind is parameter.POSITIONAL_ONLY and parameter.default is parameter.empty
        ):
            shown, remedy = ("*", "=()") if rest else ("", ", without the / behind it")
            reason = (
                f"its parameter '{shown}{parameter.name}' can never be given: options of a "
                f"function are keywords; write {parameter.name}{remedy}"
            )
            raise OperatorDefinitionError(name, reason)


def _given(kind: OperatorKind, parameters: list[inspect.Parameter]) -> frozenset[str]:
    """Return the names of the parameters that the engine gives; they are no options."""
    if not kind.returns_outcome:
        return frozenset()
    return frozenset(
        parameter.name
        for parameter in parameters
        if parameter.name == CONTEXT and _is_given(parameter)
    )


def _is_given(context: inspect.Parameter) -> bool:
    """Return whether a parameter takes the context, and is no option of the same name.

    It may have a default if its annotation says so: `OperatorContext | None = None`.
    """
    return context.default is context.empty or _CONTEXT_TYPE in str(context.annotation)


def _opens(name: str, cls: type, kind: OperatorKind) -> bool:
    """Return whether a class has ``open`` or ``close``; check their parameters."""
    methods = [method for method in ("open", "close") if has_method(cls, method)]
    if not methods or issubclass(cls, Readable):
        return False
    if not kind.by_record:
        opened = " and ".join(kind.name for kind in kinds() if kind.by_record)
        reason = (
            f"it has {methods[0]}(), which {kind.noun} operator has not; {opened} operators have"
        )
        raise OperatorDefinitionError(name, reason)
    for method, wanted in (("open", ["context"]), ("close", [])):
        if method in methods:
            parameters = method_of(cls, method)[1]
            needed = [
                parameter.name for parameter in parameters if parameter.default is parameter.empty
            ]
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


def _kind_of_class(name: str, cls: type) -> tuple[OperatorKind, str]:
    """Return the kind of a class, and its method that processes data."""
    if gives_stream(cls):
        return READER, READER.method
    ways = [(kind, way) for kind in classes() for way in kind.ways]
    has = {method for _, way in ways for method in way if has_method(cls, method)}
    matching = [(kind, way[0]) for kind, way in ways if has.issuperset(way)]
    lowest = min((kind.precedence for kind, _ in matching), default=0)
    matching = [kind for kind in matching if kind[0].precedence == lowest]
    if len(matching) > 1:
        (_, first), (_, second), *_ = matching
        reason = f"it has both of {first} and {second}; define exactly one"
        raise OperatorDefinitionError(name, reason)
    if not matching:
        half = f"; it has only {has.pop()}" if has else ""
        reason = f"it has {_none_of([way for _, way in ways])}; define exactly one{half}"
        raise OperatorDefinitionError(name, reason)
    return matching[0]


def _none_of(ways: Sequence[Sequence[str]]) -> str:
    """Return words for a class that has none of these methods."""
    single = [way[0] for way in ways if len(way) == 1]
    pairs = [f"nor {' with '.join(way)}" for way in ways if len(way) > 1]
    return ", ".join([f"neither of {', '.join(single[:-1])} and {single[-1]}", *pairs])


def _check_reader(
    name: str, kind: OperatorKind, settings: Mapping[str, Any], cls: type | None = None
) -> None:
    """Raise an error for ``stream`` in a class other than a reader, or for a reader's settings."""
    if not kind.reads_source:
        return
    if cls is not None and not issubclass(cls, Readable):
        reason = "it has stream(), as readers have: inherit from dagster_dataops.Reader first"
        raise OperatorDefinitionError(name, reason)
    if settings:
        reason = f"a reader is read in order by one process; leave out {', '.join(settings)}"
        raise OperatorDefinitionError(name, reason)


def _check_export(name: str, cls: type, options: Sequence[OptionSpec]) -> None:
    if not options:
        reason = "its first option is the path of the export; give __init__ one, such as `path`"
        raise OperatorDefinitionError(name, reason)
    place = getattr(cls, "place", "file")
    if place not in {"file", "folder", "pattern"}:
        reason = f"its `place` is {place!r}; it must be 'file', 'folder' or 'pattern'"
        raise OperatorDefinitionError(name, reason)


def _streamed(inputs: list[inspect.Parameter], kind: OperatorKind) -> tuple[bool, ...]:
    return tuple(
        kind.inputs is Inputs.ITERATORS or wants_iterator(parameter) for parameter in inputs
    )


def _with_outputs(spec: OperatorSpec, outputs: object) -> OperatorSpec:
    """Return the spec of an operator with several results."""
    if outputs == ():
        return spec
    if not spec.kind.returns_outcome:
        reason = (
            f"it is {spec.kind.noun} operator and has one result; outputs= needs an operator that "
            "gets one record at a time (forward)"
        )
        raise OperatorDefinitionError(spec.name, reason)
    if spec.by_window:
        reason = (
            f"{spec.batch} returns records for a whole batch, so that it is unknown which record "
            "goes to which of its outputs; define forward_batch instead"
        )
        raise OperatorDefinitionError(spec.name, reason)
    if callable(outputs):
        return replace(spec, outputs_of=outputs)
    from dagster_dataops.operators.outcomes.named_outputs import checked_outputs  # rare

    return replace(spec, outputs=checked_outputs(spec.name, outputs))


def _asynchronous(name: str, function: Callable[..., Any], kind: OperatorKind) -> bool:
    asynchronous = inspect.iscoroutinefunction(function)
    if asynchronous and not kind.by_record and not kind.reads_source:
        raise OperatorDefinitionError(name, f"{kind.noun} operator cannot be `async def`")
    if kind.path_parameter and inspect.isgeneratorfunction(function):
        writes = f"{kind.method} writes to its {kind.path_parameter}"
        raise OperatorDefinitionError(name, f"{writes}; it cannot `yield`")
    return asynchronous
