"""ColumnsCheck: the base of checks whose arguments are names of columns."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from typing_extensions import override

from dagster_dataops.assets.checks.declared_check import NOT_IN_NAMES, DeclaredCheck
from dagster_dataops.assets.checks.severity import Severity
from dagster_dataops.errors import ConfigurationError


class ColumnsCheck(DeclaredCheck):
    """A check of one or more columns.

    Attributes:
        sentence: The description, with ``{columns}`` and ``{are}`` to fill in.
        columns_in_name: Whether the default name contains the columns.
    """

    sentence: ClassVar[str]
    columns_in_name: ClassVar[bool] = True

    def __init__(
        self,
        *columns: str,
        name: str = "",
        severity: Severity | None = None,
        blocking: bool = False,
    ) -> None:
        if not columns or not all(isinstance(column, str) for column in columns):
            raise ConfigurationError(self.kind, columns, "given one or more names of columns")
        self.columns = columns
        listed = " and ".join(filter(None, [", ".join(columns[:-1]), columns[-1]]))
        text = self.sentence.format(columns=listed, are="are" if len(columns) > 1 else "is")
        named = "_".join([self.kind, *columns]) if self.columns_in_name else self.kind
        name = name or NOT_IN_NAMES.sub("_", named)
        super().__init__(name, text, severity, blocking=blocking)

    @override
    @classmethod
    def from_yaml(cls, value: Any, **options: Any) -> Self:
        return cls(*([value] if isinstance(value, str) else value), **options)


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
