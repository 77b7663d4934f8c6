"""Process again only the records of a published result that fulfil a condition.

A new checkpoint holds the outcomes of all other records, byte by byte, also those of failed ones.
Its first segment is the published result. Only the chosen records are open in it. Its journal is
put in place last, and names the condition and the result: so an attempt that was killed is resumed
with the same choice.
"""

import shutil
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from itertools import accumulate, islice, pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from dagster_dataops.checkpoints.checkpoint import CheckpointContent
from dagster_dataops.checkpoints.folder.manifest import (
    Manifest,
    NodeFolder,
    published_manifest,
    unreadable,
)
from dagster_dataops.checkpoints.folder.run_fingerprint import CHANGEABLE, RunFingerprint, in_words
from dagster_dataops.checkpoints.journal.failed_record import FailedRecord
from dagster_dataops.checkpoints.journal.finished_span import FinishedSpan
from dagster_dataops.checkpoints.journal.journal_writer import JournalWriter
from dagster_dataops.checkpoints.journal.kept_journal import LEAST_BYTES, SEGMENT
from dagster_dataops.checkpoints.journal.segment_reader import SegmentReader
from dagster_dataops.checkpoints.journal.segments import (
    Segments,
    SegmentWriter,
    checksum,
)
from dagster_dataops.checkpoints.journal.span import ReopenedEntry, Span, SpansEntry
from dagster_dataops.checkpoints.journal.span_notes import SpanNotes
from dagster_dataops.checkpoints.resume.checkpoint_match import (
    changeable,
    differing_parts,
    without_torn,
)
from dagster_dataops.checkpoints.resume.merged_outputs import seed_folder
from dagster_dataops.checkpoints.resume.record_condition import (
    FACTS,
    INPUT,
    RESULT,
    Name,
    RecordCondition,
    RecordFacts,
)
from dagster_dataops.checkpoints.resume.resume_policy import ChosenRecords
from dagster_dataops.checkpoints.resume.start_decision import (
    StartDecision,
    StartKind,
    StartRequest,
    changed_since,
    resuming,
    start_afresh,
)
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.durable_files import storage, sync_folder
from dagster_dataops.datasets.lines import (
    Interval,
    Line,
    content_interval,
    iterate_lines,
    split_lines,
)
from dagster_dataops.datasets.published_files import JOURNAL
from dagster_dataops.errors import ConditionColumnError, RedoOutdatedError, RedoRefusedError
from dagster_dataops.foundation.places.opening import opened
from dagster_dataops.foundation.places.range_source import (
    Readable,
    close_readable,
    read_range,
    size_of,
)
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.operators.options.signature import nearest
from dagster_dataops.operators.outcomes.dispositions import USUAL, disposition, reasons_in
from dagster_dataops.records import decode

_SPAN_LINES: Final = 1000  # of a result in which every record became one line
_BATCH_SPANS: Final = 1024
_SAMPLED: Final = 1000  # records whose columns are known by name
_MOST_NAMED: Final = 20
_PLACE_FIELDS: Final = ("index", "path", "line")  # of a row of the error file


