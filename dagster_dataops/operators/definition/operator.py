"""`Operator`: the base class of all operators and groups.

A group is a subclass of `Operator`. Inheriting from a group registers a class operator.
Constructing an operator checks and binds its options; no file is opened, read or written.
"""

import copy
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, Self, TypeVar, cast

from dagster_dataops.errors import (
    ConfigurationError,
    DefinitionError,
    OperatorDefinitionError,
    OperatorOptionError,
    UnknownOperatorError,
)
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.parts import NotebookHtml
from dagster_dataops.foundation.places.url_forms import check_local
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.operators.definition.spec import Invocation, OperatorSpec
from dagster_dataops.operators.options.artefact_options import (
    as_option,
    referenced,
    with_references,
)
from dagster_dataops.operators.options.concurrency_modes import mode_named
from dagster_dataops.operators.options.declared_columns import DECLARATIONS, ColumnDeclarations
from dagster_dataops.operators.options.file_content import contents_of
from dagster_dataops.operators.options.renamed_options import by_present_names, renamed_in
from dagster_dataops.operators.options.settings import (
    REMOVED_SETTINGS,
    SETTING_NAMES,
    ExecutionSettings,
    parse_settings,
)
from dagster_dataops.operators.options.signature import (
    PositionalOptions,
    bind_options,
    nearest,
    parameters_of,
    positional_of,
    signature_of,
    signature_text,
    takes_any,
)
from dagster_dataops.operators.outcomes.record_context import RunLink
from dagster_dataops.operators.secrets.secret_options import holds_secret, secrets_of, shown
from dagster_dataops.records import Record, decode

if TYPE_CHECKING:
    import os

    from dagster_dataops.datasets.file_values.file_keeper import FileKeeper

_T = TypeVar("_T")

_DOC: Final[Any] = vars(type)["__doc__"]
OUTPUTS: Final = "__dataops_outputs__"  # the attribute with the outputs of a class statement


class Registry(Protocol):
    """The parts of the operator registry that a group uses."""

    def add_class(self, operator: "OperatorMeta", declared: ColumnDeclarations) -> None:
        """Register a class operator after its definition."""

    def operator(self, group: str, name: str) -> "OperatorMeta":
        """Return a registered operator, or raise `UnknownOperatorError`."""

    def operators(self, group: str) -> list[str]:
        """Return the sorted names of the operators of a group."""

    def text_of(self, group: str) -> str:
        """Return a text about a group and its operators."""
        ...

    def run(self, operator: "Operator", data: object) -> object:
        """Run ``operator`` over ``data``."""


def _docstring(cls: "OperatorMeta") -> str | None:
    """Return the docstring of an operator; of a group a list of its operators, all imported."""
    if "__dataops_registry__" in cls.__dict__:
        return cls.__dataops_registry__.text_of(cls.__dataops_group__)
    text: str | None = _DOC.__get__(cls)
    return text


