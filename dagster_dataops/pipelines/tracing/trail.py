"""Trail: the values that `trace` returns, and their texts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from dagster_dataops.datasets.published_files import node_of
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.parts import NotebookHtml
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.operators.outcomes.dispositions import reasons_in
from dagster_dataops.pipelines.tracing.crude_origins import CrudeFile

_SHOWN_CHARACTERS: Final = 160
_SHOWN_LINES: Final = 5
_SHOWN_FILES: Final = 50


@dataclass(frozen=True)
class Place:
    """A line of a file.

    Attributes:
        path: The file.
        line: Number of the line, counted from 1. If the file is gone, that of the record.
        text: The line; ``None`` if the file is gone.
        output: Name of the output, if the line belongs to a node with several results.
    """

    path: str
    line: int
    text: str | None = None
    output: str = ""

    @override
    def __str__(self) -> str:
        return f"{self.path}, line {self.line}"


@dataclass(frozen=True)
class Step:
    """Output of a node for a record, or for the records of a batch or a row.

    Attributes:
        node: Name of the node.
        operator: Qualified name of its operator.
        given: The records that went in.
        made: The lines of its results that came out, the first thousand.
        outcome: ``kept`` (one line), ``split`` (several), ``dropped``, ``failed`` or ``merged``
            (the lines were made of several records).
        reasons: Why records were dropped, with the number of records; in a chain with the part.
        part: The part of a chain that failed.
        entered: Of a chain the number of records that entered each part, up to the last one
            reached; empty if it was one each.
        error: The row of the error file, if the record failed.
        left_out: Number of lines that came out and are not in ``made``.
    """

    node: str
    operator: str
    given: tuple[Place, ...]
    made: tuple[Place, ...]
    outcome: str
    reasons: Mapping[str, int] = field(default_factory=dict)
    part: str = ""
    entered: tuple[tuple[str, int], ...] = ()
    error: Mapping[str, Any] | None = None
    left_out: int = 0

    @override
    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self, followed: Iterable[Place] = ()) -> Iterator[str]:
        """Yield the lines of the text; it shows ``followed`` places even if many came out."""
        yield f"{self.node} ({self.operator}): {_numbers(self.given)} -> {self._became()}"
        if self.entered:
            parts = ", ".join(f"{part} {number}" for part, number in self.entered)
            yield f"    records that entered the parts: {parts}"
        if self.error is not None:
            yield f"    {self.error.get('exception')}: {_cut(str(self.error.get('message')))}"
        chosen = set(followed)
        shown = [place for place in self.made if place in chosen] or list(self.made)
        for place in shown[:_SHOWN_LINES]:
            label = f"{place.output} {place.line}".lstrip()
            yield f"    {label}: {_cut(place.text)}"
        if len(shown) > _SHOWN_LINES:
            yield f"    and {len(shown) - _SHOWN_LINES:,} more"

    def _became(self) -> str:
        if self.outcome == "failed":
            return f"failed in the part {self.part}" if self.part else "failed"
        if self.outcome == "dropped":
            return f"dropped{self._why()}"
        text = _numbers(self.made)
        if self.left_out:
            text = f"{text} and {self.left_out:,} more"
        if self.outcome == "merged":
            text = f"{text} made of {counted(len(self.given), 'records')}"
        return f"{text}{self._why(', dropped on the way')}"

    def _why(self, before: str = "") -> str:
        named = [
            f"{reason} ({number:,} records)" if number > 1 else reason
            for reason, number in self.reasons.items()
            if reason
        ]
        return f"{before}: {', '.join(named)}" if named else ""


@dataclass(frozen=True)
class TrailEnd:
    """An end of a trail at a node whose records cannot be followed.

    Attributes:
        node: Name of the node.
        operator: Qualified name of its operator.
        place: The last known line.
        reason: The reason.
    """

    node: str
    operator: str
    place: Place
    reason: str

    @override
    def __str__(self) -> str:
        return f"{self.node} ({self.operator}): the trail of {self.place} ends here: {self.reason}"


@dataclass(frozen=True)
class Trace:
    """The way of a record from the sources to a result.

    Attributes:
        sources: The source lines.
        steps: What each node made of the record, and of the records made of it, in the order of
            the nodes.
        results: The lines of the result that were traced, or that the source line became.
        ends: Where the trail ends on the way.
        files: The files of crude samples and of auxiliary stores that the record was made of, with
            their bytes in the shards.
    """

    sources: tuple[Place, ...]
    steps: tuple[Step, ...]
    results: tuple[Place, ...]
    ends: tuple[TrailEnd, ...] = ()
    files: tuple[CrudeFile, ...] = ()

    _repr_html_ = NotebookHtml()

    @override
    def __str__(self) -> str:
        lines = []
        for place in self.sources[:_SHOWN_LINES]:
            lines += [str(place), f"    {_cut(place.text)}"]
        if len(self.sources) > _SHOWN_LINES:
            lines.append(f"and {len(self.sources) - _SHOWN_LINES:,} more source lines")
        if self.files:
            lines += ["files", *(f"    {file}" for file in self.files[:_SHOWN_FILES])]
        if len(self.files) > _SHOWN_FILES:
            lines.append(f"    and {len(self.files) - _SHOWN_FILES:,} more")
        followed = {*self.results, *(place for step in self.steps for place in step.given)}
        for step in self.steps:
            lines += step.lines(followed)
        lines += map(str, self.ends)
        if not self.results:
            ended = "is not known from there on" if self.ends else "has no line in the result"
            lines.append(f"The record {ended}.")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Return the trace as values that JSON can hold."""
        return asdict(self)


def outcome_of(fields: Mapping[str, Any], records: int, lines: int) -> str:
    """Return the outcome of records, as `Step.outcome`, from their disposition."""
    if "failed" in fields:
        return "failed"
    if not lines:
        return "dropped"
    if records > 1:
        return "merged"
    return "kept" if lines == 1 else "split"


def reasons_of(fields: Mapping[str, Any]) -> dict[str, int]:
    """Return the reasons of a disposition with their numbers, without empty ones."""
    reasons: dict[str, int] = {}
    for reason, number in reasons_in(fields):
        if reason:
            reasons[reason] = reasons.get(reason, 0) + number
    return reasons


def _numbers(places: Sequence[Place]) -> str:
    """Return the numbers of lines, grouped by output or file if there are several of these."""
    groups: dict[tuple[str, str], list[int]] = {}
    for place in places:
        groups.setdefault((place.path, place.output), []).append(place.line)
    texts = []
    for (path, output), numbers in groups.items():
        text = f"{'line' if len(numbers) == 1 else 'lines'} {_ranges(numbers)}"
        where = f"{output} " if output else ""
        short = node_of(path.rpartition("/")[2])
        texts.append(f"{text} of {short}" if len(groups) > 1 and not output else f"{where}{text}")
    return " and ".join(texts)


def _ranges(numbers: list[int]) -> str:
    ordered = sorted(numbers)
    if len(ordered) > 2 and ordered[-1] - ordered[0] == len(ordered) - 1:
        return f"{ordered[0]} to {ordered[-1]}"
    shown = ", ".join(map(str, ordered[:_SHOWN_LINES]))
    return f"{shown} and {len(ordered) - _SHOWN_LINES:,} more" if len(ordered) > 5 else shown


def _cut(text: str | None) -> str:
    if text is None:
        return "(the file is gone)"
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"
