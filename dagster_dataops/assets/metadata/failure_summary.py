"""Failure summary: the failed records of an error file by exception, with examples.

The whole error file is counted. Only the groups take memory.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import dagster as dg

from dagster_dataops.assets.metadata.markdown import plain, table

_Cell: TypeAlias = str | int | float | bool | None

_EXAMPLES: Final = 3  # examples per exception, with different messages
_LOOKED_AT: Final = 100  # rows per exception that are searched for examples
_MOST_GROUPS: Final = 50
_OTHERS: Final = "others"
_MESSAGE: Final = 400  # characters that are shown; a message ends with what to do
_INPUT: Final = 160  # of the input: the UI does not break long words
_BUFFER_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class FailureExample:
    """One failed record.

    Attributes:
        line: The line in the input, counted from 1.
        message: The message of the exception on one line, shortened; after the part of a chain.
        input: The record as JSON, shortened.
    """

    line: int
    message: str
    input: str


@dataclass(slots=True)
class FailureGroup:
    """The records that failed with one exception.

    Attributes:
        exception: The class name of the exception.
        records: The number of records.
        examples: The first record, and further ones with other messages.
    """

    exception: str
    records: int = 0
    examples: list[FailureExample] = field(default_factory=list)

    def add(self, row: dict[str, Any]) -> None:
        """Count a row of the error file; keep it as an example if its message is new."""
        self.records += 1
        if self.records <= _LOOKED_AT and len(self.examples) < _EXAMPLES:
            example = _example_of(row)
            if example.message not in {known.message for known in self.examples}:
                self.examples.append(example)


def failure_groups(paths: Iterable[Path]) -> list[FailureGroup]:
    """Return the groups of all rows in error files, the largest group first."""
    from dagster_dataops.checkpoints.publish.error_rows import parse_error_row  # in steps alone

    groups: dict[str, FailureGroup] = {}
    for path in paths:
        with path.open("rb", buffering=_BUFFER_BYTES) as file:
            for line in file:
                row = parse_error_row(line)
                name = str(row["exception"])
                if name not in groups and len(groups) >= _MOST_GROUPS:
                    name = _OTHERS
                groups.setdefault(name, FailureGroup(name)).add(row)
    return sorted(groups.values(), key=lambda group: -group.records)


def _example_of(row: dict[str, Any]) -> FailureExample:
    part = f"{row['part']}: " if row.get("part") else ""  # of a chain
    message, record = plain(f"{part}{row['message']}"), plain(row["input"])
    return FailureExample(row["line"], message[:_MESSAGE], record[:_INPUT])


def failures(path: Path) -> str:
    """Return a Markdown table of exceptions with their number of records and first message."""
    rows = [
        [group.exception, group.records, f"line {shown.line}: {shown.message}"]
        for group in failure_groups([path])
        for shown in group.examples[:1]
    ]
    note = f"all of them: {path.name}"
    return table(["exception", "records", "first"], rows, note, width=_MESSAGE)


def failure_table(groups: Iterable[FailureGroup]) -> dg.TableMetadataValue:
    """Return the groups as a table with one row per example; the first row has the count."""
    rows: list[dict[str, _Cell]] = [
        {
            "exception": group.exception,
            "records": None if number else group.records,
            "line": example.line,
            "message": example.message,
            "input": example.input,
        }
        for group in groups
        for number, example in enumerate(group.examples)
    ]
    columns = {"exception": "string", "records": "int", "line": "int"}
    schema = dg.TableSchema(
        columns=[
            dg.TableColumn(name, columns.get(name, "string"))
            for name in ("exception", "records", "line", "message", "input")
        ]
    )
    return dg.MetadataValue.table([dg.TableRecord(row) for row in rows], schema)
