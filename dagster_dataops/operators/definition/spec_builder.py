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
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from dagster_dataops.errors import OperatorDefinitionError, OperatorOptionError
from dagster_dataops.operators.definition.operator import (
    Operator,
    init_parameters,
    positional_options,
)
from dagster_dataops.operators.definition.reader_base import Readable, gives_stream, returns_stream
from dagster_dataops.operators.definition.spec import METHODS, OperatorKind, OperatorSpec
from dagster_dataops.operators.options.declared_columns import NOTHING, ColumnDeclarations
from dagster_dataops.operators.options.settings import (
    REMOVED_SETTINGS,
    SETTING_NAMES,
    parse_settings,
)
from dagster_dataops.operators.options.signature import (
    OptionSpec,
    count_inputs,
    options_of,
    parameters_of,
    takes_any,
    wants_iterator,
)
from dagster_dataops.operators.outcomes.named_outputs import checked_outputs
from dagster_dataops.operators.outcomes.packed_window import add_forward_window

Method = Literal["forward", "forward_batch", "forward_window", "forward_batch_input", "stream"]
KINDS: dict[Method, OperatorKind] = {
    "forward": "record",
    "forward_batch": "record",
    "forward_window": "record",
    "forward_batch_input": "dataset",
    "stream": "reader",
}
_CONTRACTS: Final[tuple[tuple[OperatorKind, tuple[str, ...]], ...]] = (
    ("record", ("forward",)),
    ("record", ("forward_batch",)),
    ("record", ("forward_window",)),
    ("dataset", ("forward_batch_input",)),
    ("selection", ("sketch", "keep")),
    ("selection", ("sketch_batch", "keep")),
    ("stream", ("stream",)),
    ("artefact", ("build",)),
    ("export", ("write",)),
)
_BATCHES: Final = {"forward_batch", "forward_window", "sketch_batch"}
CONTEXT: Final = "context"  # name of the parameter that gets an OperatorContext
_CONTEXT_TYPE: Final = "OperatorContext"
_WITH_CONTEXT: Final[frozenset[OperatorKind]] = frozenset({"record"})
_OPENED: Final[frozenset[OperatorKind]] = frozenset({"record", "selection"})
_INPUTS: Final[dict[OperatorKind, str]] = {
    "record": "one record (a dict), or a batch of them (a list of dicts)",
    "dataset": "the records (a list of dicts)",
    "selection": "one record (sketch) or the sketches (keep)",
    "stream": "a stream",
    "artefact": "the records (an iterator of dicts)",
    "export": "the records",
}


@dataclass(frozen=True, kw_only=True)
class OperatorTerms:
    """What a registration says about an operator.

    Attributes:
        group: The group's name.
        method: The method that a function implements; classes define the method.
        settings: The execution settings.
        declared: The declared columns.
        outputs: The names of its results, or a function of the options that returns them; the empty
            tuple for one result without a name.
    """

    group: str
    method: Method = "forward"
    settings: Mapping[str, Any] = field(default_factory=dict)
    declared: ColumnDeclarations = NOTHING
    outputs: object = ()


