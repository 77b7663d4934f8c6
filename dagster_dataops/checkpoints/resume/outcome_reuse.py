"""Reuse outcomes: make a checkpoint from the results of records that earlier inputs held as well.

Often only a few records of an input have changed: a file grows every night, or an earlier operator
was corrected. The results of the other records, made with the same options and code, are looked up
by digests of their lines, in the published result and in unfinished runs. Their files become
segments of the new checkpoint, as links if possible. Checksums are checked when the result is
composed, as always.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Self

from dagster_dataops.checkpoints.checkpoint import CheckpointContent
from dagster_dataops.checkpoints.folder.manifest import published_manifest
from dagster_dataops.checkpoints.folder.run_fingerprint import RunFingerprint
from dagster_dataops.checkpoints.journal.journal_writer import JournalWriter
from dagster_dataops.checkpoints.journal.segments import checksum, segment_path
from dagster_dataops.checkpoints.journal.span import Span, columns_of
from dagster_dataops.checkpoints.journal.stored_outcomes import (
    StoredOutcome,
    line_digest,
    outcomes_in,
)
from dagster_dataops.checkpoints.resume.outcome_index import OutcomeIndex
from dagster_dataops.checkpoints.resume.result_segment import put_segment
from dagster_dataops.checkpoints.resume.resume_policy import ResumePolicy
from dagster_dataops.checkpoints.resume.seeded_checkpoint import new_folder
from dagster_dataops.checkpoints.resume.start_decision import (
    StartDecision,
    StartKind,
    StartRequest,
)
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.durable_files import draft_of, storage, sync_folder
from dagster_dataops.datasets.lines import Line, content_interval, iterate_lines
from dagster_dataops.datasets.writer import link_or_copy

_BATCH: Final = 4096  # spans of one frame


@dataclass(frozen=True)
class _Source:
    """A checkpoint or published result with outcomes.

    Attributes:
        content: The content of its journal.
        journal: The file of its journal.
        put: Put a segment at a path, as a link if possible.
    """

    content: CheckpointContent
    journal: Path
    put: Callable[[int, Path], None]


def reuse_outcomes(request: StartRequest, dataset: JsonlDataset) -> StartDecision | None:
    """Make a checkpoint of the known outcomes; return ``None`` if no record of the input is known.

    Args:
        request: Of the start. None of its checkpoints is of this run's input.
        dataset: The input.
    """
    folder, fingerprint = request.folder, request.fingerprint
    sources = list(_sources(request))
    if not sources:
        return None
    new = new_folder(folder)
    try:
        with OutcomeIndex(new / "outcomes.db") as known, _Seed(new, sources) as seed:
            for number, source in enumerate(sources):
                known.add(number, outcomes_in(source.journal))
            records = _look_up(known, seed, dataset)
            if seed.records:
                seed.finish(fingerprint)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    if not seed.records:
        shutil.rmtree(new, ignore_errors=True)
        return None
    content = CheckpointContent.read(new)
    runs = " and ".join(content.attempts)
    note = f"{seed.records:,} of {records:,} records are as they were for run {runs}"
    note += ": what became of them is kept"
    return StartDecision(StartKind.REUSE_OUTCOMES, content, note)


def _look_up(known: OutcomeIndex, seed: "_Seed", dataset: JsonlDataset) -> int:
    """Add the known outcomes of an input to a checkpoint; return the number of its records."""
    records = 0
    check_input = dataset.fingerprint is None
    with dataset.path.open("rb") as file:
        for line in iterate_lines(file.fileno(), [content_interval(dataset.path)]):
            records += 1
            found = known.find(line_digest(line.text))
            if found is not None:
                seed.add(*found, _span(line, found[1], check_input=check_input))
    return records


def _span(line: Line, outcome: StoredOutcome, *, check_input: bool) -> Span:
    return Span(
        start=line.start,
        length=line.end - line.start,
        records=1,
        emitted=outcome.emitted,
        dropped=not outcome.emitted,
        failed=0,
        output_bytes=outcome.size,
        error_bytes=0,
        input_check=checksum(line.raw) if check_input else 0,
        output_check=outcome.check,
    )


def _sources(request: StartRequest) -> Iterator[_Source]:
    """Yield the checkpoints that outcomes may be taken from, the latest first."""
    folder, fingerprint = request.folder, request.fingerprint
    across = request.policy is ResumePolicy.ACROSS_CODE
    accepted = {"input", "code"} if across else {"input"}

    def usable(content: CheckpointContent) -> bool:
        before = content.fingerprint
        if before is None or not content.digests:
            return False
        differing = [*before.differences(fingerprint), *fingerprint.differs_from(content.kept_from)]
        return set(differing) <= accepted

    for content in request.found:
        if usable(content):
            place = content.folder
            yield _Source(content, place / "journal", partial(_link_segment, place))
    manifest = published_manifest(folder)
    if manifest is not None and manifest.outcomes:
        content = CheckpointContent.read(folder.path, folder.kept.name)
        if usable(content) and content.result == manifest.fingerprint:
            yield _Source(content, folder.kept, lambda _, target: put_segment(folder, target))


def _link_segment(folder: Path, number: int, target: Path) -> None:
    link_or_copy(segment_path(folder, number), target)


class _Seed:
    """Writes the journal of the new checkpoint; `finish` puts it in place.

    Args:
        folder: Of the checkpoint.
        sources: Where the outcomes are from.

    Attributes:
        records: Number of records that the journal holds.
    """

    def __init__(self, folder: Path, sources: Sequence[_Source]) -> None:
        self.records = 0
        self._folder = folder
        self._sources = sources
        self._journal = JournalWriter(draft_of(folder / "journal"))
        self._segments: dict[tuple[int, int], int] = {}
        self._used: set[int] = set()  # numbers of sources that records were taken from
        self._place = (0, 0)  # segment and offset of the spans that are not written yet
        self._end = 0
        self._spans: list[Span] = []
        self._digests: list[bytes] = []

    def add(self, source: int, outcome: StoredOutcome, span: Span) -> None:
        """Add the next record of the input, whose outcome a source holds."""
        segment = self._segment(source, outcome.segment)
        follows = (segment, outcome.offset) == (self._place[0], self._end)
        if not follows or len(self._spans) >= _BATCH:
            self._write()
            self._place = (segment, outcome.offset)
        self._spans.append(span)
        self._digests.append(outcome.digest)
        self._end = outcome.offset + outcome.size
        self._used.add(source)
        self.records += 1

    def _segment(self, source: int, number: int) -> int:
        """Return the number of a source's segment here; link or copy the file at its first use."""
        known = self._segments.get((source, number))
        if known is None:
            known = self._segments[source, number] = len(self._segments) + 1
            self._sources[source].put(number, segment_path(self._folder, known))
        return known

    def _write(self) -> None:
        if self._spans:
            self._journal.spans(*self._place, columns_of(self._spans), self._digests)
            self._spans, self._digests = [], []

    def finish(self, fingerprint: RunFingerprint) -> None:
        """Write the attempts that made the outcomes, and put the journal in place."""
        self._write()
        used = [self._sources[number].content for number in sorted(self._used)]
        entry = {
            "fingerprint": fingerprint.to_json(),
            "kept_from": [run for content in used for run in content.kept_runs(fingerprint)],
        }
        for run in dict.fromkeys(content.attempts[-1] for content in reversed(used)):
            self._journal.attempt({"run": run, **entry})
        self._journal.sync()
        path = self._folder / "journal"
        with storage(path, "put it in place"):
            sync_folder(self._folder)  # a journal whose segments have no names would lose records
            draft_of(path).replace(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._journal.close()
