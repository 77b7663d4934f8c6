"""The check ``row_count``."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from typing_extensions import override

from dagster_dataops.assets.checks.declared_check import DeclaredCheck
from dagster_dataops.assets.checks.findings import Finding
from dagster_dataops.assets.checks.inspectors import Inspected, Inspector
from dagster_dataops.assets.checks.severity import Severity
from dagster_dataops.errors import ConfigurationError


class RowCount(DeclaredCheck, Inspector):
    """Check that there are at least ``min`` and at most ``max`` records."""

    kind = "row_count"
    yaml: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "min": {"type": "integer", "minimum": 0, "description": "Fewest records."},
            "max": {"type": "integer", "minimum": 0, "description": "Most records."},
        },
        "description": "Bounds for the number of records.",
        "examples": [{"min": 1}],
    }

    def __init__(
        self,
        *,
        min: int | None = None,  # noqa: A002 - a plain word for the user
        max: int | None = None,  # noqa: A002
        name: str = "row_count",
        severity: Severity | None = None,
        blocking: bool = False,
    ) -> None:
        if min is None and max is None:
            raise ConfigurationError("row_count", "no bound", "given min, max or both")
        if min is not None and max is not None and min > max:
            raise ConfigurationError("row_count", f"min={min}, max={max}", "min <= max")
        bounds = [f"at least {min:,}"] if min is not None else []
        bounds += [f"at most {max:,}"] if max is not None else []
        text = f"There are {' and '.join(bounds)} records."
        super().__init__(name, text, severity, blocking=blocking)
        self.min = min
        self.max = max

    @override
    @classmethod
    def from_yaml(cls, value: Mapping[str, Any], **options: Any) -> Self:
        return cls(**value, **options)

    @override
    def inspector(self) -> Inspector:
        return self

    @override
    def finding(self, inspected: Inspected) -> Finding:
        rows = inspected.rows
        text = f"{rows:,} records"
        few = self.min is not None and rows < self.min
        many = self.max is not None and rows > self.max
        if few:
            text += f", fewer than {self.min:,}"
        if many:
            text += f", more than {self.max:,}"
        return Finding(passed=not (few or many), text=f"{text}.", numbers={"rows": rows})
