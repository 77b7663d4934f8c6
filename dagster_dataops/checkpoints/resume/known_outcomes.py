"""Journal the outcomes of earlier runs for the open records of a checkpoint, see `RecordCache`."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from dagster_dataops.checkpoints.checkpoint import Checkpoint, CheckpointContent
from dagster_dataops.checkpoints.journal.kept_journal import LEAST_BYTES, SEGMENT
from dagster_dataops.checkpoints.journal.segments import SegmentWriter, checksum
from dagster_dataops.checkpoints.journal.span import Span, SpansEntry
from dagster_dataops.checkpoints.journal.span_notes import SpanNotes
from dagster_dataops.checkpoints.journal.stored_outcomes import StoredOutcome
from dagster_dataops.checkpoints.resume.record_cache import RecordCache
from dagster_dataops.checkpoints.resume.start_decision import OutcomeSource
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.lines import Line, iterate_lines, opened_content
from dagster_dataops.foundation.quantities import counted

_BATCH_BYTES: Final = 256 << 10  # of the input; its known records are settled together,
_OUTPUT_BYTES: Final = 1 << 20  # unless their outputs are larger

_Item = TypeVar("_Item")


class _KnownOutcome(NamedTuple):
    """The known outcome of an input line, with its result lines."""

    line: Line
    source: int
    outcome: StoredOutcome
    output: bytes


def journal_known(
    checkpoint: Checkpoint,
    dataset: JsonlDataset,
    sources: Sequence[OutcomeSource],
    take: Callable[[Path], bool] = lambda _: False,
) -> str:
    """Journal the known outcomes of open records of a checkpoint.

    Args:
        checkpoint: The checkpoint.
        dataset: Its input.
        sources: Where outcomes are looked up, the latest first.
        take: As `Claim.take_result`. In a result that is used as a segment outcomes stay where they
            are, if 2 kB of them or more follow one another; others are written to a new segment.

    Returns:
        The line for the log; empty if no outcome is known.
    """
    before = records = checkpoint.table.records
    check_input = dataset.fingerprint is None
    used: set[int] = set()
    made_by: list[CheckpointContent] = []
    published = any(source.published for source in sources)
    taken = published and checkpoint.take_result(SEGMENT, take)
    with (
        opened_content(dataset.location) as (source, interval),
        closing(RecordCache(checkpoint.folder / "outcomes.db", sources)) as cache,
        closing(checkpoint.new_segment()) as segment,
    ):
        gaps = checkpoint.table.gaps(interval)
        unsettled = iterate_lines(source, gaps)
        for lines in _batches(unsettled, lambda line: len(line.text), _BATCH_BYTES):
            records += len(lines)
            found = (
                _KnownOutcome(line, *outcome)
                for line in lines
                if (outcome := cache.find(line.text))
            )
            for known in _batches(found, lambda one: len(one.output), _OUTPUT_BYTES):
                if not used.issuperset(one.source for one in known):
                    used.update(one.source for one in known)
                    made_by = [sources[number].content for number in sorted(used, reverse=True)]
                    checkpoint.use_outcomes_of(made_by)
                for stays, group in _groups(known, sources if taken else ()):
                    offset = group[0].outcome.offset if stays else _written(group, segment)
                    number = SEGMENT if stays else segment.number
                    checkpoint.journal(_entry(number, offset, group, check_input=check_input))
                if checkpoint.full:
                    checkpoint.sync()  # sends them
    if not used:
        return ""
    kept = checkpoint.table.records - before
    runs = " and ".join(dict.fromkeys(content.attempts[-1] for content in made_by))
    return (
        f"{kept:,} of {counted(records, 'records')} unchanged since run {runs}: "
        "their outcomes are kept"
    )


def _batches(
    items: Iterable[_Item], size_of: Callable[[_Item], int], most: int
) -> Iterator[list[_Item]]:
    batch, size = [], 0
    for item in items:
        batch.append(item)
        size += size_of(item)
        if size >= most:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _groups(
    known: Iterable[_KnownOutcome], sources: Sequence[OutcomeSource]
) -> Iterator[tuple[bool, list[_KnownOutcome]]]:
    """Yield outcomes, in order, in groups whose outputs follow one another.

    Args:
        known: The outcomes.
        sources: The sources; empty if all outcomes are written to a new segment.

    Yields:
        Whether they stay in the published result, and the outcomes.
    """
    to_write: list[_KnownOutcome] = []
    for stays, run in _runs(known, sources):
        if stays and sum(one.outcome.size for one in run) >= LEAST_BYTES:
            if to_write:
                yield False, to_write
            to_write = []
            yield True, run
        else:
            to_write += run
    if to_write:
        yield False, to_write


def _runs(
    known: Iterable[_KnownOutcome], sources: Sequence[OutcomeSource]
) -> Iterator[tuple[bool, list[_KnownOutcome]]]:
    """Yield outcomes in runs: outputs that follow one another in the result, and those between."""
    run: list[_KnownOutcome] = []
    run_stays, end = False, 0
    for one in known:
        outcome = one.outcome
        stays = bool(sources and sources[one.source].published and outcome.segment)
        if run and (stays != run_stays or (stays and outcome.offset != end)):
            yield run_stays, run
            run = []
        run.append(one)
        run_stays, end = stays, outcome.offset + outcome.size
    if run:
        yield run_stays, run


def _written(known: Iterable[_KnownOutcome], segment: SegmentWriter) -> int:
    """Append outputs to a segment; return the offset of the first one."""
    return segment.append(b"".join(one.output for one in known))


def _entry(
    segment: int, offset: int, known: Sequence[_KnownOutcome], *, check_input: bool
) -> SpansEntry:
    """Return the entry of outcomes whose output begins at ``offset`` of a segment."""
    spans = [_span(one.line, one.outcome, check_input=check_input) for one in known]
    digests = [one.outcome.digest for one in known]
    outcomes = [one.outcome for one in known]
    notes = [SpanNotes.unpack(one.notes)[0] if one.notes else None for one in outcomes]
    return SpansEntry.of(segment, offset, spans, digests, notes)


def _span(line: Line, outcome: StoredOutcome, *, check_input: bool) -> Span:
    return Span(
        start=line.start,
        length=line.end - line.start,
        records=1,
        emitted=outcome.emitted,
        dropped=not outcome.emitted,
        output_bytes=outcome.size,
        input_check=checksum(line.raw) if check_input else 0,
        output_check=outcome.check,
    )
