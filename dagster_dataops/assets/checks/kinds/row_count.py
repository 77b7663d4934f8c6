"""The check ``row_count``."""

from dagster_dataops.assets.checks.declared_check import DeclaredCheck, check_kind, declared
from dagster_dataops.assets.checks.findings import Finding
from dagster_dataops.assets.checks.inspectors import Inspected
from dagster_dataops.assets.checks.severity import Severity
from dagster_dataops.errors import ConfigurationError
from dagster_dataops.foundation.quantities import counted


@check_kind(
    {
        "type": "object",
        "properties": {
            "min": {"type": "integer", "minimum": 0, "description": "Fewest records."},
            "max": {"type": "integer", "minimum": 0, "description": "Most records."},
        },
        "description": "Bounds for the number of records.",
        "examples": [{"min": 1}],
    }
)
def row_count(
    *,
    min: int | None = None,  # noqa: A002 - a plain word for the user
    max: int | None = None,  # noqa: A002
    name: str = "row_count",
    severity: Severity | None = None,
    blocking: bool = False,
) -> DeclaredCheck:
    """Check that there are at least ``min`` and at most ``max`` records."""
    if min is None and max is None:
        raise ConfigurationError("row_count", "no bound", "given min, max or both")
    if min is not None and max is not None and min > max:
        raise ConfigurationError("row_count", f"min={min}, max={max}", "min <= max")

    def finding(inspected: Inspected) -> Finding:
        rows = inspected.rows
        few = min is not None and rows < min
        many = max is not None and rows > max
        text = counted(rows, "records")
        if few:
            text += f", fewer than {min:,}"
        if many:
            text += f", more than {max:,}"
        return Finding(passed=not (few or many), text=f"{text}.", numbers={"rows": rows})

    bounds = [f"at least {min:,}"] if min is not None else []
    bounds += [f"at most {max:,}"] if max is not None else []
    text = f"There are {' and '.join(bounds)} records."
    return declared(name, text, lambda: finding, severity, blocking=blocking)
