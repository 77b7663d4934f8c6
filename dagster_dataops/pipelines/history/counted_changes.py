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
from dagster_dataops.pipelines.history.result_sides import Made
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

    Args:
        before: The first version.
        after: The second one.
        cause: Why a line differs although its input record does not, in words.
        samples: How many lines of each kind are shown.
    """

    def __init__(
        self, before: ResultVersion, after: ResultVersion, cause: str, samples: int
    ) -> None:
        self._versions = before, after
        self._cause = cause
        self._most = samples
        self._shown: Counter[Change] = Counter()
        self._found = ChangedLines()

    def count(self, changes: Iterator[MatchedLine]) -> ChangedLines:
        """Count the changes, and return the numbers."""
        found = self._found
        with SpilledGroups() as moved:
            for one in changes:
                match one.change:
                    case Change.EQUAL:
                        found.same += one.number
                    case Change.MOVED_BEFORE:
                        moved.add(0, one.key, xxhash.xxh3_64_intdigest(one.before or b""))
                    case Change.MOVED_AFTER:
                        moved.add(1, one.key, xxhash.xxh3_64_intdigest(one.after or b""))
                    case _:
                        self._add(one)
            for group in moved.groups():
                self._add_moved(group)
        return found

    def _add(self, one: MatchedLine) -> None:
        if one.change is Change.CHANGED:
            self._found.changed += 1
        elif one.change is Change.NEW:
            self._found.new += 1
        else:
            self._found.gone += 1
        cause = self._cause_of(one)
        self._found.causes[cause] += 1
        if self._shown[one.change] < self._most:
            self._shown[one.change] += 1
            self._found.samples.append(self._sample(one))

    def _cause_of(self, one: MatchedLine) -> str:
        """Return the cause in words, for the count: without details of this record."""
        if (text := _OF_INPUT.get(one.of_input)) is not None:
            return text
        return f"{self._cause}{_became(one)}"

    def _sample(self, one: MatchedLine) -> ChangedLine:
        cause = _OF_INPUT.get(one.of_input) or f"{self._cause}{self._became_here(one)}"
        return ChangedLine(
            one.change.name.lower(),
            text_of_line(one.before),
            text_of_line(one.after),
            cause,
            0 if one.made_before is None else one.made_before.record + 1,
            0 if one.made_after is None else one.made_after.record + 1,
        )

    def _became_here(self, one: MatchedLine) -> str:
        """Return the outcome of the record in the other version, with reason or exception."""
        for version, made, when in zip(
            self._versions, (one.made_before, one.made_after), ("before", "now"), strict=True
        ):
            if made is not None and not made.lines:
                return f"; {when} it {self._fate(version, made)}"
        return ""

    @staticmethod
    def _fate(version: ResultVersion, made: Made) -> str:
        if made.outcome is None:
            row = find_error_row(version.folder, made.record) or {}
            return f"fails: {row.get('exception')}: {cut(str(row.get('message')))}"
        reasons = reasons_of(orjson.loads(made.outcome))
        return f"is dropped: {', '.join(reasons)}" if reasons else "is dropped"

    def _add_moved(self, group: EqualKeys) -> None:
        """Count the lines of records that have moved, or that one version has more often."""
        before, after = Counter(group.before), Counter(group.after)
        equal = (before & after).total()
        self._found.moved += equal
        left, right = before.total() - equal, after.total() - equal
        changed = min(left, right)
        self._found.changed += changed
        self._found.gone += left - changed
        self._found.new += right - changed
        for number, cause in (
            (changed, self._cause),
            (left - changed, _OF_INPUT[Change.GONE]),
            (right - changed, _OF_INPUT[Change.NEW]),
        ):
            if number:
                self._found.causes[cause] += number


def _became(one: MatchedLine) -> str:
    """Return the outcome of the record in the version without the line, in words."""
    made = one.made_after if one.change is Change.GONE else one.made_before
    if one.change is Change.CHANGED or made is None:
        return ""
    when = "now" if one.change is Change.GONE else "before"
    if made.outcome is None:
        return f"; {when} the record fails"
    return "" if made.lines else f"; {when} the record is dropped"
