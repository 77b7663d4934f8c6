"""Count the changes of lines between two versions of a result, with samples and their causes."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

import orjson
import xxhash

from dagster_dataops.checkpoints.versions.version import ResultVersion
from dagster_dataops.pipelines.history.alignment import Change
from dagster_dataops.pipelines.history.changed_lines import (
    ChangedLine,
    ChangedLines,
    cut,
    text_of_line,
)
from dagster_dataops.pipelines.history.matched_lines import MatchedLine
from dagster_dataops.pipelines.history.result_sides import Outcome
from dagster_dataops.pipelines.history.spilled_groups import EqualKeys, SpilledGroups
from dagster_dataops.pipelines.tracing.record_map import find_error_row
from dagster_dataops.pipelines.tracing.trail import reasons_of

_OF_INPUT: Final = {
    Change.CHANGED: "its input record has changed",
    Change.NEW: "its input record is new",
    Change.GONE: "its input record is gone",
}


class ChangeCounter:
    """Counts the changes of lines that were matched by their input.

    ``cause`` tells why a line differs although its input record does not.
    """

    def __init__(
        self, before: ResultVersion, after: ResultVersion, cause: str, samples: int
    ) -> None:
        self._versions = before, after
        self._cause = cause
        self._most = samples
        self._shown: Counter[Change] = Counter()
        self._lines = ChangedLines()

    def count(self, changes: Iterator[MatchedLine]) -> ChangedLines:
        """Count the changes, and return the numbers."""
        lines = self._lines
        with SpilledGroups() as moved:
            for line in changes:
                match line.change:
                    case Change.EQUAL:
                        lines.same += line.number
                    case Change.MOVED_BEFORE:
                        moved.add(0, line.key, xxhash.xxh3_64_intdigest(line.before or b""))
                    case Change.MOVED_AFTER:
                        moved.add(1, line.key, xxhash.xxh3_64_intdigest(line.after or b""))
                    case _:
                        self._add(line)
            for group in moved.groups():
                self._add_moved(group)
        return lines

    def _add(self, line: MatchedLine) -> None:
        if line.change is Change.CHANGED:
            self._lines.changed += 1
        elif line.change is Change.NEW:
            self._lines.new += 1
        else:
            self._lines.gone += 1
        # For the count: without details of this record.
        cause = _OF_INPUT.get(line.of_input) or f"{self._cause}{_became(line)}"
        self._lines.causes[cause] += 1
        if self._shown[line.change] < self._most:
            self._shown[line.change] += 1
            self._lines.samples.append(self._sample(line))

    def _sample(self, line: MatchedLine) -> ChangedLine:
        cause = _OF_INPUT.get(line.of_input) or f"{self._cause}{self._became_here(line)}"
        return ChangedLine(
            line.change.name.lower(),
            text_of_line(line.before),
            text_of_line(line.after),
            cause,
            0 if line.outcome_before is None else line.outcome_before.record + 1,
            0 if line.outcome_after is None else line.outcome_after.record + 1,
        )

    def _became_here(self, line: MatchedLine) -> str:
        """Return the outcome of the record in the other version, with reason or exception."""
        for version, outcome, when in zip(
            self._versions,
            (line.outcome_before, line.outcome_after),
            ("before", "now"),
            strict=True,
        ):
            if outcome is not None and not outcome.lines:
                return f"; {when} it {self._fate(version, outcome)}"
        return ""

    @staticmethod
    def _fate(version: ResultVersion, outcome: Outcome) -> str:
        if outcome.disposition is None:
            row = find_error_row(version.folder, outcome.record) or {}
            return f"fails: {row.get('exception')}: {cut(str(row.get('message')))}"
        reasons = reasons_of(orjson.loads(outcome.disposition))
        return f"is dropped: {', '.join(reasons)}" if reasons else "is dropped"

    def _add_moved(self, group: EqualKeys) -> None:
        """Count the lines of records that have moved, or that one version has more often."""
        before, after = Counter(group.before), Counter(group.after)
        equal = (before & after).total()
        self._lines.moved += equal
        left, right = before.total() - equal, after.total() - equal
        changed = min(left, right)
        self._lines.changed += changed
        self._lines.gone += left - changed
        self._lines.new += right - changed
        for number, cause in (
            (changed, self._cause),
            (left - changed, _OF_INPUT[Change.GONE]),
            (right - changed, _OF_INPUT[Change.NEW]),
        ):
            if number:
                self._lines.causes[cause] += number


def _became(line: MatchedLine) -> str:
    """Return the outcome of the record in the version without the line, in words."""
    outcome = line.outcome_after if line.change is Change.GONE else line.outcome_before
    if line.change is Change.CHANGED or outcome is None:
        return ""
    when = "now" if line.change is Change.GONE else "before"
    if outcome.disposition is None:
        return f"; {when} the record fails"
    return "" if outcome.lines else f"; {when} the record is dropped"