def redo_chosen(request: StartRequest, chosen: ChosenRecords) -> StartDecision:
    """Decide how to process again the records that fulfil a condition.

    An interrupted attempt with the same condition and result is resumed. Code and options may have
    changed. If no record fulfils the condition, the published result is that of the run.

    Raises:
        ConditionSyntaxError: The condition is malformed.
        ConditionColumnError: No record has a column that it names.
        RedoOutdatedError: The published result was made from another input.
        RedoRefusedError: There is no published result, or its records cannot be redone one by one.
    """
    condition = RecordCondition.parse(chosen.records)
    dataset = request.records
    if dataset is None:
        reason = request.kind.as_a_whole or "its records are not processed one by one"
        raise RedoRefusedError(str(request.folder.result), reason)
    result = _Result.of(request, dataset)
    redo = {
        "condition": str(condition),
        "run": result.manifest.run,
        "result": result.manifest.fingerprint,
    }
    for content in request.contents:
        same = content.redo == redo and content.table.records
        if same and changeable(differing_parts(content, request.fingerprint, dataset)):
            note = f"{resuming(content, request)}; the others fulfil {chosen.records}"
            return StartDecision(StartKind.RESUME, without_torn(content, dataset), note)
    content, number = _Seed(request, result, dataset, condition, redo, chosen.records).make()
    if not number:
        note = (
            f"no record fulfils {chosen.records}: the result of run {result.manifest.run} is kept"
        )
        return StartDecision(
            StartKind.DONE, start_afresh(request).content, note, published=result.manifest
        )
    note = (
        f"processing {counted(number, 'records')} of run {result.manifest.run} again, which "
        f"fulfil {chosen.records}; the outcomes of the other {content.table.records:,} are kept"
    )
    changed = changed_since(content, request.fingerprint)
    note += f", as asked, although {changed}" if changed else ""
    return StartDecision(StartKind.RESUME, without_torn(content, dataset), note)


@dataclass(frozen=True)
class _Result:
    """A published result whose records can be processed again one by one."""

    folder: NodeFolder
    manifest: Manifest
    content: CheckpointContent  # its map; without spans if each record became one line

    @classmethod
    def of(cls, request: StartRequest, dataset: JsonlDataset) -> "_Result":
        """Return the result of a node."""
        folder = request.folder.as_published()
        place = str(folder.path if folder.outputs else folder.result)
        if not any(node.place.find(node.result) for node in (folder, *folder.outputs.values())):
            raise RedoRefusedError(place, "there is no published result")
        if request.kind.as_a_whole:
            raise RedoRefusedError(place, request.kind.as_a_whole)
        manifest = None
        if not unreadable(folder.located(folder.manifest)):
            manifest = published_manifest(folder)
        if manifest is None:
            reason = "it was edited since, or another version of this package published it"
            raise RedoRefusedError(place, reason)
        if not manifest.traced:
            reason = (
                "it was made with _trace=False or by a version that wrote no traces, so which "
                "record became which line is not known"
            )
            raise RedoRefusedError(place, reason)
        result = cls(folder, manifest, _kept(folder, manifest, place))
        result._check_same(request.fingerprint, dataset, place)
        return result

    def _check_same(self, present: RunFingerprint, dataset: JsonlDataset, place: str) -> None:
        differing = differing_parts(
            self.content, present, dataset if self.manifest.mapped else None
        )
        if changeable(differing):
            return
        changed = in_words([part for part in differing or [] if part not in CHANGEABLE])
        run = self.manifest.run
        reason = f"{changed or 'its origin'} is not that of run {run}, which published it"
        outdated = changeable([part for part in differing or ["format"] if part != "input"])
        raise (RedoOutdatedError if outdated else RedoRefusedError)(place, reason)


def _kept(folder: NodeFolder, manifest: Manifest, place: str) -> CheckpointContent:
    """Return the map of a result from its records to its lines."""
    if not manifest.mapped:
        made_from = RunFingerprint.from_json(manifest.made_from)
        content = CheckpointContent.read(folder.path, "none")
        return replace(
            content,
            fingerprint=made_from,
            attempts=list(manifest.attempts),
            kept_from=list(manifest.kept_from),
        )
    content = CheckpointContent.read(folder.path, folder.kept.name)
    settled = manifest.rows_in - manifest.failed
    if content.result != manifest.fingerprint or content.table.records != settled:
        reason = (
            f"{folder.kept}, the map from records to result lines, is not the file that run "
            f"{manifest.run} wrote"
        )
        raise RedoRefusedError(place, reason)
    return content


