"""Chain: one record operator made of several."""

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, NamedTuple, cast

from dagster_dataops.errors import ChainDefinitionError, OperatorOptionError
from dagster_dataops.foundation.hashing.code import CodeFacts
from dagster_dataops.foundation.hashing.values import digest_of_form, end_of_rules
from dagster_dataops.foundation.override import override
from dagster_dataops.operators.definition.operator import (
    Operator,
    OperatorMeta,
    check_settings,
    reconfigured,
)
from dagster_dataops.operators.definition.spec import Invocation, OperatorSpec
from dagster_dataops.operators.kinds.kind_table import RECORD
from dagster_dataops.operators.options.declared_columns import ColumnDeclarations, column_types
from dagster_dataops.operators.options.read_columns import columns_needed
from dagster_dataops.operators.options.renamed_options import present_names
from dagster_dataops.operators.options.settings import ExecutionSettings
from dagster_dataops.operators.options.signature import OptionSpec
from dagster_dataops.operators.secrets.secret_options import secrets_of
from dagster_dataops.operators.secrets.secret_texts import Secrets


class Part(NamedTuple):
    """A part of a chain.

    Attributes:
        name: Unique in the chain.
        operator: A record operator.
    """

    name: str
    operator: Operator


class PartOptions(dict[str, Any]):
    """The annotation of a part's options: that of each option by name.

    Attributes:
        target: The function or class of the part.
        present: The present names of options by former ones.
        shipped: Whether it is of this package.
    """

    target: Any = None
    present: Mapping[str, str] = MappingProxyType({})
    shipped: bool = False


class ChainOptions(dict[str, Mapping[str, Any]]):
    """The options of every part of a chain, by the name of the part."""


class ChainSpec(OperatorSpec):
    """The spec of a chain; its parts are `Part`."""

    @property
    @override
    def reference(self) -> str:
        """How Python code refers to it."""
        return f"chain({', '.join(spec.reference for spec in self._specs)})"

    @property
    @override
    def kind_text(self) -> str:
        """The kind in words."""
        return f"chain of {len(self.parts)} record operators"

    @property
    @override
    def targets(self) -> list[Any]:
        """The functions and classes of the parts, each once."""
        by_identity = {id(target): target for spec in self._specs for target in spec.targets}
        return list(by_identity.values())

    @property
    @override
    def description(self) -> str:
        """The first line of the description of every part, as a list."""
        lines = [f"A chain of {len(self.parts)} record operators:", ""]
        for name, spec in self._named:
            said = inspect.cleandoc(spec.description).partition("\n")[0]
            lines.append(f"1. `{name}`: {said}" if said else f"1. `{name}`")
        return "\n".join(lines)

    @cached_property
    @override
    def code(self) -> CodeFacts:
        """A digest of the names of the parts, their operators and their source code."""
        unknown = [
            f"{reference} in part {name!r}"
            for name, spec in self._named
            for reference in spec.code.unknown
        ]
        codes = [spec.code_version for spec in self._specs]
        return CodeFacts(self._digest_of(codes) + end_of_rules(codes), tuple(unknown))

    @cached_property
    @override
    def code_parts(self) -> dict[str, str]:
        """The digests of the parts of the code of all parts; those of one name are equal."""
        digests: dict[str, str] = {}
        for spec in self._specs:
            digests |= spec.code_parts
        return digests

    @property
    @override
    def earlier_code(self) -> str:
        codes = [spec.earlier_code for spec in self._specs]
        return self._digest_of(codes) if all(codes) else ""

    def _digest_of(self, codes: list[str]) -> str:
        named = zip(self._named, codes, strict=True)
        return digest_of_form([[name, spec.qualified_name, code] for (name, spec), code in named])

    @property
    def _named(self) -> list[tuple[str, OperatorSpec]]:
        return [(name, part.__dataops__.spec) for name, part in self.parts]

    @property
    def _specs(self) -> list[OperatorSpec]:
        return [spec for _, spec in self._named]


class ChainInvocation(Invocation):
    """One configured use of a chain."""

    @override
    def _options_by(self, *, older: bool) -> tuple[str, tuple[str, ...]]:
        uses = [(name, part.__dataops__) for name, part in self.spec.parts]
        unknown = [
            f"{option} of part {name!r}" for name, use in uses for option in use.unknown_options
        ]
        digests = [use.earlier_options if older else use.options_digest for _, use in uses]
        form: list[Any] = [
            [name, part_digest] for (name, _), part_digest in zip(uses, digests, strict=True)
        ]
        digest = digest_of_form([*form, self._batches] if self._batches else form)
        if older:
            return digest if all(digests) else "", tuple(unknown)
        return digest + end_of_rules(digests), tuple(unknown)

    @override
    def _option_parts(self) -> Iterator[tuple[str, str]]:
        for name, part in self.spec.parts:
            parts = part.__dataops__.identity_parts["options"]
            yield from ((f"{name}.{option}", digest) for option, digest in parts.items())
        yield from ((name, str(value)) for name, value in self._batches.items())

    @cached_property
    @override
    def secrets(self) -> Secrets:
        """The secrets among the options of all parts."""
        uses = enumerate(self.uses)
        return secrets_of({str(number): {**use.options, **use.passed_up} for number, use in uses})


