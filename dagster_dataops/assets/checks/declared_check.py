"""DeclaredCheck: a check that was declared for an asset; CHECK_KINDS: all kinds of checks."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

import dagster as dg

from dagster_dataops.assets.checks.inspectors import Inspector
from dagster_dataops.assets.checks.severity import Severity, severity_of
from dagster_dataops.errors import ConfigurationError, DefinitionError

NAMES: Final = "made of ASCII letters, digits and underscores"
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredCheck:
    """A check of the published file of an asset.

    Attributes:
        name: Unique among the checks of the asset.
        description: The condition that is checked, as a sentence.
        inspector: Makes the inspector of one file.
        severity: Severity if the check fails.
        blocking: Whether a failed check stops the assets downstream.
        given_spec: The spec on the only asset that it is a check of, from a translator.
    """

    name: str
    description: str
    inspector: Callable[[], Inspector]
    severity: dg.AssetCheckSeverity
    blocking: bool
    given_spec: dg.AssetCheckSpec | None = None

    def spec(self, key: dg.AssetKey) -> dg.AssetCheckSpec:
        """Return the spec of the check on an asset."""
        if self.given_spec is not None:
            return self.given_spec
        return dg.AssetCheckSpec(
            self.name, asset=key, description=self.description, blocking=self.blocking
        )


class CheckKind(NamedTuple):
    """A kind of check.

    Attributes:
        declare: Returns a check; takes ``name``, ``severity`` and ``blocking`` as keywords.
        yaml: The JSON Schema of its value in a defs.yaml, with ``description`` and ``examples``.
            An object with properties gives keywords of ``declare``, an array gives its arguments,
            any other value is its only argument. A text of format ``path`` is relative to the
            folder of the defs.yaml.
    """

    declare: Callable[..., DeclaredCheck]
    yaml: Mapping[str, Any]


CHECK_KINDS: Final[dict[str, CheckKind]] = {}
_Declare = TypeVar("_Declare", bound=Callable[..., DeclaredCheck])


def check_kind(yaml: Mapping[str, Any]) -> Callable[[_Declare], _Declare]:
    """Register a function as a kind of check, under its name; ``yaml`` as in `CheckKind`.

    Raises:
        DefinitionError: The decorated function has the name of another check.
    """

    def register(declare: _Declare) -> _Declare:
        name = declare.__name__
        before = CHECK_KINDS.get(name)
        if before is not None and before.declare.__module__ != declare.__module__:
            there, here = before.declare.__module__, declare.__module__
            msg = f"the check {name!r} of {here} has the name of one of {there}; rename it"
            raise DefinitionError(msg)
        CHECK_KINDS[name] = CheckKind(declare, yaml)
        return declare

    return register


def declared(
    name: str,
    description: str,
    inspector: Callable[[], Inspector],
    severity: Severity | None,
    *,
    blocking: bool,
) -> DeclaredCheck:
    """Return a check, by default with the severity ``ERROR``.

    Raises:
        ConfigurationError: The name or the severity is invalid.
    """
    if not is_name(name):
        raise ConfigurationError("name of a check", name, NAMES)
    return DeclaredCheck(
        name=name,
        description=description,
        inspector=inspector,
        severity=severity_of(severity, blocking=blocking, default="ERROR"),
        blocking=blocking,
    )


def is_name(name: str) -> bool:
    """Return whether a text may name a check."""
    return bool(name) and not _NOT_IN_NAMES.search(name)


def columns_schema(description: str, *example: str) -> Mapping[str, Any]:
    """Return the YAML form of a check of columns: a name, or a list of names."""
    return {
        "type": ["array", "string"],
        "items": {"type": "string"},
        "minItems": 1,
        "minLength": 1,
        "description": description,
        "examples": [list(example)],
    }


def check_columns(kind: str, columns: tuple[str, ...]) -> None:
    """Check that there is at least one column and that all names are texts.

    Raises:
        ConfigurationError: There is none, or a name is not a text.
    """
    if not columns or not all(isinstance(column, str) for column in columns):
        raise ConfigurationError(kind, columns, "given one or more names of columns")


def name_of(kind: str, columns: tuple[str, ...]) -> str:
    """Return the default name of a check of columns."""
    return _NOT_IN_NAMES.sub("_", "_".join([kind, *columns]))


def listed(columns: tuple[str, ...]) -> str:
    """Return names of columns as a list in a sentence."""
    return " and ".join(filter(None, [", ".join(columns[:-1]), columns[-1]]))