class _Outcome(NamedTuple):
    """A record and its outcome."""

    line: Line
    lines: Sequence[bytes]
    fields: Mapping[str, Any]
    error: Mapping[str, Any] | None = None

    @property
    def dropped(self) -> bool:
        """Whether the record was dropped."""
        return not self.lines and "merged" not in self.fields and self.error is None


@dataclass
class _Columns:
    """The columns of a condition that no record had so far.

    Attributes:
        missing: These columns.
        known: Names of columns of the first records, for the error.
        looked: The number of records whose names were taken.
    """

    missing: list[Name]
    known: dict[str, None] = field(default_factory=dict)
    looked: int = 0

    def look(self, facts: RecordFacts) -> None:
        """Look for the columns in a record and its result."""
        if not self.missing:
            return
        if self.looked < _SAMPLED:
            self.looked += 1
            self.known.update(dict.fromkeys(_names_in(facts.record)))
            names = [name for line in facts.lines for name in _names_in(line)]
            self.known.update({f"{RESULT}.{name}": None for name in names})
        self.missing = [name for name in self.missing if not name.present(facts)]


class _Seed:
    """Makes the checkpoint in which the chosen records are open."""

    def __init__(
        self,
        request: StartRequest,
        result: _Result,
        dataset: JsonlDataset,
        condition: RecordCondition,
        redo: dict[str, str],
        text: str,
    ) -> None:
        self._request = request
        self._result = result
        self._dataset = dataset
        self._condition = condition
        self._redo = redo
        self._text = text
        self._place = str(result.folder.path)
        self._columns = _Columns(condition.columns)
        self._reads_input = condition.reads(INPUT)
        self._reads_result = condition.reads(RESULT)
        self._parts = [str(row["name"]) for row in result.manifest.funnel]
        self._chosen = 0

    def make(self) -> tuple[CheckpointContent, int]:
        """Return the content of the checkpoint, and the number of records that are open in it.

        If there are none, the checkpoint is deleted.
        """
        place = seed_folder(self._result.folder, self._request.take_result)
        try:
            self._fill(place)
            self._check_columns()
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            raise
        if not self._chosen:
            shutil.rmtree(place, ignore_errors=True)
            return self._result.content, 0
        with storage(place, "sync"):
            sync_folder(place)  # after a power loss the journal must not name a missing segment
            (place / "journal.draft").replace(place / JOURNAL)
            sync_folder(place)
        content = CheckpointContent.read(place)
        return replace(content, segments_of=self._request.segments_of), self._chosen

    def _fill(self, place: Path) -> None:
        """Write segments and the draft of the journal."""
        folder, draft = self._result.folder, place / "journal.draft"
        if self._result.manifest.mapped:
            with storage(folder.kept, "read the file"):
                draft.write_bytes(folder.kept.read_bytes())
        content = replace(self._result.content, redo=self._redo, retries=False, result="")
        with ExitStack() as stack:
            source = stack.enter_context(opened(self._dataset.location))
            segments = self._request.segments_of(place)
            results = SegmentReader(segments)
            stack.callback(results.close)
            segment = stack.enter_context(closing(SegmentWriter(place, SEGMENT + 1)))
            journal = stack.enter_context(closing(JournalWriter(draft)))
            counts = {} if self._result.manifest.mapped else self._result.manifest.counts
            numbers = {key: n for key, n in counts.items() if isinstance(n, (int, float))}
            journal.attempt({**content.attempt_entry(), "counts": numbers})
            batch = _Batch(journal, segment)
            for span in self._spans(source, results, segments):
                self._keep_unchosen(span, source, batch)
            batch.write()
            journal.sync([segment.path])

    def _spans(
        self, source: Readable, results: SegmentReader, segments: Segments
    ) -> "Iterator[_ResultSpan]":
        """Yield the spans of the result and its failed records, in input order."""
        table = self._result.content.table
        whole = content_interval(self._dataset.location)
        if not self._result.manifest.mapped:
            yield from self._usual(source, whole, segments)
            return
        failed = self._failed_rows()
        index, at = 0, whole.start
        for span, _, offset in table.ordered():
            index += yield from self._open(source, Interval(at, span.start), failed, index)
            at = span.start + span.length
            notes = table.notes.get(span.start)
            output = results.read(SEGMENT, offset, span.output_bytes)
            if checksum(output) != span.output_check:
                self._refuse("the result does not match the checksums of its map")
            lines = list(iterate_lines(source, [Interval(span.start, at)]))
            dispositions = self._dispositions(span, notes)
            yield _ResultSpan(span, lines, dispositions, split_lines(output), notes, at=offset)
            index += span.records
        yield from self._open(source, Interval(at, whole.end), failed, index)
        if next(failed, None) is not None:
            self._refuse("its error file has more records than failed")

    def _open(
        self, source: Readable, gap: Interval, failed: Iterator[dict[str, Any]], index: int
    ) -> "Generator[_ResultSpan, None, int]":
        """Yield the failed records between two spans; return how many there are."""
        number = 0
        for line in iterate_lines(source, [gap]) if gap.start < gap.end else ():
            row = next(failed, None)
            if row is None or row.get("index") != index + number:
                self._refuse("its error file does not have all failed records")
            span = Span(line.start, line.end - line.start, 1, 0, failed=1)
            yield _ResultSpan(span, [line], [USUAL], [], None, row)
            number += 1
        return number

    def _usual(
        self, source: Readable, whole: Interval, segments: Segments
    ) -> "Iterator[_ResultSpan]":
        """Yield spans of a result in which every record became one line."""
        inputs = iterate_lines(source, [whole])
        result = segments.open(SEGMENT)
        if result is None:
            raise RedoRefusedError(self._place, "it is missing")
        with ExitStack() as stack:
            stack.callback(close_readable, result)
            outputs = iterate_lines(result, [Interval(0, size_of(result))])
            while batch := list(islice(inputs, _SPAN_LINES)):
                output = list(islice(outputs, len(batch)))
                if len(output) != len(batch):
                    self._refuse("it has fewer lines than its input")
                start, end = batch[0].start, batch[-1].end
                first, size = output[0].start, output[-1].end - output[0].start
                span = Span(start, end - start, len(batch), len(batch), output_bytes=size)
                lines = [line.raw for line in output]
                yield _ResultSpan(span, batch, [USUAL] * len(batch), lines, None, at=first)

    def _dispositions(self, span: Span, notes: SpanNotes | None) -> list[bytes]:
        if notes is None or not notes.table:
            if span.emitted != span.records:
                self._refuse("its map does not tell which record became how many lines")
            return [USUAL] * span.records
        return list(map((USUAL, *notes.table).__getitem__, notes.codes))

    def _failed_rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows of the error file; they have the order of the input."""
        errors = self._result.folder.errors
        if not self._result.manifest.failed:
            return
        if not errors.exists():
            self._refuse(f"{errors} is missing")
        with storage(errors, "read the failed records"), errors.open("rb") as file:
            for line in file:
                try:
                    row = decode(line)
                except ValueError as error:
                    reason = f"{errors} has a line that is no record: {error}"
                    raise RedoRefusedError(self._place, reason) from error
                yield row

    def _keep_unchosen(self, entry: "_ResultSpan", source: Readable, batch: "_Batch") -> None:
        """Journal the outcomes of the records of a span that are not chosen."""
        outcomes = list(entry.outcomes(self._refuse))
        again = self._again(outcomes)
        self._chosen += sum(again)
        if entry.row is not None:
            if not again[0]:
                failed = _failed_span(outcomes[0], self._source(source), self._parts)
                batch.add([(None, failed)])
        elif not self._result.manifest.mapped or any(again):
            replaced = entry.span.start if self._result.manifest.mapped else None
            batch.add(_stretches(entry, outcomes, again, self._source(source)), replaced)

    def _source(self, source: Readable) -> Readable | None:
        """Return the source if spans need a checksum of their input."""
        return source if self._dataset.fingerprint is None else None

    def _again(self, outcomes: "Sequence[_Outcome]") -> list[bool]:
        """Return which records are chosen: of a batch that became lines together, all or none."""
        again = [self._is_chosen(outcome) for outcome in outcomes]
        first = 0
        for at in range(1, len(outcomes) + 1):
            if at < len(outcomes) and "merged" in outcomes[at].fields:
                continue
            again[first:at] = [any(again[first:at])] * (at - first)
            first = at
        return again

    def _is_chosen(self, outcome: _Outcome) -> bool:
        needs = self._reads_input or bool(self._columns.missing)
        reasons = [reason for reason, _ in reasons_in(outcome.fields)]
        facts = RecordFacts(
            _decoded(outcome.line.text) if needs else {},
            [_decoded(line) for line in outcome.lines] if self._reads_result else (),
            reasons or ([""] if outcome.dropped else []),
            outcome.error,
        )
        self._columns.look(facts)
        return self._condition.holds(facts)

    def _check_columns(self) -> None:
        """Check that at least one record has each column of the condition."""
        manifest = self._result.manifest
        for name in self._columns.missing:
            if not (manifest.rows_out if name.side == RESULT else manifest.rows_in):
                continue
            known = list(self._columns.known)
            column = ".".join([*([RESULT] if name.side == RESULT else []), *name.path])
            near = nearest(column, [*known, *FACTS])
            names = ", ".join(known[:_MOST_NAMED]) or "no column"
            hint = f"Did you mean {near!r}? " if near else ""
            raise ConditionColumnError(
                self._text, repr(column), self._place, f"{hint}They have {names}"
            )

    def _refuse(self, reason: str) -> Any:
        raise RedoRefusedError(self._place, reason)


class _ResultSpan(NamedTuple):
    """A span of the published result, or one failed record.

    Attributes:
        span: The span.
        lines: Of the input.
        dispositions: Of each record.
        output: The lines of the result.
        notes: Of the span.
        row: Of the error file, if it is a failed record.
        at: Where the lines begin in the result.
    """

    span: Span
    lines: list[Line]
    dispositions: list[bytes]
    output: list[bytes]
    notes: SpanNotes | None
    row: dict[str, Any] | None = None
    at: int = 0

    def outcomes(self, refuse: Callable[[str], Any]) -> Iterator[_Outcome]:
        """Yield the outcome of each record."""
        if self.row is not None:
            yield _Outcome(self.lines[0], (), {}, self.row)
            return
        fields = [orjson.loads(disposition) for disposition in self.dispositions]
        ends = list(accumulate((int(entry.get("emitted", 1)) for entry in fields), initial=0))
        if len(self.lines) != len(fields) or ends[-1] != len(self.output):
            refuse("its map does not match its lines")
        for line, entry, (first, end) in zip(self.lines, fields, pairwise(ends), strict=True):
            yield _Outcome(line, self.output[first:end], entry)


class _SpanRun(NamedTuple):
    """Spans whose outputs follow one another in a segment, from an offset on."""

    segment: int
    offset: int
    spans: list[Span]
    notes: list[SpanNotes | None]


@dataclass
class _Batch:
    """Spans that are not in the journal yet.

    Attributes:
        journal: The journal.
        segment: For outputs that the published result does not have, and for short ones.
        starts: Of spans of the map that are replaced by these spans, or by later ones.
        runs: The spans.
        size: Their number, and that of replaced ones.
        end: The segment of the last span, and where its output ends.
    """

    journal: JournalWriter
    segment: SegmentWriter
    starts: list[int] = field(default_factory=list)
    runs: list[_SpanRun] = field(default_factory=list)
    size: int = 0
    end: tuple[int, int] | None = None

    def add(
        self, parts: Iterable[tuple[int | None, FinishedSpan]], replaced: int | None = None
    ) -> None:
        """Add spans of records that are not chosen.

        Args:
            parts: Each with the place of its output in the published result; ``None`` for none.
            replaced: The start of the span of the map that they replace, if any.
        """
        if replaced is not None:
            self.starts.append(replaced)
            self.size += 1
        for at, (span, output, errors, notes) in parts:
            if at is None or span.output_bytes < LEAST_BYTES:
                place = self.segment.number, self.segment.append(output, errors)
            else:
                place = SEGMENT, at
            if self.end != place:
                self.runs.append(_SpanRun(*place, [], []))
            self.runs[-1].spans.append(span)
            self.runs[-1].notes.append(notes)
            self.end = place[0], place[1] + span.output_bytes + span.error_bytes
            self.size += 1
        if self.size >= _BATCH_SPANS:
            self.write()

    def write(self) -> None:
        """Write the spans to the journal."""
        if self.starts:
            self.journal.reopened(ReopenedEntry(self.starts, retries=False), None)
        for run in self.runs:
            self.journal.spans(SpansEntry.of(run.segment, run.offset, run.spans, notes=run.notes))
        self.starts, self.runs, self.size, self.end = [], [], 0, None


def _stretches(
    entry: _ResultSpan, outcomes: Sequence[_Outcome], again: Sequence[bool], source: Readable | None
) -> Iterator[tuple[int, FinishedSpan]]:
    """Yield the records of a span between the chosen ones, with the places of their outputs."""
    first, place = 0, entry.at
    for at in range(len(outcomes) + 1):
        if at < len(outcomes) and not again[at]:
            continue
        if first < at:
            part = outcomes[first:at]
            start, end = part[0].line.start, part[-1].line.end
            lines = [line for outcome in part for line in outcome.lines]
            finished = FinishedSpan.of(
                start,
                end - start,
                records=len(part),
                emitted=len(lines),
                dropped=sum(outcome.dropped for outcome in part),
                failed=0,
                output=b"".join(lines),
                errors=b"",
                source=None if source is None else read_range(source, start, end - start),
                notes=entry.notes.part(first, at) if entry.notes else None,
            )
            yield place, finished
            place += finished.span.output_bytes
        place += sum(map(len, outcomes[at].lines)) if at < len(outcomes) else 0
        first = at + 1


def _failed_span(outcome: _Outcome, source: Readable | None, parts: Sequence[str]) -> FinishedSpan:
    """Return a failed record as it was, as one span."""
    line = outcome.line
    length = line.end - line.start
    row = {key: value for key, value in (outcome.error or {}).items() if key not in _PLACE_FIELDS}
    return FinishedSpan.of(
        line.start,
        length,
        records=1,
        emitted=0,
        dropped=0,
        failed=1,
        output=b"",
        errors=FailedRecord(line.start, len(line.text), 0, 0, 0, row).line(),
        source=None if source is None else read_range(source, line.start, length),
        notes=_notes_of_failure(row.get("part"), parts),
    )


def _notes_of_failure(part: object, parts: Sequence[str]) -> SpanNotes | None:
    """Return the notes of a record that failed in a part; those before count as called once."""
    if part not in parts:
        return None
    index = parts.index(str(part))
    return SpanNotes.of(1, [(0, disposition(entered=[1] * (index + 1), failed=index))], {})


def _names_in(record: Mapping[str, Any]) -> list[str]:
    """Return the names of the columns of a record, and of the values in them."""
    inner = [
        f"{name}.{key}" for name, item in record.items() if isinstance(item, dict) for key in item
    ]
    return [*record, *inner]


def _decoded(line: bytes) -> Mapping[str, Any]:
    """Return the record in a line; an empty one if the line is no record."""
    try:
        return decode(line)
    except ValueError:
        return {}