class Chain(Operator):
    """Record operators of which each takes the records of the one before it.

    Made by `dagster_dataops.chain`.
    """

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts, in order."""
        return cast("tuple[Part, ...]", self.__dataops__.spec.parts)

    @override
    def __call__(self, data: object) -> Any:
        """Run over ``data`` and return the result, as every operator does."""
        return type(self.parts[0].operator).__dataops_registry__.run(self, data)

    def with_parts(self, operators: Iterable[Operator]) -> "Chain":
        """Return the chain with other operators in its parts, such as open ones."""
        spec = self.__dataops__.spec
        names = (part.name for part in self.parts)
        parts = tuple(Part(*pair) for pair in zip(names, operators, strict=True))
        chain: Chain = object.__new__(type(self))
        options = ChainOptions({name: operator.__dataops__.options for name, operator in parts})
        chain.__dataops__ = replace(
            self.__dataops__,
            spec=replace(spec, parts=parts, declared=_declared(parts)),
            options=options,
        )
        return chain

    @override
    def __dataops_changed__(self, options: Mapping[str, Any]) -> "Chain":
        """Return the chain with other options of its parts, by the names of the parts."""
        for name in options.keys() - self.__dataops__.options.keys():
            known = ", ".join(self.__dataops__.options)
            reason = f"is no part of the chain; its parts: {known}"
            raise OperatorOptionError(self.__dataops__.spec.qualified_name, name, reason)
        return self.with_parts(
            reconfigured(part.operator, options.get(part.name, {}), ExecutionSettings())
            for part in self.parts
        )

    @override
    def __dataops_server__(self, clients: Mapping[str, Any]) -> tuple[str, bool]:
        """Return the servers of the parts."""
        servers = [part.operator.__dataops_server__(clients) for part in self.parts]
        named = [(server, adopts) for server, adopts in servers if server]
        adopts = bool(named) and all(adopts for _, adopts in named)
        return " ".join(server for server, _ in named), adopts

    @override
    def __repr__(self) -> str:
        return f"chain({', '.join(repr(part.operator) for part in self.parts)})"


def chain_of(name: str, parts: Sequence[Part], settings: ExecutionSettings) -> Chain:
    """Return the chain of ``parts``.

    Args:
        name: Name of the chain.
        parts: Record operators with unique names.
        settings: How the chain is run.

    Raises:
        OperatorOptionError: A setting does not fit these operators.
    """
    specs = [part.operator.__dataops__.spec for part in parts]
    # Each chain has a class of its own, because facts about an operator are cached by its class.
    chain: Chain = object.__new__(cast("type[Chain]", OperatorMeta("Chain", (Chain,), {})))
    options = ChainOptions({part.name: part.operator.__dataops__.options for part in parts})
    spec = ChainSpec(
        group="",
        name=name,
        kind=RECORD,
        target=Chain,
        options=tuple(map(_option_of, parts)),
        any_option=False,
        settings=ExecutionSettings(),
        inputs=1,
        streamed=(False,),
        asynchronous=any(spec.asynchronous for spec in specs),
        declared=_declared(parts),
        opens=any(spec.opens for spec in specs),
        takes_context=any(spec.takes_context for spec in specs),
        batch="forward_batch" if any(spec.batch for spec in specs) else "",
        parts=tuple(parts),
    )
    check_settings(spec, settings)
    chain.__dataops__ = ChainInvocation(spec=spec, options=options, settings=settings)
    return chain


def _option_of(part: Part) -> OptionSpec:
    """Return the options of a part as one option, a mapping of names to values."""
    use = part.operator.__dataops__
    return OptionSpec(part.name, dict(use.options), annotations_of(use.spec))


def annotations_of(spec: OperatorSpec) -> PartOptions:
    """Return the annotations of the options of an operator."""
    annotations = PartOptions({option.name: option.annotation for option in spec.options})
    annotations.target, annotations.present = spec.target, present_names(spec.options)
    annotations.shipped = spec.shipped
    return annotations


def flattened(operators: Iterable[tuple[str, Operator]]) -> list[Part]:
    """Return the parts of a chain: those of a chain in place of it, with unique names."""
    parts: dict[str, Part] = {}
    for name, operator in operators:
        inner = operator.parts if isinstance(operator, Chain) else (Part(name, operator),)
        for part in inner:
            unique, number = part.name, 2
            while unique in parts:
                unique, number = f"{part.name}_{number}", number + 1
            parts[unique] = Part(unique, part.operator)
    return list(parts.values())


def checked_part(chain: str, operator: Operator, *, last: bool = False) -> Operator:
    """Return an operator that can be a part of a chain.

    Args:
        chain: Name of the chain, for errors.
        operator: The operator.
        last: Whether its export can become that of the chain.

    Raises:
        ChainDefinitionError: It is of another kind, has several results, takes an artefact, or
            exports a result.
    """
    use = operator.__dataops__
    reason = use.spec.kind.refused_in_chains
    if use.spec.by_window:
        reason = f"returns records for whole batches, and a chain one outcome a record; {_WHOLE}"
    if use.spec.outputs:
        reason = (
            f"has several results ({', '.join(use.spec.outputs)}), and a chain has one; make it a "
            "node of its own, after the chain"
        )
    if use.artefacts:
        reason = f"takes the artefact of node {use.artefacts[0]!r} as an option; make it a node"
    if use.output is not None and not last and not use.spec.kind.exports:
        reason = f"exports to {use.output}, and a part has no result; call set_output on the chain"
    if reason:
        raise ChainDefinitionError(chain, f"part {use.spec.qualified_name} {reason}")
    return operator


_WHOLE: Final = "make it a node of its own, between two chains"


def merged_settings(
    chain: str, settings: ExecutionSettings, parts: Sequence[tuple[str, ExecutionSettings]]
) -> ExecutionSettings:
    """Return the settings of a chain: its own, and those on which its parts agree.

    Args:
        chain: Name of the chain, for errors.
        settings: Settings of the chain itself.
        parts: Name and settings of every part.

    Raises:
        OperatorOptionError: Parts have different values, or a time limit, and the chain has none.
    """
    wanted: dict[str, list[tuple[str, Any]]] = {}
    for part, settings_of_part in parts:
        for name, value in settings_of_part.set_values().items():
            wanted.setdefault(name, []).append((part, value))
    explicit = settings.set_values()
    agreed = {
        name: _agreed(chain, name, values)
        for name, values in wanted.items()
        if name not in explicit
    }
    common = {name: value for name, value in agreed.items() if value is not None}
    return ExecutionSettings(**{**common, **explicit})


def _agreed(chain: str, setting: str, wanted: Sequence[tuple[str, Any]]) -> Any:
    """Return the value all parts have for a setting; ``None`` if it does not apply to parts."""
    if setting == "save_data":
        return None
    values = [value for _, value in wanted]
    shown = ", ".join(f"{part} {value!r}" for part, value in wanted)
    if setting == "timeout" and any(values):
        reason = (
            f"is set for a call of a part ({shown}), and a chain has one limit for the calls of "
            "all its parts on a record; give it to chain(...)"
        )
        raise OperatorOptionError(chain, "_timeout", reason)
    if any(value != values[0] for value in values):
        reason = f"differs between parts ({shown}); give it to chain(...)"
        raise OperatorOptionError(chain, f"_{setting}", reason)
    return values[0]


def _declared(parts: Sequence[Part]) -> ColumnDeclarations:
    """Return the columns that a chain reads and writes, as far as its parts declare them."""
    reads: dict[str, Any] = {}
    known_columns: dict[str, Any] = {}
    complete, known = False, True
    for part in parts:
        read, writes, columns = (_types(part, kind) for kind in ("reads", "writes", "columns"))
        if known and not complete:
            needed = {
                name for name, column in columns_needed(read or {}) if column not in known_columns
            }
            reads |= {name: kind for name, kind in (read or {}).items() if name in needed}
        if columns is not None:
            known_columns, complete, known = columns, True, True
        elif writes is not None:
            known_columns = {**known_columns, **writes}
        else:
            known_columns, complete, known = {}, False, False
    return ColumnDeclarations(
        reads=reads or None,
        writes=known_columns if known and not complete else None,
        columns=known_columns if complete else None,
    )


def _types(part: Part, kind: str) -> dict[str, Any] | None:
    use = part.operator.__dataops__
    declaration = getattr(use.spec.declared, kind)
    if declaration is None:
        return None
    return column_types(use.spec.qualified_name, kind, declaration, use.options)
