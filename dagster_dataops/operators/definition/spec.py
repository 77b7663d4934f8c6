"""`OperatorSpec`: a registered operator. `Invocation`: one configured use of it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dagster_dataops.datasets.artefact import path_form
from dagster_dataops.foundation.frozen import frozen
from dagster_dataops.foundation.hashing.code import CodeFacts, code_facts
from dagster_dataops.foundation.hashing.exact_forms import EntryRules, ExactForms
from dagster_dataops.foundation.hashing.operational import Operational, is_annotated_operational
from dagster_dataops.foundation.hashing.values import RULES, digest_of_form
from dagster_dataops.operators.kinds.kind import OperatorKind, RecordOrigin
from dagster_dataops.operators.options.artefact_options import referenced, with_references
from dagster_dataops.operators.options.declared_columns import (
    NOTHING,
    ColumnDeclarations,
    column_types,
)
from dagster_dataops.operators.options.file_content import is_marked
from dagster_dataops.operators.options.read_columns import ReadKey, keys_of
from dagster_dataops.operators.options.settings import (
    SETTING_NAMES,
    ExecutionSettings,
    ResolvedSettings,
)
from dagster_dataops.operators.options.signature import OptionSpec
from dagster_dataops.operators.outcomes.record_context import RunLink
from dagster_dataops.operators.secrets.endpoint_credentials import (
    holds_credentials,
    is_endpoint_credential,
    is_inner_credential,
    is_operational_option,
)
from dagster_dataops.operators.secrets.secret_options import is_hidden, secrets_of
from dagster_dataops.operators.secrets.secret_texts import Secrets

if TYPE_CHECKING:
    from dagster_dataops.datasets.file_values.file_keeper import FileKeeper

_PACKAGE: Final = f"{__name__.partition('.')[0]}."


@frozen()
class OperatorSpec:
    """A registered operator.

    Attributes:
        group: The group, such as ``demo``; empty for a function outside any group.
        name: The name in the group.
        kind: What operators with its method take and give.
        target: The original function or class.
        settings: The execution settings given at registration.
        inputs: The number of input datasets; more than one are joined. 0 means any number.
        options: The options of the constructor, in the order of the signature.
        any_option: Whether the function or ``forward`` accepts ``**kwargs``.
        streamed: For each input, whether it is passed as an iterator instead of a list.
        asynchronous: Whether ``forward`` or ``sketch`` is ``async def``.
        declared: The declared columns.
        outputs: The names of the results of an operator with several; else empty.
        outputs_of: Returns these names for the options, which it gets by name; ``None`` if they do
            not depend on them, and in the specs of configured operators.
        opens: Whether it has ``open`` or ``close``.
        takes_context: Whether its method has a parameter ``context``.
        batch: ``forward_batch``, ``forward_window`` or ``sketch_batch`` if it takes batches.
        positional_only: Whether ``__init__`` takes an option by position only.
        parts: Of a chain name and operator of each part, in order; else empty.
    """

    group: str
    name: str
    kind: OperatorKind
    target: Any
    settings: ExecutionSettings
    inputs: int
    options: tuple[OptionSpec, ...] = ()
    any_option: bool = False
    streamed: tuple[bool, ...] = ()
    asynchronous: bool = False
    declared: ColumnDeclarations = NOTHING
    outputs: tuple[str, ...] = ()
    outputs_of: Callable[..., Sequence[str]] | None = None
    opens: bool = False
    takes_context: bool = False
    batch: str = ""
    positional_only: bool = False
    parts: tuple[tuple[str, Any], ...] = ()

    @property
    def contextual(self) -> bool:
        """Whether it gets an `OperatorContext`."""
        return self.opens or self.takes_context

    @property
    def qualified_name(self) -> str:
        """The group and name, such as ``demo.process_uppercase``."""
        return f"{self.group}.{self.name}" if self.group else self.name

    @property
    def reference(self) -> str:
        """The expression for it in Python code: ``data.<group>.<name>``, or the function itself."""
        return f"data.{self.qualified_name}" if self.group else self.place

    @property
    def method(self) -> str:
        """The method that processes data, such as ``forward``."""
        return self.batch or self.kind.method

    @property
    def by_window(self) -> bool:
        """Whether it returns records for a batch, so that none is known to be of one record."""
        return bool(self.batch) and self.batch == self.kind.window_method

    @property
    def origin(self) -> RecordOrigin:
        """How its records follow from those of the inputs: not known of one with ``change``."""
        changing = self.kind.origin is RecordOrigin.SAME and hasattr(self.target, "change")
        return RecordOrigin.UNKNOWN if changing else self.kind.origin

    @property
    def new_records(self) -> bool:
        """Whether the result is made of new records, so that none of the input counts as dropped.

        The class of a dataset operator says so; of other kinds the outcome of each record is known.
        """
        return self.kind.may_sum_up and bool(getattr(self.target, "new_records", False))

    @property
    def place(self) -> str:
        """The place of its definition: ``module.qualname``."""
        return f"{self.target.__module__}.{self.target.__qualname__}"

    @property
    def shipped(self) -> bool:
        """Whether it is defined in this package."""
        return self.place.startswith(_PACKAGE)

    @property
    def kind_text(self) -> str:
        """The kind in words."""
        return self.kind.text

    @property
    def targets(self) -> list[Any]:
        """The functions and classes whose source is shown."""
        return [self.target]

    @property
    def description(self) -> str:
        """The cleaned docstring; empty without one."""
        import inspect

        return inspect.cleandoc(self.target.__doc__ or "")

    @cached_property
    def file_options(self) -> tuple[OptionSpec, ...]:
        """The options whose files count by their content, see `FileContent`."""
        return tuple(option for option in self.options if is_marked(option.annotation))

    @cached_property
    def code_version(self) -> str:
        """A digest of the source code."""
        return self.code.digest

    @cached_property
    def code(self) -> CodeFacts:
        """The code version, and the constants that it cannot compare."""
        return _code_of(self.target, self.target.__module__)

    @cached_property
    def code_parts(self) -> dict[str, str]:
        """The digests of the parts of the code version by name, such as ``module.function``."""
        from dagster_dataops.foundation.hashing.code_parts import code_parts  # to publish a result

        home = self.target.__module__
        return code_parts(self.target, _is_operational, home, _ENTRIES)

    @property
    def earlier_code(self) -> str:
        """The code version that version 0.2 had, see `code_facts`; empty if it left more out."""
        if not self.code_version.endswith(RULES):
            return self.code_version
        return _code_of(self.target, self.target.__module__, older=True).digest


@frozen()
class Invocation:
    """One configured use of an operator, stored in ``operator.__dataops__``.

    Attributes:
        spec: The operator.
        options: Every option with its given or default value.
        settings: The execution settings of this use, merged over those of the registration.
        passed_up: Options for ``forward`` that ``__init__`` passed to the base class.
        output: The export path of the result, if any; of an export operator its first option.
        columns: The declared types of the columns that are exported to ``output``, by name.
        link: The run that it is part of; ``None`` outside a run.
        server: In a run, the server of models that it asks; empty for none.
        adopts: In a run, whether records that do not name their server are of this one.
        files: The digests of the files that options name, see `FileContent`, by these options.
        keeper: In a run, stores the files that the operator makes.
    """

    spec: OperatorSpec
    options: Mapping[str, Any]
    settings: ExecutionSettings
    passed_up: Mapping[str, Any] = field(default_factory=dict)
    output: Path | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)
    link: RunLink | None = None
    server: str = ""
    adopts: bool = False
    files: Mapping[str, str] = field(default_factory=dict)
    keeper: "FileKeeper | None" = None

    @cached_property
    def artefacts(self) -> tuple[str, ...]:
        """The nodes whose artefacts are options, in the order of the options.

        The operator is constructed in the run, when their folders are known.
        """
        return tuple(dict.fromkeys(referenced(dict(self.options))))

    @property
    def chosen(self) -> dict[str, Any]:
        """The options without those that have their default, to construct the operator again.

        An ``__init__`` may give its base class an option that its ``**kwargs`` take, too; a default
        that is passed would then be a second value.
        """
        defaults = {option.name: option.default for option in self.spec.options}
        return {
            name: value
            for name, value in self.options.items()
            if name not in defaults or value is not defaults[name]
        }

    @property
    def uses(self) -> "list[Invocation]":
        """The invocations of the parts of a chain; for any other operator, this one alone."""
        return [part.__dataops__ for _, part in self.spec.parts] or [self]

    @property
    def resolved(self) -> ResolvedSettings:
        """The settings with all defaults filled in."""
        return self.settings.resolved(asynchronous=self.spec.asynchronous)

    @cached_property
    def secrets(self) -> Secrets:
        """The secrets among the options; errors and counts of the operator do not show them."""
        return secrets_of({**self.options, **self.passed_up})

    @cached_property
    def refusals(self) -> list[str]:
        """The errors of calls in this process that needed a real dict, see `ChangeWatch`."""
        return []

    @property
    def options_digest(self) -> str:
        """A digest of the options that affect the result."""
        return self._known_options[0]

    @property
    def unknown_options(self) -> tuple[str, ...]:
        """The options with an object that has no digest, each with the class of the object."""
        return self._known_options[1]

    @cached_property
    def names_read(self) -> tuple[str, ...]:
        """The names that the operator declares to read, perhaps as `ReadName`.

        Raises:
            OperatorDefinitionError: The declaration is malformed.
        """
        declaration = self.spec.declared.reads
        if declaration is None:
            return ()
        return tuple(column_types(self.spec.qualified_name, "reads", declaration, self.options))

    def keys_read(self, number: int = 0, *, optional: bool = False) -> list[ReadKey]:
        """Return the keys that the operator declares to read of one of its inputs, each once.

        Args:
            number: The number of the input, from 0.
            optional: Whether those that records may lack are returned, or those that it needs.

        Raises:
            OperatorDefinitionError: The declaration is malformed.
        """
        return keys_of(self.names_read, number, optional=optional)

    @cached_property
    def identity_parts(self) -> dict[str, dict[str, str]]:
        """The digests of the options and of the parts of the code by name, to name what changed.

        Those of hidden values are guarded. A value that cannot be compared has no digest.
        """
        return {"options": dict(self._option_parts()), "code": self.spec.code_parts}

    def _option_parts(self) -> Iterator[tuple[str, str]]:
        nodes = {node: {"artefact of": node} for node in self.artefacts}
        for name, first, value in self._counting_options():
            if name in self.files:
                yield f"file of {name}", self.files[name]
            former = _OptionForms(self.spec.target.__module__, older=False)
            form = former.named(first, with_references(value, nodes))
            yield name, "" if former.unknown else digest_of_form(form)
        for name, value in self._batches.items():
            yield name, str(value)

    @property
    def earlier_options(self) -> str:
        """The digest of the options that version 0.2 had; empty if it left more out."""
        present = self.options_digest
        return self._options_by(older=True)[0] if present.endswith(RULES) else present

    @cached_property
    def _known_options(self) -> tuple[str, tuple[str, ...]]:
        return self._options_by(older=False)

    def _options_by(self, *, older: bool) -> tuple[str, tuple[str, ...]]:
        """Return the digest of the options, or the ``older`` of version 0.2; those without one."""
        nodes = {node: {"artefact of": node} for node in self.artefacts}
        forms: dict[str, Any] = {}
        unknown: list[str] = []
        rules, partial = "", False
        for name, first, value in self._counting_options():
            if name in self.files:
                forms[f"file of {first}"] = self.files[name]
            former = _OptionForms(self.spec.target.__module__, older=older)
            form = former.named(first, with_references(value, nodes))
            if self._is_later(name, first, form, older=older):
                continue
            forms[first] = form
            unknown += [f"{name!r} (a {kind})" for kind in sorted(former.unknown)]
            rules, partial = rules or former.rules, partial or former.partial
        digest = digest_of_form(forms | self._batches)
        if older:
            return "" if partial else digest, tuple(unknown)
        return digest + rules, tuple(unknown)

    def _counting_options(self) -> Iterator[tuple[str, str, Any]]:
        """Yield the options that affect the result: name, first name, value."""
        marked = {
            option.name
            for option in self.spec.options
            if is_annotated_operational(option.annotation)
            or (option.many and not self.options.get(option.name))
        }
        firsts = {option.name: option.former[0] for option in self.spec.options if option.former}
        for name, value in {**self.options, **self.passed_up}.items():
            first = firsts.get(name, name)
            operational = isinstance(value, Operational) or is_operational_option(first, value)
            if name not in marked and not operational:
                yield name, first, value

    def _is_later(self, name: str, first: str, form: Any, *, older: bool) -> bool:
        """Return whether an option of a later version has its default: digests stay the same."""
        if name not in getattr(self.spec.target, "added_later", ()):
            return False
        defaults = {option.name: option.default for option in self.spec.options}
        former = _OptionForms(self.spec.target.__module__, older=older)
        return name in defaults and bool(former.named(first, defaults[name]) == form)

    @property
    def _batches(self) -> dict[str, int]:
        """The batch size, which affects the result of an operator that takes batches."""
        return {"_batch_size": self.resolved.batch_size} if self.spec.batch else {}


_ENTRIES: Final = EntryRules(is_inner_credential, holds_credentials, is_hidden)


class _OptionForms(ExactForms):
    """Converts an option; what the code of a function in it cannot compare is unknown.

    Args:
        home: The module of the operator.
        older: Whether the forms are those of version 0.2.
    """

    def __init__(self, home: str, *, older: bool) -> None:
        super().__init__(self._code, is_inner_credential, path_form, _ENTRIES, older=older)
        self._home = home

    def _code(self, target: Any) -> str:
        code = _code_of(target, self._home, older=self._older)
        self.unknown.update(code.unknown)
        self.partial = self.partial or not code.digest
        return code.digest


def _code_of(target: Any, home: str, *, older: bool = False) -> CodeFacts:
    return code_facts(target, _is_operational, home, _ENTRIES, older=older)


def _is_operational(name: str) -> bool:
    return name in SETTING_NAMES or is_endpoint_credential(name)
