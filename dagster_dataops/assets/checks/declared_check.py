"""DeclaredCheck: a check as it was declared for a node, before it looks at anything."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import dagster as dg

from dagster_dataops.assets.checks.inspectors import Watch
from dagster_dataops.assets.checks.severity import Severity, severity_of
from dagster_dataops.errors import ConfigurationError

_ODD: Final = re.compile(r"[^A-Za-z0-9_]+")  # what no name of a check may hold


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredCheck:
    """A check that was declared for a node.

    Attributes:
        name: Unique among the checks of the node.
        description: What is checked, in a sentence.
        watch: Makes what looks at the records of one file.
        severity: Of the check that did not pass, ``WARN`` or ``ERROR``.
        blocking: Whether nothing downstream runs when it did not pass.
    """

    name: str
    description: str
    watch: Callable[[], Watch]
    severity: dg.AssetCheckSeverity
    blocking: bool

    def spec(self, key: dg.AssetKey) -> dg.AssetCheckSpec:
        """Return the spec of the check on an asset."""
        return dg.AssetCheckSpec(
            self.name, asset=key, description=self.description, blocking=self.blocking
        )


def declared(
    name: str, text: str, watch: Callable[[], Watch], severity: Severity | None, *, blocking: bool
) -> DeclaredCheck:
    """Return a check; without a word on its severity it is an error not to pass.

    Raises:
        ConfigurationError: Its name or severity is impossible.
    """
    if not name or _ODD.search(name):
        wanted = "made of ASCII letters, digits and underscores"
        raise ConfigurationError("name of a check", name, wanted)
    graveness = severity_of(severity, blocking=blocking, default="ERROR")
    return DeclaredCheck(
        name=name, description=text, watch=watch, severity=graveness, blocking=blocking
    )


def check_columns(check: str, columns: tuple[str, ...]) -> tuple[str, ...]:
    """Return ``columns``, at least one, each a name.

    Raises:
        ConfigurationError: They are something else.
    """
    if not columns or not all(isinstance(column, str) for column in columns):
        raise ConfigurationError(check, columns, "given one or more names of columns")
    return columns


def named(check: str, columns: tuple[str, ...]) -> str:
    """Return the name of a check on columns."""
    return _ODD.sub("_", "_".join([check, *columns]))


def listed(columns: tuple[str, ...]) -> str:
    """Return columns as one would say them."""
    if len(columns) < 2:
        return "".join(columns)
    return f"{', '.join(columns[:-1])} and {columns[-1]}"
