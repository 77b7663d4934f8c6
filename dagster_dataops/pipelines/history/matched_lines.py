"""Match the lines of two versions of a result by the input records that they were made of."""

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Final, NamedTuple

import xxhash

from dagster_dataops.checkpoints.versions.version import ResultVersion
from dagster_dataops.pipelines.history.alignment import Change, InputStep
from dagster_dataops.pipelines.history.input_steps import Steps, input_steps
from dagster_dataops.pipelines.history.result_sides import (
    Outcome,
    OutcomeBlock,
    ResultSide,
    why_not_by_record,
)

_AT_ONCE: Final = 1000  # records that are read at once
_LONGEST_GAP: Final = 1000  # records of a gap that wait for those of the other version
_CLOSEST: Final = 24  # records of a gap that are matched by what they have in common
_WORD: Final = re.compile(rb"\w+")
_EPSILON: Final = 0.01  # likeness of records that have nothing in common


class MatchedLine(NamedTuple):
    """The change of a line of a result, or of equal lines that follow one another.

    ``number`` counts equal lines. ``key`` is that of a line whose input record has moved, in
    both versions.
    """

    change: Change
    of_input: Change
    before: bytes | None = None
    after: bytes | None = None
    outcome_before: Outcome | None = None
    outcome_after: Outcome | None = None
    number: int = 1
    key: int = 0


def matched_lines(
    before: ResultVersion, after: ResultVersion, output: str
) -> Iterator[MatchedLine] | None:
    """Return the change of each line of an output, in the order of the input.

    Returns:
        The changes; ``None`` if the lines cannot be matched by their input.

    Raises:
        TraceError: A map from input records to lines is missing or damaged.
    """
    if any(why_not_by_record(version) for version in (before, after)):
        return None
    steps = input_steps(before, after, _steps_of_lines)
    if steps is None:
        return None
    sides = ResultSide(before, output), ResultSide(after, output)
    return _Matcher(*sides).changes(steps)


def _steps_of_lines(before: ResultVersion, after: ResultVersion, output: str) -> Steps | None:
    """Return the steps through the lines of a node, which are the records of the next one."""
    changes = matched_lines(before, after, output)
    return (
        None
        if changes is None
        else (InputStep(change.change, change.number, change.key) for change in changes)
    )


class _Matcher:
    """Reads two results along the steps through their inputs."""

    def __init__(self, before: ResultSide, after: ResultSide) -> None:
        self._before, self._after = before, after
        self._gap: tuple[list[Outcome], list[Outcome]] = [], []

    def changes(self, steps: Steps) -> Iterator[MatchedLine]:
        """Yield the change of each line."""
        for step in steps:
            match step.change:
                case Change.EQUAL | Change.CHANGED:
                    yield from self._closed_gap()
                    yield from self._both(step)
                case Change.GAP_BEFORE | Change.GAP_AFTER:
                    yield from self._in_gap(step)
                case Change.MOVED_BEFORE | Change.MOVED_AFTER:
                    yield from self._moved(step)
                case Change.GONE:
                    yield from self._alone(self._before, step)
                case Change.NEW:
                    yield from self._alone(self._after, step)
        yield from self._closed_gap()

    def _both(self, step: InputStep) -> Iterator[MatchedLine]:
        left = step.number
        while left:
            size = min(left, _AT_ONCE)
            before, after = self._before.take(size), self._after.take(size)
            if before.lines == after.lines and before.counts == after.counts:
                if before.lines:
                    yield MatchedLine(Change.EQUAL, step.change, number=len(before.lines))
            else:
                for line, other in zip(before.each(), after.each(), strict=True):
                    yield from _paired(line, other, step.change)
            left -= size

    def _alone(self, side: ResultSide, step: InputStep) -> Iterator[MatchedLine]:
        for outcome in _each(side, step.number):
            yield from _unpaired(outcome, step.change)

    def _moved(self, step: InputStep) -> Iterator[MatchedLine]:
        first = step.change is Change.MOVED_BEFORE
        (outcome,) = _each(self._before if first else self._after, 1)
        for number, line in enumerate(outcome.lines):
            key = xxhash.xxh3_64_intdigest(b"%d %d" % (step.key, number))
            if first:
                yield MatchedLine(
                    step.change, step.change, before=line, outcome_before=outcome, key=key
                )
            else:
                yield MatchedLine(
                    step.change, step.change, after=line, outcome_after=outcome, key=key
                )

    def _in_gap(self, step: InputStep) -> Iterator[MatchedLine]:
        first = step.change is Change.GAP_BEFORE
        self._gap[not first].extend(_each(self._before if first else self._after, step.number))
        old, new = self._gap
        while len(old) > _LONGEST_GAP and len(new) > _LONGEST_GAP:
            size = min(len(old), len(new))
            for line, other in zip(old[:size], new[:size], strict=True):
                yield from _paired(line, other, Change.CHANGED)
            del old[:size], new[:size]
        for waiting, change in ((old, Change.GONE), (new, Change.NEW)):
            while len(waiting) > 100 * _LONGEST_GAP:  # the other version has far fewer
                for outcome in waiting[:_LONGEST_GAP]:
                    yield from _unpaired(outcome, change)
                del waiting[:_LONGEST_GAP]

    def _closed_gap(self) -> Iterator[MatchedLine]:
        """Yield the changes of the lines of a gap, which ends here."""
        old, new = self._gap
        if not (old or new):
            return
        for line, other in _in_pairs(old, new):
            if line is not None and other is not None:
                yield from _paired(line, other, Change.CHANGED)
            elif line is not None:
                yield from _unpaired(line, Change.GONE)
            elif other is not None:
                yield from _unpaired(other, Change.NEW)
        self._gap = [], []