class OperatorMeta(type):
    """Registers class operators on definition, and checks options on construction."""

    __dataops_registry__: Registry
    __dataops_group__: str
    __dataops_spec__: OperatorSpec

    def __new__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **keywords: Any
    ) -> "OperatorMeta":
        """Create the class. A class statement below a group also registers it.

        The keywords ``reads``, ``writes`` and ``columns`` of the statement declare columns,
        ``outputs`` the names of several results, or a function of the options that returns them.
        """
        if "outputs" in keywords:
            namespace[OUTPUTS] = keywords.pop("outputs")
        declared = {key: keywords.pop(key) for key in DECLARATIONS & keywords.keys()}
        created = super().__new__(cls, name, bases, namespace, **keywords)
        # Only class statements set __qualname__; unpickling and generated classes do not.
        if "__qualname__" in namespace and hasattr(created, "__dataops_group__"):
            created.__dataops_registry__.add_class(created, ColumnDeclarations(**declared))
        return created

    def __getattr__(cls, name: str) -> "OperatorMeta":
        """Return the operator ``name`` of a group: ``data.demo.process_lower``."""
        if name.startswith("__") or "__dataops_registry__" not in cls.__dict__:
            msg = f"type object {cls.__name__!r} has no attribute {name!r}"
            raise AttributeError(msg)
        return cls.__dataops_registry__.operator(cls.__dataops_group__, name)

    @override
    def __dir__(cls) -> list[str]:
        """Return the operators of a group; for an operator, its public attributes and ``__call__``.

        ``help()`` describes what is listed here.
        """
        if "__dataops_registry__" in cls.__dict__:
            return cls.__dataops_registry__.operators(cls.__dataops_group__)
        return ["__call__", *sorted(name for name in super().__dir__() if not name.startswith("_"))]

    __doc__ = property(_docstring, _DOC.__set__)

    @property
    def __signature__(cls) -> inspect.Signature:
        """The signature of the constructor, with options and settings, for ``help()``."""
        spec = getattr(cls, "__dataops_spec__", None)
        if spec is None:
            raise AttributeError("__signature__")
        takes_settings = not spec.kind.reads_source
        return signature_of(
            spec.options, _positional(cls, spec).names, takes_settings=takes_settings
        )

    @override
    def __repr__(cls) -> str:
        """Return an operator with its options, or a group with its operators."""
        spec = getattr(cls, "__dataops_spec__", None)
        if spec is not None:
            return f"<operator data.{_operator_text(cls, spec)}>"
        if "__dataops_registry__" not in cls.__dict__:
            return super().__repr__()
        operators = [getattr(cls, name) for name in dir(cls)]
        lines = [
            f"  {_operator_text(operator, operator.__dataops_spec__)}" for operator in operators
        ]
        return "\n".join(
            [f"<group data.{cls.__dataops_group__}, {counted(len(lines), 'operators')}>", *lines]
        )

    # Pyright takes an instance from the return type here, and then the parameters of `__init__`.
    @override
    def __call__(cls: type[_T], *positional: Any, **options: Any) -> _T:
        """Construct the operator from options and settings.

        A class accepts positional arguments as its ``__init__`` does, and a reader as its signature
        does. A function operator accepts none, because its first parameter is a record.
        """
        operator = cast("OperatorMeta", cls)
        constructed: _T = operator._checked(positional, options)  # noqa: SLF001 - `cls` itself
        return constructed

    def _checked(cls, positional: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Construct the operator; errors name it and show no secret."""
        spec = getattr(cls, "__dataops_spec__", None)
        if spec is None:
            raise _not_an_operator(cls)
        try:
            return cls._constructed(spec, positional, options)
        except Exception as error:
            slots = _positional(cls, spec)
            named = dict(zip(slots.names, positional, strict=False))
            further = {slots.rest: positional[len(slots.names) :]} if slots.rest else {}
            raise_without_secrets(error, spec.qualified_name, {**named, **further, **options})
            if type(error) is DefinitionError:
                raise DefinitionError(f"Operator {spec.qualified_name}: {error}") from None
            raise

    def _constructed(
        cls, spec: OperatorSpec, positional: tuple[Any, ...], arguments: dict[str, Any]
    ) -> Any:
        arguments = by_present_names(
            spec.qualified_name, spec.options, arguments, shipped=spec.shipped
        )
        if positional:
            arguments = _by_name(cls, spec, positional, arguments)
        options, settings = _divided({name: as_option(value) for name, value in arguments.items()})
        _refuse_settings_among(spec, options)
        bound = bind_options(spec.qualified_name, spec.options, options, any_option=spec.any_option)
        to_init, to_forward = _further_options(cls, spec, options)
        if spec.kind.reads_source:
            _check_reader(spec, options, settings)
        if spec.kind.reads_source or spec.shipped:
            from dagster_dataops.operators.options.annotations import check_pairs
            from dagster_dataops.operators.options.type_checks import check_types

            check_types(spec.qualified_name, spec.options, options)
            check_pairs(spec.qualified_name, options)
        if spec.outputs_of is not None:
            spec = _with_outputs_of(spec, bound)
        operator: Any = object.__new__(cast("type[Operator]", cls))
        asked = parse_settings(spec.qualified_name, settings)
        operator.__dataops__ = Invocation(
            spec=spec,
            options=bound,
            settings=asked,
            passed_up=to_forward,
            files=contents_of(spec.file_options, bound),
        )
        if not operator.__dataops__.artefacts:  # else `with_artefacts` constructs it in the run
            arguments = {**_init_arguments(cls, options, settings), **to_init}
            by_position = list(_taken_by_position(cls, spec, arguments))
            operator.__init__(*by_position, **arguments)
        merged = operator.__dataops__.settings.over(spec.settings)
        check_settings(spec, merged)
        if spec.kind.exports:
            _changed(operator, output=_path_of_export(operator.__dataops__))
        return _changed(operator, settings=merged)


class Operator(metaclass=OperatorMeta):
    """A configured operator. Subclass a group, or this class with the decorator `data_register`."""

    __dataops__: Invocation
    new_records: ClassVar[bool] = False
    """Whether a result with fewer records than the input is made of new records, as an aggregation
    is. Then none of the input counts as dropped."""
    renamed_options: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """The present names of options by former ones, which are accepted with a warning."""
    added_later: ClassVar[frozenset[str]] = frozenset()
    """The options that came after the first release of the operator. With their defaults they do
    not count for its identity: the digest of the options is that of before there were these."""
    __dataops_decode__: ClassVar[Callable[..., Record]] = staticmethod(decode)
    """Returns the record in a line of the input. An operator may leave large values unparsed."""
    _repr_html_ = NotebookHtml()

    def __init__(self, **keywords: Any) -> None:
        """Accept arguments that a subclass's ``__init__`` passes on, as LazyLLM's base class does.

        Args:
            **keywords: Execution settings, options for ``forward``, and ``rewrite_func``. The
                settings override those of the registration; those of the caller override both.
                ``rewrite_func`` must name the method that the class defines.
        """
        if not keywords:
            return
        before = self.__dataops__
        options, settings = _divided(keywords)
        _check_rewrite_func(before.spec, options.pop("rewrite_func", None))
        _check_passed_up(self, options)
        self.__dataops__ = replace(
            before,
            settings=before.settings.over(parse_settings(before.spec.qualified_name, settings)),
            passed_up={**before.passed_up, **options},
        )

    def __call__(self, data: object) -> Any:
        """Run over ``data`` and return the result.

        Args:
            data: A list of dicts (never changed), one dict, the path of a jsonl file, or a
                `JsonlDataset`.

        Returns:
            The resulting records in input order, as a list of dicts; after `set_output`, and of
            an export operator, the absolute path of the exported file or folder instead. An
            operator that builds an artefact returns the path of its folder.

        Raises:
            RecordError: A record failed and ``_ignore_errors`` is False.
            DatasetOperatorError: A dataset operator failed.
            InputError: ``data`` cannot be read.
        """
        return type(self).__dataops_registry__.run(self, data)

    def set_output(self, path: "str | os.PathLike[str]") -> Self:
        """Export the result too; return the operator.

        Args:
            path: A file if it ends in ``.jsonl``, ``.jsonl.gz``, ``.jsonl.zst``, ``.parquet``,
                ``.csv``, ``.tsv`` or an ending that an installed package adds, which is its format;
                otherwise a folder, in which a jsonl file gets the name of the operator or node. The
                file is replaced atomically after the result is published. Partitioned nodes need a
                folder and write ``<node>/<partition>.jsonl`` in it. An operator with several
                results needs a folder, too, and writes ``<node>/<output>.jsonl`` in it, with
                partitions in a folder for each partition. Previews export nothing.

        Raises:
            ConfigurationError: ``path`` is a URL, or a file for several results.
            OperatorOptionError: The operator builds an artefact, or is an export.
            MissingExtraError: The format needs a package that is not installed.
            EntryPointError: What an installed package adds cannot write a file.
        """
        from dagster_dataops.datasets.exporters.endings import check_output, names_file  # if used

        check_local("set_output", path)
        spec = self.__dataops__.spec
        if reason := spec.kind.not_exported:
            option = spec.options[0].name if spec.options else ""
            reason = reason.format(option=option)
            raise OperatorOptionError(spec.qualified_name, "set_output", reason)
        if spec.outputs and names_file(Path(path)):
            names = ", ".join(spec.outputs)
            raise ConfigurationError("set_output", path, f"a folder, for the results {names}")
        check_output(Path(path))
        self.__dataops__ = replace(self.__dataops__, output=Path(path))
        return self

    def __dataops_changed__(self, options: Mapping[str, Any]) -> Self:
        """Return the operator constructed with some options replaced."""
        return type(self)(**{**self.__dataops__.chosen, **options})

    def __dataops_server__(self, clients: Mapping[str, Any]) -> tuple[str, bool]:
        """Return the server of models that the operator asks in a run.

        Args:
            clients: Objects of the user, by name.

        Returns:
            A text that names the server, empty for none, and whether records that do not name
            their server, as those of version 0.2, are of this one.
        """
        return "", False

    @override
    def __repr__(self) -> str:
        """Return the call that constructs the operator, without options that have their default."""
        spec = self.__dataops__.spec
        defaults = {option.name: shown(option.name, option.default) for option in spec.options}
        texts = {name: shown(name, value) for name, value in self.__dataops__.options.items()}
        changed = [f"{name}={text}" for name, text in texts.items() if text != defaults.get(name)]
        return f"{spec.reference}({', '.join(changed)})"


def reconfigured(
    operator: Operator, options: Mapping[str, Any], settings: ExecutionSettings
) -> Operator:
    """Return a new operator with some options and settings replaced.

    Raises:
        OperatorOptionError: An option is unknown or changes the names of the results, or a setting
            does not fit the operator.
    """
    before = operator.__dataops__
    # Construction can be slow, and changed settings do not need it.
    changed = operator.__dataops_changed__(options) if options else copy.copy(operator)
    if changed.__dataops__.spec.outputs != before.spec.outputs:
        names = ", ".join(changed.__dataops__.spec.outputs)
        reason = f"would be {names}; the names of the results are part of the definition"
        raise OperatorOptionError(before.spec.qualified_name, "outputs", reason)
    merged = settings.over(before.settings)
    check_settings(before.spec, merged)
    renamed = options and before.spec.kind.exports
    output = changed.__dataops__.output if renamed else before.output
    return _changed(changed, settings=merged, output=output, columns=before.columns)


def with_artefacts(operator: Operator, values: Mapping[str, object]) -> Operator:
    """Return the operator with artefacts in place of the nodes that its options name.

    Args:
        operator: The operator; the same one is returned if no option names a node.
        values: By node, the path of the artefact's folder; or another `ArtefactReference`.

    Raises:
        OperatorOptionError: The operator's ``__init__`` refuses its options.
    """
    before = operator.__dataops__
    if not before.artefacts:
        return operator
    options = {name: with_references(value, values) for name, value in before.chosen.items()}
    rebuilt: Operator = type(operator)(**options)
    # Settings of the registration, and the flag that a launch repeats, do not override those that
    # ``__init__`` passes on.
    usual = {"ignore_errors": True, **before.spec.settings.set_values()}
    asked = {
        name: value
        for name, value in before.settings.set_values().items()
        if usual.get(name) != value
    }
    settings = ExecutionSettings(**asked).over(rebuilt.__dataops__.settings)
    check_settings(before.spec, settings)
    return _changed(rebuilt, settings=settings, output=before.output, columns=before.columns)


def with_present_files(operator: Operator) -> Operator:
    """Return the operator, constructed again if a file that its options name was replaced.

    Else it might use the former file under the digest of the present one.
    """
    for use in operator.__dataops__.uses:
        present = contents_of(use.spec.file_options, use.options) if use.files else {}
        if any(use.files.get(name) != digest for name, digest in present.items()):
            options, settings = operator.__dataops__.options, operator.__dataops__.settings
            return reconfigured(operator, options, settings)
    return operator


def raise_without_secrets(error: Exception, operator: str, options: Mapping[str, Any]) -> None:
    """Raise a replacement for ``error`` with all secrets hidden, if its text contains any.

    Nothing is raised if neither the error nor its causes contain a secret.

    Args:
        error: The error that the constructor of an operator raised.
        operator: The qualified name of the operator.
        options: The given options, by name.

    Raises:
        OperatorOptionError: The text of the error, with its secrets hidden.
    """
    secrets = secrets_of(options)
    from dagster_dataops.operators.secrets.hidden_errors import exceptions_of, texts_of  # rare

    texts = [text for member in exceptions_of(error) for text in texts_of(member)]
    if all(secrets.hide(text) == text for text in texts):
        return
    text = secrets.hide(str(error))
    if isinstance(error, OperatorOptionError):
        hidden = [secrets.hide(text) for text in (error.option, error.reason)]
        raise OperatorOptionError(operator, *hidden) from None
    option = ", ".join(name for name, value in options.items() if holds_secret(name, value))
    raise OperatorOptionError(
        operator, option, f"was rejected: {type(error).__name__}: {text}"
    ) from None


def in_run(operator: Operator, link: RunLink) -> Operator:
    """Return the operator as part of a run; itself if it does not ask for a context."""
    if not operator.__dataops__.spec.contextual:
        return operator
    server, adopts = operator.__dataops_server__(link.clients)
    return _changed(copy.copy(operator), link=link, server=server, adopts=adopts)


def begun(operator: Operator, started: str) -> None:
    """Tell an operator that is part of a run when the first attempt of the run began."""
    link = operator.__dataops__.link
    if link is not None:
        facts = link.facts._replace(started=started)
        _changed(operator, link=link._replace(facts=facts))


def keeping_files(operator: Operator, keeper: "FileKeeper | None") -> Operator:
    """Return the operator as part of a run that stores the files that it makes.

    Its options are digested once for all runs: a function among them may change what it holds.
    """
    _ = operator.__dataops__.options_digest
    kept = copy.copy(operator)
    kept.__dataops__ = copy.copy(operator.__dataops__)  # with what it remembers
    object.__setattr__(kept.__dataops__, "keeper", keeper)
    return kept


def exporting(operator: Operator, output: Path | None) -> Operator:
    """Return the operator with another export path; ``None`` for no export."""
    if operator.__dataops__.output == output:
        return operator
    return _changed(copy.copy(operator), output=output)


def _changed(operator: Operator, **facts: Any) -> Operator:
    """Change facts in the `Invocation` of an operator; return the operator."""
    operator.__dataops__ = replace(operator.__dataops__, **facts)
    return operator


def _with_outputs_of(spec: OperatorSpec, options: Mapping[str, Any]) -> OperatorSpec:
    """Return the spec of an operator whose options decide the names of its results."""
    assert spec.outputs_of is not None  # noqa: S101 - checked by the caller
    try:
        from dagster_dataops.operators.outcomes.named_outputs import checked_outputs  # rare

        outputs = checked_outputs(spec.name, tuple(spec.outputs_of(**options)))
    except OperatorDefinitionError as error:
        reason = f"does not follow from the options: {error.reason}"
        raise OperatorOptionError(spec.qualified_name, "outputs", reason) from None
    return replace(spec, outputs=outputs, outputs_of=None)


def _path_of_export(invocation: Invocation) -> Path:
    """Return the first option of an export operator."""
    option = invocation.spec.options[0].name
    path = invocation.options[option]
    if not isinstance(path, (str, PathLike)) or not str(path):
        reason = f"is {path!r}; it must be the path of the export"
        raise OperatorOptionError(invocation.spec.qualified_name, option, reason)
    check_local(option, path)
    return Path(path)


def check_settings(spec: OperatorSpec, settings: ExecutionSettings) -> None:
    """Check that settings fit an operator.

    Raises:
        OperatorOptionError: One does not.
    """
    for name, reason in _unfit_settings(spec, settings):
        raise OperatorOptionError(spec.qualified_name, f"_{name}", reason)


def _unfit_settings(spec: OperatorSpec, settings: ExecutionSettings) -> Iterator[tuple[str, str]]:
    """Yield settings that do not fit an operator, each with the reason."""
    if settings.reuse_outcomes and not spec.kind.returns_outcome:
        reason = f"{spec.kind.noun} operator has no outcome per record to keep"
        yield "reuse_outcomes", f"needs a record operator; {reason}"
    if settings.save_data is False and spec.kind.always_saved:
        yield "save_data", f"is False; {spec.kind.always_saved}"
    if settings.batch_size is not None and not spec.batch:
        reason = "needs an operator with forward_batch or forward_window; this one has neither"
        yield "batch_size", reason
    mode = settings.resolved(asynchronous=spec.asynchronous).concurrency_mode
    if isinstance(settings.agents, Mapping) and not spec.kind.agents:
        reason = f"needs an operator that works record by record; this is a {spec.kind_text}"
        yield "agents", reason
    elif isinstance(settings.agents, Mapping) and mode != "process":
        reason = f"needs _concurrency_mode='process', which agents run; this one runs in {mode!r}"
        yield "agents", reason
    if mode_named(mode).only_coroutines and not spec.asynchronous:
        reason = f"is {mode!r}, which needs an `async def` operator; use 'thread' for this one"
        yield "concurrency_mode", reason


def _divided(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options and the settings among the arguments of a constructor."""
    settings = {name: value for name, value in arguments.items() if name in SETTING_NAMES}
    return {name: value for name, value in arguments.items() if name not in settings}, settings


def _operator_text(cls: type, spec: OperatorSpec) -> str:
    return f"{spec.qualified_name}{signature_text(spec.options, _positional(cls, spec).names)}"


def _by_name(
    cls: type, spec: OperatorSpec, positional: tuple[Any, ...], options: dict[str, Any]
) -> dict[str, Any]:
    """Return all options by name, including those given by position."""
    names, rest, _ = _positional(cls, spec)
    if len(positional) > len(names) and not rest:
        known = [option.name for option in spec.options]
        takes = (
            f"the operator takes {len(names)} by position ({', '.join(names)})"
            if names
            else f"options are given by keyword ({known[0]}=...)"
            if known
            else "the operator takes no options"
        )
        reason = (
            f"was given by position; {takes}. To run the operator, call the constructed operator"
        )
        raise OperatorOptionError(spec.qualified_name, f"argument {len(names) + 1}", reason)
    first = dict(zip(names, positional, strict=False))
    if rest and len(positional) > len(names):
        first[rest] = positional[len(names) :]
    for twice in first.keys() & options.keys():
        raise OperatorOptionError(spec.qualified_name, twice, "was given twice")
    return first | options


def _positional(cls: type, spec: OperatorSpec) -> PositionalOptions:
    """Return the options that can be given by position."""
    if isinstance(spec.target, type):
        return positional_options(cls)
    names = [option.name for option in spec.options] if spec.kind.reads_source else []
    return PositionalOptions(tuple(names))


def positional_options(cls: type) -> PositionalOptions:
    """Return the options of a class that can be given by position."""
    return positional_of(cls.__mro__[: cls.__mro__.index(Operator)])


def _taken_by_position(cls: type, spec: OperatorSpec, arguments: dict[str, Any]) -> Iterator[Any]:
    """Yield the arguments that ``__init__`` takes by position only, and take them away.

    If there are any, those before them are given by position, too.
    """
    rest = next((option for option in spec.options if option.many), None)
    if not isinstance(spec.target, type) or not (rest or spec.positional_only):
        return
    further = arguments.pop(rest.name, ()) if rest else ()
    defaults = {option.name: option.default for option in spec.options}
    for name in positional_options(cls).names if further or spec.positional_only else ():
        yield arguments.pop(name, defaults.get(name))
    yield from further


def _check_reader(
    spec: OperatorSpec, options: Mapping[str, Any], settings: Mapping[str, Any]
) -> None:
    """Raise an error for a reader's execution settings, and for options that name nodes."""
    for name in settings:
        reason = "does not apply to a reader, which is read in order"
        raise OperatorOptionError(spec.qualified_name, name, reason)
    for name in options:
        if any(referenced(options[name])):
            reason = "names a node of a pipeline; a reader is read before the pipeline runs"
            raise OperatorOptionError(spec.qualified_name, name, reason)


def _refuse_settings_among(spec: OperatorSpec, options: Mapping[str, Any]) -> None:
    """Raise an error for misspelt settings, and for settings without the leading underscore."""
    known = {option.name for option in spec.options}
    for name in options:
        if name in known:
            continue
        if name in REMOVED_SETTINGS:
            raise OperatorOptionError(spec.qualified_name, name, REMOVED_SETTINGS[name])
        if name.startswith("_"):
            near = nearest(name, SETTING_NAMES)
            hint = f"; did you mean {near!r}?" if near else ""
            reason = (
                f"is not an execution setting{hint} Settings: {', '.join(sorted(SETTING_NAMES))}"
            )
            raise OperatorOptionError(spec.qualified_name, name, reason)
        setting = setting_without_underscore(name)
        if setting and not spec.any_option and nearest(name, known) is None:
            reason = _underscore_hint(setting, [option.name for option in spec.options])
            raise OperatorOptionError(spec.qualified_name, name, reason)


def setting_without_underscore(name: str) -> str | None:
    """Return the execution setting that ``name`` most likely means; ``None`` if there is none."""
    if name.startswith("_"):
        return None
    return nearest(f"_{name}", SETTING_NAMES, likeness=0.8)


def _underscore_hint(setting: str, known: Iterable[str] = ()) -> str:
    reason = f"is not an option; did you mean the execution setting {setting!r} (with underscore)?"
    return f"{reason} Its options: {', '.join(known)}" if known else reason


def _init_arguments(
    cls: type, options: Mapping[str, Any], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of ``__init__``: its options, and the settings among its parameters."""
    parameters = init_parameters(cls)
    named = {name: value for name, value in settings.items() if name in parameters}
    return {name: value for name, value in options.items() if name in parameters} | named


def _not_an_operator(cls: type) -> OperatorDefinitionError:
    """Return the error of constructing a class that was not registered."""
    group = getattr(cls, "__dataops_group__", None)
    if group is not None:
        return OperatorDefinitionError(f"data.{group}", "it is a group; construct its operators")
    name = "MyOperator" if cls is Operator else cls.__name__
    reason = (
        "it belongs to no group, so it was not registered; decorate it by "
        "@data_register('data.my_group'), or inherit from a group in place of "
        f"Operator: class {name}(data_register.new_group('my_group'))"
    )
    return OperatorDefinitionError(cls.__name__, reason)


def _further_options(
    cls: type, spec: OperatorSpec, options: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options that are in no signature: those for ``__init__``, those for ``forward``.

    An ``__init__`` with ``**kwargs`` gets all of them and can pass them on to the base class.
    """
    named = {option.name for option in spec.options}
    further = {name: value for name, value in options.items() if name not in named}
    if further and takes_any(parameters_of(inspect.getattr_static(cls, "__init__"))):
        return further, {}
    return {}, further


def _check_rewrite_func(spec: OperatorSpec, method: object) -> None:
    if method is not None and method != spec.method:
        reason = f"is {method!r}, but the operator defines {spec.method}; leave rewrite_func out"
        raise OperatorOptionError(spec.qualified_name, "rewrite_func", reason)


def _check_passed_up(operator: Operator, options: Mapping[str, Any]) -> None:
    """Raise an error for options that ``forward`` does not accept."""
    spec = operator.__dataops__.spec
    if not options or spec.any_option:
        return
    names = {
        parameter.name for parameter in parameters_of(getattr(operator, spec.method))[spec.inputs :]
    }
    present = renamed_in(type(operator).__mro__)
    for unknown in options.keys() - names:
        setting = setting_without_underscore(unknown)
        remedy = f"give it as {present[unknown]} to" if unknown in present else "leave it out of"
        reason = (
            f"is unknown to the operator's base class, and {spec.method} does not accept it; "
            f"{remedy} super().__init__()"
        )
        raise OperatorOptionError(
            spec.qualified_name, unknown, _underscore_hint(setting) if setting else reason
        )


def init_parameters(cls: type) -> dict[str, Any]:
    """Return the parameters of ``__init__`` by name, following ``**kwargs`` up to the group.

    Those of the class come before those of its bases.
    """
    inherited: dict[str, Any] = {}
    for ancestor in cls.__mro__:
        if ancestor in {Operator, object}:
            break
        if "__init__" in ancestor.__dict__:
            parameters = parameters_of(ancestor.__dict__["__init__"])[1:]
            of_base = {parameter.name: parameter for parameter in parameters}
            inherited |= {
                name: parameter for name, parameter in of_base.items() if name not in inherited
            }
            if not takes_any(parameters):
                break
    return inherited


def unknown_operator(
    wanted: str, known: list[str], listed_names: list[str] | None = None
) -> UnknownOperatorError:
    """Return the error for an operator or group that is not registered.

    Args:
        wanted: The wanted name.
        known: All names, of which the nearest is proposed.
        listed_names: The names to list; ``None`` for all.
    """
    near = nearest(wanted, known)
    listed = ", ".join(known if listed_names is None else listed_names) or "nothing"
    hint = f"{listed}. Did you mean {near}?" if near else listed
    return UnknownOperatorError(wanted, hint)
