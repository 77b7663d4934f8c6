"""Operator: the class behind every operator, and behind every group of them.

A group is a subclass of `Operator`; inheriting from it registers a class operator. Constructing
one only remembers: options are checked and bound, nothing is opened, read or written.
"""

import copy
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, cast

from typing_extensions import override

from dagster_dataops.configuration import check_local
from dagster_dataops.errors import (
    OperatorDefinitionError,
    OperatorOptionError,
    UnknownOperatorError,
)
from dagster_dataops.operators.columns import DECLARATIONS, Declared
from dagster_dataops.operators.secrecy import HIDDEN, is_secret
from dagster_dataops.operators.settings import SETTING_NAMES, ExecutionSettings, parse_settings
from dagster_dataops.operators.signature import bind_options, nearest, parameters_of, takes_any
from dagster_dataops.operators.spec import Invocation, OperatorSpec
from dagster_dataops.operators.typed import check_types

if TYPE_CHECKING:
    import os


class Registry(Protocol):
    """What a group needs of the registry it belongs to."""

    def add_class(self, operator: "OperatorMeta", declared: Declared) -> None:
        """Register a class operator that was just defined."""
        ...

    def operator(self, group: str, name: str) -> "OperatorMeta":
        """Return a registered operator, or raise `UnknownOperatorError`."""
        ...

    def run(self, operator: "Operator", data: object) -> object:
        """Run ``operator`` over ``data``."""
        ...


class OperatorMeta(type):
    """Registers class operators as they are defined; checks options as they are constructed."""

    __dataops_registry__: Registry
    __dataops_group__: str
    __dataops_spec__: OperatorSpec

    def __new__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **keywords: Any
    ) -> "OperatorMeta":
        """Create the class; a class statement below a group also registers it.

        Its keywords ``reads``, ``writes`` and ``columns`` declare columns.
        """
        declared = {key: keywords.pop(key) for key in DECLARATIONS & keywords.keys()}
        created = super().__new__(cls, name, bases, namespace, **keywords)
        # Only a class statement fills in __qualname__; unpickling and our own factories do not.
        if "__qualname__" in namespace and hasattr(created, "__dataops_group__"):
            created.__dataops_registry__.add_class(created, Declared(**declared))
        return created

    def __getattr__(cls, name: str) -> "OperatorMeta":
        """Return the operator ``name`` of a group: ``data.demo.process_lower``."""
        if name.startswith("__") or "__dataops_registry__" not in cls.__dict__:
            msg = f"type object {cls.__name__!r} has no attribute {name!r}"
            raise AttributeError(msg)
        return cls.__dataops_registry__.operator(cls.__dataops_group__, name)

    @override
    def __call__(cls, *positional: Any, **given: Any) -> Any:
        """Construct the operator from options and settings, all by keyword."""
        spec = getattr(cls, "__dataops_spec__", None)
        if spec is None:
            group = getattr(cls, "__dataops_group__", cls.__name__)
            raise OperatorDefinitionError(f"data.{group}", "it is a group; construct its operators")
        if spec.kind == "reader":  # takes no records that could be meant
            given = _by_name(spec, positional, given)
        else:
            _refuse_positional(spec, positional)
        settings = {name: value for name, value in given.items() if name in SETTING_NAMES}
        options = {name: value for name, value in given.items() if name not in SETTING_NAMES}
        _refuse_misspelt_setting(spec, options)
        bound = bind_options(spec.qualified_name, spec.options, options, any_option=spec.any_option)
        if spec.kind == "reader":
            _check_reader(spec, options, settings)
        operator: Any = object.__new__(cast("type[Operator]", cls))
        asked = parse_settings(spec.qualified_name, settings)
        operator.__dataops__ = Invocation(spec=spec, options=bound, settings=asked)
        operator.__init__(**_init_arguments(cls, options, settings))
        operator.__dataops__ = _settled(operator.__dataops__)
        return operator


class Operator(metaclass=OperatorMeta):
    """One configured operator. Subclass a group, not this."""

    __dataops__: Invocation

    def __init__(self, **settings: Any) -> None:
        """Take execution settings that a subclass's ``__init__`` passes up.

        They stand over those of the registration and below those given by the caller.
        """
        if not settings:
            return
        name = self.__dataops__.spec.qualified_name
        for unknown in settings.keys() - SETTING_NAMES:
            raise OperatorOptionError(name, unknown, "is unknown to the operator's base class")
        passed_up = parse_settings(name, settings)
        settings_now = self.__dataops__.settings.over(passed_up)
        self.__dataops__ = replace(self.__dataops__, settings=settings_now)

    def __call__(self, data: object) -> Any:
        """Run over ``data`` and return the result.

        Args:
            data: A list of dicts (never changed), one dict, the path of a jsonl file, or a
                `JsonlDataset`.

        Returns:
            The resulting records in input order, as a list of dicts; after `set_output` the
            absolute path of the exported jsonl file instead.

        Raises:
            RecordError: A record failed and ``_ignore_errors`` is False.
            DatasetOperatorError: A dataset operator failed.
            InputError: ``data`` cannot be read.
        """
        return type(self).__dataops_registry__.run(self, data)

    def set_output(self, path: "str | os.PathLike[str]") -> Self:
        """Export the result as jsonl as well; returns the operator itself.

        Args:
            path: A file if it ends in ``.jsonl``, else a folder in which the file takes the
                name of the operator or node. Replaced whole or not at all.

        Raises:
            ConfigurationError: It is a URL.
        """
        check_local("set_output", path)
        self.__dataops__ = replace(self.__dataops__, output=Path(path))
        return self

    @override
    def __repr__(self) -> str:
        options = ", ".join(
            f"{name}={HIDDEN if is_secret(name) else repr(value)}"
            for name, value in self.__dataops__.options.items()
        )
        return f"data.{self.__dataops__.spec.qualified_name}({options})"