def _each(side: ResultSide, count: int) -> Iterator[Outcome]:
    while count:
        run: OutcomeBlock = side.take(min(count, _AT_ONCE))
        yield from run.each()
        count -= len(run.dispositions)


def _paired(before: Outcome, after: Outcome, of_input: Change) -> Iterator[MatchedLine]:
    """Yield the changes of the lines of a record that both versions have."""
    for old, new in zip_longest(before.lines, after.lines):
        if old is None:
            change = Change.NEW
        elif new is None:
            change = Change.GONE
        else:
            change = Change.EQUAL if old == new else Change.CHANGED
        yield MatchedLine(change, of_input, old, new, before, after)


def _unpaired(outcome: Outcome, change: Change) -> Iterator[MatchedLine]:
    """Yield the lines of a record that only one version has, each as new or as gone."""
    for line in outcome.lines:
        if change is Change.GONE:
            yield MatchedLine(change, change, line, None, outcome, None)
        else:
            yield MatchedLine(change, change, None, line, None, outcome)


def _in_pairs(
    old: Sequence[Outcome], new: Sequence[Outcome]
) -> Iterator[tuple[Outcome | None, Outcome | None]]:
    """Yield the records of a gap, those that belong together in pairs, in order.

    In a short gap these are the ones whose results have most words in common; otherwise the first
    ones, the second ones, and so on.
    """
    if len(old) == len(new) == 1 or max(len(old), len(new)) > _CLOSEST:
        yield from zip_longest(old, new)
        return
    likeness = _likeness(old, new)
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in reversed(range(len(old))):
        for j in reversed(range(len(new))):
            together = likeness[i][j] + best[i + 1][j + 1]
            best[i][j] = max(together, best[i + 1][j], best[i][j + 1])
    i = j = 0
    while i < len(old) and j < len(new):
        if best[i][j] == likeness[i][j] + best[i + 1][j + 1]:
            yield old[i], new[j]
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            yield old[i], None
            i += 1
        else:
            yield None, new[j]
            j += 1
    yield from ((line, None) for line in old[i:])
    yield from ((None, line) for line in new[j:])


def _likeness(old: Sequence[Outcome], new: Sequence[Outcome]) -> list[list[float]]:
    """Return for each pair of records the share of words that their lines have in common."""
    words = [
        [set(_WORD.findall(b" ".join(outcome.lines))) for outcome in outcomes]
        for outcomes in (old, new)
    ]
    return [
        [len(left & other) / max(1, len(left | other)) + _EPSILON for other in words[1]]
        for left in words[0]
    ]
