"""Count the changes of lines between two versions of a result, with samples and their causes."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
import xxhash
from typing_extensions import override

from dagster_dataops.checkpoints.versions.version import ResultVersion
from dagster_dataops.pipelines.history.alignment import Change
from dagster_dataops.pipelines.history.matched_lines import LineChange
from dagster_dataops.pipelines.history.result_sides import Made, lines_of_result
from dagster_dataops.pipelines.history.spilled_groups import Group, SpilledGroups
from dagster_dataops.pipelines.tracing.record_map import find_error_row
from dagster_dataops.pipelines.tracing.trail import reasons_of

SAMPLES: Final = 5
_SHOWN: Final = (Change.CHANGED, Change.NEW, Change.GONE)
_LONGEST: Final = 200  # characters of a line in a text
_OF_INPUT: Final = {
    Change.CHANGED: "its input record has changed",
    Change.NEW: "its input record is new",
    Change.GONE: "its input record is gone",
}


@dataclass(frozen=True)
class ChangedLine:
    """A line that differs between two versions of a result.

    Attributes:
        change: ``changed``, ``new`` or ``gone``.
        before: The line of the first version; empty if there is none.
        after: That of the second one.
        cause: Why it differs, in words.
        input_before: The number of the input record that it was made of in the first version,
            from 1; 0 if it is not known.
        input_after: That in the second version.
    """

    change: str
    before: str
    after: str
    cause: str
    input_before: int = 0
    input_after: int = 0

    @override
    def __str__(self) -> str:
        record = self.input_after or self.input_before
        place = f"input record {record:,}" if record else "no input record is known"
        lines = [f"{self.change}, {place}: {self.cause}"]
        lines += [f"    - {_cut(self.before)}"] * bool(self.before)
        lines += [f"    + {_cut(self.after)}"] * bool(self.after)
        return "\n".join(lines)


@dataclass
class ChangedLines:
    """How many lines of a result differ between two versions.

    Attributes:
        same: The number of equal lines.
        moved: The number of equal lines whose input record is at another place among the others.
        new: The number of lines that only the second version has.
        gone: The number of lines that only the first version has.
        changed: The number of lines that were made of one input record and differ.
        causes: The number of lines that differ by their cause in words.
        samples: Some lines of each kind.
        by_content: Why lines were matched by their content; empty if they were matched by the
            input record that they were made of. Then a changed line counts as gone and as new.
    """

    same: int = 0
    moved: int = 0
    new: int = 0
    gone: int = 0
    changed: int = 0
    causes: Counter[str] = field(default_factory=Counter)
    samples: list[ChangedLine] = field(default_factory=list)
    by_content: str = ""

    @property
    def differing(self) -> int:
        """The number of lines that differ."""
        return self.new + self.gone + self.changed

    def to_json(self) -> dict[str, Any]:
        """Return the values that JSON can hold."""
        return {
            **{name: getattr(self, name) for name in ("same", "moved", "new", "gone", "changed")},
            "causes": dict(self.causes.most_common()),
            "samples": [vars(one) for one in self.samples],
            "by_content": self.by_content,
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

    def count(self, changes: Iterator[LineChange]) -> ChangedLines:
        """Return the numbers."""
        found = self._found
        with SpilledGroups() as moved:
            for one in changes:
                match one.change:
                    case Change.EQUAL:
                        found.same += one.count
                    case Change.MOVED_BEFORE:
                        moved.add(0, one.key, xxhash.xxh3_64_intdigest(one.before or b""))
                    case Change.MOVED_AFTER:
                        moved.add(1, one.key, xxhash.xxh3_64_intdigest(one.after or b""))
                    case _:
                        self._add(one)
            for group in moved.groups():
                self._add_moved(group)
        return found

    def _add(self, one: LineChange) -> None:
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

    def _cause_of(self, one: LineChange) -> str:
        """Return the cause in words, for the count: without what is of this record alone."""
        if (text := _OF_INPUT.get(one.of_input)) is not None:
            return text
        return f"{self._cause}{_became(one)}"

    def _sample(self, one: LineChange) -> ChangedLine:
        cause = _OF_INPUT.get(one.of_input) or f"{self._cause}{self._became_here(one)}"
        return ChangedLine(
            _word(one.change),
            _text(one.before),
            _text(one.after),
            cause,
            0 if one.made_before is None else one.made_before.record + 1,
            0 if one.made_after is None else one.made_after.record + 1,
        )

    def _became_here(self, one: LineChange) -> str:
        """Return what became of the record in the other version, with reason or exception."""
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
            return f"fails: {row.get('exception')}: {_cut(str(row.get('message')))}"
        reasons = reasons_of(orjson.loads(made.outcome))
        return f"is dropped: {', '.join(reasons)}" if reasons else "is dropped"

    def _add_moved(self, group: Group) -> None:
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


def counted_by_content(
    before: ResultVersion, after: ResultVersion, output: str, why: tuple[str, str], samples: int
) -> ChangedLines:
    """Return the numbers for lines that are matched by their content.

    Args:
        before: The first version.
        after: The second one.
        output: The name of the output.
        why: Why they are not matched by their input, and why lines differ, as far as is known.
        samples: How many lines of each kind are shown.
    """
    found = ChangedLines(by_content=why[0])
    places = before.results[output], after.results[output]
    left: tuple[list[int], list[int]] = [], []  # the first lines that have no partner
    with SpilledGroups() as lines:
        for side, place in enumerate(places):
            for number, line in enumerate(lines_of_result(place)):
                lines.add(side, xxhash.xxh3_64_intdigest(line), number)
        for group in lines.groups():
            equal = min(len(group.before), len(group.after))
            found.same += equal
            found.gone += len(group.before) - equal
            found.new += len(group.after) - equal
            for numbers, rest in zip(left, (group.before[equal:], group.after[equal:]), strict=True):
                numbers.extend(rest)
                if len(numbers) > 2 * samples:
                    numbers[:] = sorted(numbers)[:samples]
    if found.differing:
        found.causes[why[1]] = found.differing
    for side, (numbers, change) in enumerate(zip(left, (Change.GONE, Change.NEW), strict=True)):
        wanted = set(sorted(numbers)[:samples])
        for number, line in enumerate(lines_of_result(places[side])) if wanted else ():
            if number in wanted:
                texts = (_text(line), "") if change is Change.GONE else ("", _text(line))
                found.samples.append(ChangedLine(_word(change), *texts, why[1]))
            if number >= max(wanted):
                break
    return found


def _became(one: LineChange) -> str:
    """Return what the version without the line made of its record."""
    made = one.made_after if one.change is Change.GONE else one.made_before
    if one.change is Change.CHANGED or made is None:
        return ""
    when = "now" if one.change is Change.GONE else "before"
    if made.outcome is None:
        return f"; {when} the record fails"
    return "" if made.lines else f"; {when} the record is dropped"


def _word(change: Change) -> str:
    return change.name.lower()


def _text(line: bytes | None) -> str:
    return "" if line is None else line.decode(errors="replace")


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
