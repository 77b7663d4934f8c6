"""Findings: the result of a check over one file, with its first violations."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import dagster as dg

from dagster_dataops.assets.inputs.partitions import named
from dagster_dataops.assets.metadata.markdown import plain
from dagster_dataops.assets.metadata.metadata_keys import EXAMPLE_RECORDS, TRAINED, own_key
from dagster_dataops.datasets.lines import LineCounter
from dagster_dataops.errors import InputError
from dagster_dataops.foundation.places.bucket import Location
from dagster_dataops.foundation.places.file_state import FileState
from dagster_dataops.foundation.places.opening import opened
from dagster_dataops.foundation.places.range_source import Readable, state_of

EXAMPLES: Final = 10
_CHARACTERS: Final = 100  # length of a shown value; the UI does not break long words
Cell: TypeAlias = str | int | float | bool | None


@dataclass(slots=True)
class Violations:
    """Records that violate a check.

    ``first`` has byte offset of the line, problem and value of the first records, in order.
    """

    count: int = 0
    first: list[tuple[int, str, str]] = field(default_factory=list)

    def add(self, start: int, problem: str, value: object) -> None:
        """Count the record whose line starts at byte ``start``."""
        self.count += 1
        if len(self.first) < EXAMPLES:
            self.first.append((start, problem, plain(value)[:_CHARACTERS]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of a check over one file.

    Attributes:
        passed: Whether the check passed.
        text: The result as a sentence.
        numbers: Counts and shares by name.
        violations: The records that violate the check.
        location: The file, where a violation names its line.
        state: The state of that file when it was checked.
        partition: The key of the partition, if the asset has partitions.
        samples: Examples of what was checked, as Markdown; empty for none.
    """

    passed: bool
    text: str
    numbers: dict[str, int | float] = field(default_factory=dict)
    violations: Violations = field(default_factory=Violations)
    location: Location | None = None
    state: FileState | None = None
    partition: str | None = None
    samples: str = ""

    def rows(self) -> list[dict[str, Cell]]:
        """Return the first violations with their line numbers, as rows of a table.

        Raises:
            InputError: Another result was published since the check.
        """
        if not self.violations.first or self.location is None:
            return []
        rows: list[dict[str, Cell]] = []
        where = {} if self.partition is None else {"partition": self.partition}
        with opened(self.location) as source:
            check_same(self.location, source, self.state)
            counter = LineCounter(source)
            for start, problem, value in self.violations.first:
                row: dict[str, Cell] = {"line": counter.line_at(start), "problem": problem}
                rows.append({**where, **row, "value": value})
        return rows


def check_same(location: Location, source: Readable, state: FileState | None) -> None:
    """Check that a file that was opened again is the one that was checked.

    Raises:
        InputError: It was replaced meanwhile.
    """
    if state is not None and not state_of(source).resembles(state):
        raise InputError(str(location), "was published again while it was checked; check it again")


def unknown(facts: str, reason: str = "the result was edited") -> Finding:
    """Return the finding of a check without the facts that it needs, a subject in the plural."""
    return Finding(passed=False, text=f"{facts} are unknown: {reason}.")


def check_result(
    key: dg.AssetCheckKey, severity: dg.AssetCheckSeverity, findings: Sequence[Finding]
) -> dg.AssetCheckResult:
    """Return the result of a check from its findings: one, or one for each partition."""
    bad = [finding for finding in findings if not finding.passed]
    text, numbers = findings[0].text, findings[0].numbers
    if len(findings) > 1:
        text = f"{len(findings):,} partitions checked."
        numbers = {
            "partitions": len(findings),
            "partitions_not_passed": len(bad),
            "offending_records": sum(finding.violations.count for finding in findings),
        }
    if len(findings) > 1 and bad:
        first = f"first {bad[0].partition}: {bad[0].text}"
        keys = named([str(finding.partition) for finding in bad])
        which = f" ({keys})" if len(bad) > 1 else ""
        text = f"{len(bad):,} of {len(findings):,} partitions did not pass{which}, {first}"
    rows = [row for finding in bad[:EXAMPLES] for row in finding.rows()][:EXAMPLES]
    metadata: dict[str, dg.RawMetadataValue] = {
        own_key(name): value for name, value in numbers.items()
    }
    if rows:
        records = [dg.TableRecord(row) for row in rows]
        columns = [dg.TableColumn(n, "int" if n == "line" else "string") for n in rows[0]]
        table = dg.MetadataValue.table(records, dg.TableSchema(columns=columns))
        metadata[EXAMPLE_RECORDS] = table
    if findings[0].samples:
        metadata[TRAINED] = dg.MetadataValue.md(findings[0].samples)
    return dg.AssetCheckResult(
        passed=not bad,
        asset_key=key.asset_key,
        check_name=key.name,
        severity=severity,
        description=text,
        metadata=metadata,
    )