def reconfigured(
    operator: Operator, options: Mapping[str, Any], settings: ExecutionSettings
) -> Operator:
    """Return a new operator with some options and settings replaced.

    Raises:
        OperatorOptionError: An option is unknown, or a setting does not fit the operator.
    """
    before = operator.__dataops__
    # Only other options need another construction, which may be costly.
    made = type(operator)(**{**before.options, **options}) if options else copy.copy(operator)
    merged = settings.over(before.settings)
    _check_settings(before.spec, merged)
    made.__dataops__ = replace(made.__dataops__, settings=merged, output=before.output)
    return made


def _settled(invocation: Invocation) -> Invocation:
    settings = invocation.settings.over(invocation.spec.settings)
    _check_settings(invocation.spec, settings)
    return replace(invocation, settings=settings)


def _check_settings(spec: OperatorSpec, settings: ExecutionSettings) -> None:
    if settings.reuse_outcomes and spec.kind != "record":
        reason = f"a {spec.kind} operator has no outcome of a single record that could be kept"
        raise OperatorOptionError(spec.qualified_name, "_reuse_outcomes", reason)
    if settings.concurrency_mode == "async" and not spec.asynchronous:
        reason = "is 'async', which needs an `async def` operator; use 'thread' for this one"
        raise OperatorOptionError(spec.qualified_name, "_concurrency_mode", reason)


def _refuse_positional(spec: OperatorSpec, positional: tuple[Any, ...]) -> None:
    if positional:
        first = f"{spec.options[0].name}=..." if spec.options else "none here"
        reason = (
            f"was given by position; options are given by keyword ({first}). To run the operator, "
            "call what the construction returns"
        )
        raise OperatorOptionError(spec.qualified_name, repr(positional[0])[:60], reason)


def _by_name(
    spec: OperatorSpec, positional: tuple[Any, ...], given: dict[str, Any]
) -> dict[str, Any]:
    """Return all options of a reader by name."""
    names = [option.name for option in spec.options]
    if len(positional) > len(names):
        reason = f"is one option too many; its options: {', '.join(names) or 'none'}"
        raise OperatorOptionError(spec.qualified_name, repr(positional[len(names)])[:60], reason)
    first = dict(zip(names, positional, strict=False))
    for twice in first.keys() & given.keys():
        raise OperatorOptionError(spec.qualified_name, twice, "was given twice")
    return first | given


def _check_reader(
    spec: OperatorSpec, options: Mapping[str, Any], settings: Mapping[str, Any]
) -> None:
    """Refuse options of a reader that are of the wrong type, and execution settings."""
    for name in settings:
        reason = "is no setting of a reader, which is read in order"
        raise OperatorOptionError(spec.qualified_name, name, reason)
    check_types(spec.qualified_name, spec.options, options)


def _refuse_misspelt_setting(spec: OperatorSpec, options: Mapping[str, Any]) -> None:
    known = {option.name for option in spec.options}
    for name in options:
        if name.startswith("_") and name not in known:
            near = nearest(name, SETTING_NAMES)
            hint = f"; did you mean {near!r}?" if near else ""
            reason = f"is no execution setting{hint} Settings: {', '.join(sorted(SETTING_NAMES))}"
            raise OperatorOptionError(spec.qualified_name, name, reason)


def _init_arguments(
    cls: type, options: Mapping[str, Any], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what ``__init__`` takes: its options, and the settings that it names itself."""
    own = init_parameters(cls)
    named = {name: value for name, value in settings.items() if name in own}
    return {name: value for name, value in options.items() if name in own} | named


def init_parameters(cls: type) -> dict[str, Any]:
    """Return the parameters of ``__init__`` by name, through ``**kwargs`` up to the group."""
    found: dict[str, Any] = {}
    for ancestor in cls.__mro__:
        if ancestor in {Operator, object}:
            break
        if "__init__" in ancestor.__dict__:
            parameters = parameters_of(ancestor.__dict__["__init__"])[1:]
            found = {parameter.name: parameter for parameter in parameters} | found
            if not takes_any(parameters):
                break
    return found


def unknown_operator(wanted: str, known: list[str]) -> UnknownOperatorError:
    """Return the error for an operator or group that nobody registered."""
    near = nearest(wanted, known)
    listed = ", ".join(known) or "nothing"
    hint = f"{listed}. Did you mean {near}?" if near else listed
    return UnknownOperatorError(wanted, hint)
