"""Failed rows: the failed records of error files, counted by group, with rows to show."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dagster_dataops.checkpoints.publish.error_rows import parse_error_row
from dagster_dataops.datasets.durable_files import storage
from dagster_dataops.pipelines.reporting.excerpts import excerpt

MOST_ROWS: Final = 10_000  # in a whole report
MOST_CHARACTERS: Final = 8_000_000
_MOST_GROUPS: Final = 50  # of a node
_OF_A_GROUP: Final = 3  # rows that are shown in any case
_INPUT: Final = 1000  # characters


@dataclass
class RowBudget:
    """Limit of the failed records in a report."""

    rows: int = MOST_ROWS
    characters: int = MOST_CHARACTERS

    def take(self, row: dict[str, Any]) -> bool:
        """Take the room of a row; return whether there was any."""
        size = len(row["message"]) + len(row["input"])
        if self.rows < 1 or self.characters < size:
            return False
        self.rows -= 1
        self.characters -= size
        return True


def failed_rows(path: Path, budget: RowBudget) -> dict[str, Any]:
    """Return the groups of failed records, and the rows to show.

    The first rows of each group are shown whatever the budget.

    Returns:
        ``path``, ``total``, ``groups`` (``exception``, ``part``, ``records``, ``message`` of the
        first) and ``rows`` (``group``, its index, ``line``, ``message``, ``input``).
    """
    groups: dict[tuple[str, str], dict[str, Any]] = {}
    numbers: dict[tuple[str, str], int] = {}
    rows: list[dict[str, Any]] = []
    total = 0
    with storage(path, "read the failed records"), path.open("rb") as file:
        for total, line in enumerate(file, 1):  # noqa: B007 - it is the number of rows
            failed = parse_error_row(line)
            key = cause_of(failed)
            if key not in groups and len(groups) >= _MOST_GROUPS:
                key = ("others", "")
            number = numbers.setdefault(key, len(numbers))
            group = groups.setdefault(
                key, {"exception": key[0], "part": key[1], "records": 0, "message": ""}
            )
            group["records"] += 1
            row = _row(failed, number)
            group["message"] = group["message"] or row["message"]
            if budget.take(row) or group["records"] <= _OF_A_GROUP:
                rows.append(row)
    return {
        "path": str(path),
        "total": total,
        "groups": list(groups.values()),
        "rows": rows,
    }


def cause_of(failed: Mapping[str, Any]) -> tuple[str, str]:
    """Return the exception of a failed record, and the part or stage that failed, empty if none."""
    return str(failed.get("exception")), str(failed.get("part") or failed.get("stage") or "")


def _row(failure: dict[str, Any], group: int) -> dict[str, Any]:
    return {
        "group": group,
        "line": failure.get("line"),
        "message": excerpt(failure.get("message", "")),
        "input": excerpt(failure.get("input"), _INPUT),
    }
