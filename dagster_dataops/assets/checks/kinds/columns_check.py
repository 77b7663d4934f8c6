"""ColumnsCheck: the base of checks whose arguments are names of columns."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

from typing_extensions import override

from dagster_dataops.assets.checks.declared_check import NOT_IN_NAMES, DeclaredCheck
from dagster_dataops.assets.checks.severity import Severity
from dagster_dataops.errors import ConfigurationError


class ColumnsCheck(DeclaredCheck):
    """A check of columns.

    Args:
        columns: Names of columns, at least one.
        name: As for `DeclaredCheck`.
        description: The sentence with ``{columns}`` where the names go.
        severity: As for `DeclaredCheck`.
        blocking: As for `DeclaredCheck`.

    Raises:
        ConfigurationError: There is no column, or a name is not a text.
    """

    def __init__(
        self,
        columns: tuple[str, ...],
        name: str,
        description: str,
        severity: Severity | None,
        *,
        blocking: bool,
    ) -> None:
        if not columns or not all(isinstance(column, str) for column in columns):
            raise ConfigurationError(self.kind, columns, "given one or more names of columns")
        self.columns = columns
        super().__init__(
            name or NOT_IN_NAMES.sub("_", "_".join([self.kind, *columns])),
            description.format(columns=_listed(columns)),
            severity,
            blocking=blocking,
        )

    @override
    @classmethod
    def from_yaml(cls, value: Any, **options: Any) -> Self:
        return cls(*([value] if isinstance(value, str) else value), **options)


def columns_schema(description: str, example: Sequence[str]) -> Mapping[str, Any]:
    """Return the YAML form of a check of columns: a name, or a list of names."""
    return {
        "type": ["array", "string"],
        "items": {"type": "string"},
        "minItems": 1,
        "minLength": 1,
        "description": description,
        "examples": [list(example)],
    }


def _listed(columns: tuple[str, ...]) -> str:
    """Return names of columns as a list in a sentence."""
    if len(columns) < 2:
        return "".join(columns)
    return f"{', '.join(columns[:-1])} and {columns[-1]}"
