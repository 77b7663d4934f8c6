"""OperatorSpec: what is known of a registered operator. Invocation: one configured use of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from dagster_dataops.hashing.code import code_digest
from dagster_dataops.hashing.operational import is_marked, is_operational
from dagster_dataops.hashing.values import Former, digest_of_form
from dagster_dataops.operators.declared_columns import NOTHING, Declared
from dagster_dataops.operators.secret_options import (
    is_credential,
    is_inner_credential,
    is_operational_option,
)
from dagster_dataops.operators.settings import (
    SETTING_NAMES,
    ExecutionSettings,
    ResolvedSettings,
)
from dagster_dataops.operators.signature import OptionSpec

OperatorKind: TypeAlias = Literal["reader", "record", "dataset", "selection", "stream"]
METHODS: Final[dict[OperatorKind, str]] = {
    "reader": "stream",
    "record": "forward",
    "dataset": "forward_batch_input",
    "selection": "sketch",
    "stream": "stream",
}


@dataclass(frozen=True, kw_only=True)
class OperatorSpec:
    """A registered operator.

    Attributes:
        group: Its group, such as ``demo``; empty for a function that is in none.
        name: Its name in the group.
        kind: ``record`` (``forward``, one record in), ``dataset`` (``forward_batch_input``),
            ``selection`` (``sketch`` of one record, then ``keep`` over all sketches) or ``stream``
            (``stream``, a stream of each dataset in and one out); ``reader`` (``stream``) if
            nothing is taken in.
        target: The function or class as its author wrote it.
        options: What can be given where it is constructed, in the order of the signature.
        any_option: Whether its function or ``forward`` takes options that no signature names.
        settings: Execution settings given at registration.
        inputs: How many datasets it takes; more than one joins them. 0 is any number.
        streamed: For each of them, whether it takes an iterator rather than a list.
        asynchronous: Whether ``forward`` or ``sketch`` is ``async def``.
        declared: The columns that it says it reads and writes.
    """

    group: str
    name: str
    kind: OperatorKind
    target: Any
    options: tuple[OptionSpec, ...]
    any_option: bool
    settings: ExecutionSettings
    inputs: int
    streamed: tuple[bool, ...]
    asynchronous: bool
    declared: Declared = NOTHING

    @property
    def qualified_name(self) -> str:
        """Return group and name, such as ``demo.process_uppercase``."""
        return f"{self.group}.{self.name}" if self.group else self.name

    @property
    def reference(self) -> str:
        """How Python reaches it: ``data.<group>.<name>``, or the function itself."""
        return f"data.{self.qualified_name}" if self.group else self.place

    @property
    def method(self) -> str:
        """The method that takes its data, such as ``forward``."""
        return METHODS[self.kind]

    @property
    def place(self) -> str:
        """Where it was written: ``module.qualname``."""
        return f"{self.target.__module__}.{self.target.__qualname__}"

    @property
    def description(self) -> str:
        """Its docstring, cleaned up; empty if it has none."""
        import inspect

        return inspect.cleandoc(self.target.__doc__ or "")

    @cached_property
    def code_version(self) -> str:
        """Digest of its source."""
        return code_digest(self.target, _is_operational, self.target.__module__)


@dataclass(frozen=True, kw_only=True)
class Invocation:
    """One configured use of an operator; the engine's slot on it, ``operator.__dataops__``.

    Attributes:
        spec: Which operator.
        options: Every option with its value, given or default.
        settings: Execution settings of this use, over those of the registration.
        passed_up: Options that ``__init__`` passed up to the base class, for ``forward``.
        output: Where its result is exported to, if anywhere.
    """

    spec: OperatorSpec
    options: Mapping[str, Any]
    settings: ExecutionSettings
    passed_up: Mapping[str, Any] = field(default_factory=dict)
    output: Path | None = None

    @property
    def resolved(self) -> ResolvedSettings:
        """The settings with every default filled in."""
        return self.settings.resolved(asynchronous=self.spec.asynchronous)

    @property
    def options_digest(self) -> str:
        """Digest of the options that say what is computed."""
        return self._known_options[0]

    @property
    def unknown_options(self) -> tuple[str, ...]:
        """Which options hold an object whose content is not known, each with its class."""
        return self._known_options[1]

    @cached_property
    def _known_options(self) -> tuple[str, tuple[str, ...]]:
        code = partial(code_digest, ignored=_is_operational, home=self.spec.target.__module__)
        marked = {option.name for option in self.spec.options if is_marked(option.annotation)}
        forms: dict[str, Any] = {}
        unknown: list[str] = []
        for name, value in {**self.options, **self.passed_up}.items():
            if name in marked or is_operational(value) or is_operational_option(name, value):
                continue
            former = Former(code, is_inner_credential)
            forms[name] = former.form(value)
            unknown += [f"{name!r} (a {kind})" for kind in sorted(former.unknown)]
        return digest_of_form(forms), tuple(unknown)


def _is_operational(name: str) -> bool:
    return name in SETTING_NAMES or is_credential(name)