def spec_of_function(
    function: Callable[..., Any], terms: OperatorTerms, name: str | None = None
) -> OperatorSpec:
    """Return the spec of a function operator.

    Args:
        function: The function.
        terms: Of its registration.
        name: The operator's name; by default the function's.

    Raises:
        OperatorDefinitionError: The function has no valid name, or takes no data.
        OperatorOptionError: A setting has an invalid value.
    """
    name = checked_name(name or function.__name__, function)
    kind = "reader" if returns_stream(function) else KINDS[terms.method]
    _check_reader(name, kind, terms.settings)
    parameters = parameters_of(function)
    inputs = _checked_inputs(name, parameters, kind)
    given = _given(kind, parameters[inputs:])
    _check_reachable(name, parameters[inputs:], kind)
    spec = OperatorSpec(
        group=terms.group,
        name=name,
        kind=kind,
        target=function,
        options=tuple(options_of(parameters[inputs:], SETTING_NAMES | given)),
        any_option=takes_any(parameters),
        settings=parse_settings(f"{terms.group}.{name}", terms.settings),
        inputs=inputs,
        streamed=_streamed(parameters[:inputs], kind),
        asynchronous=_asynchronous(name, function, kind),
        declared=terms.declared.checked(name),
        takes_context=bool(given),
        batch=terms.method if terms.method in _BATCHES else "",
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
    unbound, parameters = _method_of(cls, method)
    inputs = _checked_inputs(name, parameters, kind)
    if kind == "selection":
        _check_selection(name, cls, method, parameters)
    if kind in {"artefact", "export"}:
        parameters = parameters[:inputs]  # without the folder or place
    for key in [key for key in REMOVED_SETTINGS if hasattr(cls, key)]:
        raise OperatorOptionError(f"{terms.group}.{name}", key, REMOVED_SETTINGS[key])
    own = {key: getattr(cls, key) for key in SETTING_NAMES if hasattr(cls, key)}
    settings = {**own, **terms.settings}
    _check_reader(name, kind, settings, cls)
    given = _given(kind, parameters[inputs:])
    positional = positional_options(cls)
    init = options_of(init_parameters(cls).values(), SETTING_NAMES, positional)
    _check_reachable(name, parameters[inputs:], kind)
    if kind == "export":
        _check_export(name, cls, init)
    taken = {option.name for option in init} | SETTING_NAMES | given
    spec = OperatorSpec(
        group=terms.group,
        name=name,
        kind=kind,
        target=target or cls,
        options=(*init, *options_of(parameters[inputs:], taken)),
        any_option=takes_any(parameters[inputs:]),
        settings=parse_settings(f"{terms.group}.{name}", settings),
        inputs=inputs,
        streamed=_streamed(parameters[:inputs], kind),
        asynchronous=_asynchronous(name, unbound, kind),
        declared=terms.declared.checked(name),
        opens=_opens(name, cls, kind),
        takes_context=bool(given),
        batch=method if method in _BATCHES else "",
        positional_only=positional.only,
    )
    return _with_outputs(spec, terms.outputs)


def _check_reachable(name: str, parameters: list[inspect.Parameter], kind: OperatorKind) -> None:
    """Check that each required parameter behind the inputs can be given, as a keyword.

    ``*args`` together with ``**kwargs`` is how a wrapper passes on all arguments.

    Raises:
        OperatorDefinitionError: One cannot.
    """
    if kind == "stream":
        return
    for one in parameters:
        rest = one.kind is one.VAR_POSITIONAL and not takes_any(parameters)
        if rest or (one.kind is one.POSITIONAL_ONLY and one.default is one.empty):
            shown, remedy = ("*", "=()") if rest else ("", ", without the / behind it")
            reason = (
                f"its parameter '{shown}{one.name}' can never be given: options of a function are "
                f"keywords; write {one.name}{remedy}"
            )
            raise OperatorDefinitionError(name, reason)


def _given(kind: OperatorKind, parameters: list[inspect.Parameter]) -> frozenset[str]:
    """Return the names of the parameters that the engine gives; they are no options."""
    if kind not in _WITH_CONTEXT:
        return frozenset()
    return frozenset(one.name for one in parameters if one.name == CONTEXT and _is_given(one))


def _is_given(context: inspect.Parameter) -> bool:
    """Return whether a parameter takes the context, and is no option of the same name.

    It may have a default if its annotation says so: `OperatorContext | None = None`.
    """
    return context.default is context.empty or _CONTEXT_TYPE in str(context.annotation)


def _opens(name: str, cls: type, kind: OperatorKind) -> bool:
    """Return whether a class has ``open`` or ``close``; check their parameters.

    Raises:
        OperatorDefinitionError: They take something else, or the kind of operator has none.
    """
    methods = [method for method in ("open", "close") if _callable(cls, method)]
    if not methods or issubclass(cls, Readable):
        return False
    if kind not in _OPENED:
        reason = (
            f"it has {methods[0]}(), which a {kind} operator has not; record and selection "
            "operators have"
        )
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


def _kind_of_class(name: str, cls: type) -> tuple[OperatorKind, str]:
    """Return the kind of a class, and its method that processes data."""
    if gives_stream(cls):
        return "reader", METHODS["reader"]
    has = {method for _, methods in _CONTRACTS for method in methods if _callable(cls, method)}
    found = [(kind, methods[0]) for kind, methods in _CONTRACTS if has.issuperset(methods)]
    # Other kinds may have methods named stream, build and write.
    found = [one for one in found if one[0] not in {"stream", "artefact", "export"}] or found
    found = [one for one in found if one[0] != "export"] or found
    if len(found) > 1:
        (_, first), (_, second), *_ = found
        reason = f"it has both of {first} and {second}; define exactly one"
        raise OperatorDefinitionError(name, reason)
    if not found:
        half = f"; it has only {has.pop()}" if has else ""
        reason = (
            "it has neither of forward, forward_batch, forward_batch_input, build and write, nor "
            f"sketch with keep; define exactly one{half}"
        )
        raise OperatorDefinitionError(name, reason)
    return found[0]


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


def _check_selection(name: str, cls: type, method: str, sketch: list[inspect.Parameter]) -> None:
    if len(sketch) != 1:
        taken = "one record" if method == "sketch" else "a list of records"
        reason = f"{method} must take {taken} and nothing else; options belong to __init__"
        raise OperatorDefinitionError(name, reason)
    function, keep = _method_of(cls, "keep")
    if [parameter.name for parameter in keep[1:]] not in ([], ["scratch"]):
        reason = "keep must take the sketches, then `scratch` or nothing; options go to __init__"
        raise OperatorDefinitionError(name, reason)
    _checked_inputs(name, keep, "selection")
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise OperatorDefinitionError(name, "keep cannot be `async def`; sketch can")
    if _callable(cls, "change") and len(_method_of(cls, "change")[1]) != 2:
        reason = "change must take the record and what keep yielded; options belong to __init__"
        raise OperatorDefinitionError(name, reason)


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
    if kind in {"artefact", "export"}:
        return _inputs_before_place(name, parameters, kind)
    return max(1, count_inputs(parameters, dataset=kind == "dataset"))


def _inputs_before_place(name: str, parameters: list[inspect.Parameter], kind: OperatorKind) -> int:
    """Return the number of inputs before the folder of ``build``, or the place of ``write``."""
    names = [one.name for one in parameters]
    if kind == "export":
        wanted, fits = "write must take (self, records, place)", names == ["records", "place"]
    else:
        wanted = "build must take (self, records, folder), or several inputs before the folder"
        fits = len(names) > 1 and names[-1] == "folder" and all(map(_is_plain, parameters))
    if not fits:
        found = ", ".join(map(str, parameters))
        reason = f"{wanted}; it takes (self, {found}); options belong to __init__"
        raise OperatorDefinitionError(name, reason)
    return len(names) - 1


def _is_plain(one: inspect.Parameter) -> bool:
    return one.kind is one.POSITIONAL_OR_KEYWORD and one.default is one.empty


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
        kind in {"artefact", "export"} or wants_iterator(parameter) for parameter in inputs
    )


def _with_outputs(spec: OperatorSpec, outputs: object) -> OperatorSpec:
    """Return the spec of an operator with several results.

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
    if spec.batch == "forward_window":
        reason = (
            "forward_window returns records for a whole batch, so that it is unknown which record "
            "goes to which of its outputs; define forward_batch instead"
        )
        raise OperatorDefinitionError(spec.name, reason)
    if callable(outputs):
        return replace(spec, outputs_of=outputs)
    return replace(spec, outputs=checked_outputs(spec.name, outputs))


def _asynchronous(name: str, function: Callable[..., Any], kind: OperatorKind) -> bool:
    asynchronous = inspect.iscoroutinefunction(function)
    if asynchronous and kind in {"dataset", "stream", "artefact", "export"}:
        raise OperatorDefinitionError(name, f"a {kind} operator cannot be `async def`")
    if kind in {"artefact", "export"} and inspect.isgeneratorfunction(function):
        writes = "build writes to its folder" if kind == "artefact" else "write writes to its place"
        raise OperatorDefinitionError(name, f"{writes}; it cannot `yield`")
    return asynchronous
