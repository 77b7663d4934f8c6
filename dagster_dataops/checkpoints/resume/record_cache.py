"""RecordCache: find outcomes of earlier runs by their records. `known_outcomes` journals them.

Often only a few records of an input have changed: a file grows every night, or an earlier operator
was corrected. The outcomes of the other records, made with the same options and code, are found by
digests of their lines, in the published result and in unfinished runs. They are settled before any
record is processed. So they are no calls of the operator: they reset no count of failures, and
change no estimate of time. `Checkpoint.journal` remembers new outcomes.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dagster_dataops.checkpoints.checkpoint import CheckpointContent
from dagster_dataops.checkpoints.folder.manifest import published_manifest
from dagster_dataops.checkpoints.journal.segment_reader import SegmentReader
from dagster_dataops.checkpoints.journal.segments import OnlySegment, checksum
from dagster_dataops.checkpoints.journal.span_notes import SpanNotes
from dagster_dataops.checkpoints.journal.stored_outcomes import (
    StoredOutcome,
    change_in,
    line_digest,
    outcomes_in,
)
from dagster_dataops.checkpoints.resume.merged_outputs import put_result
from dagster_dataops.checkpoints.resume.resume_policy import ResumePolicy
from dagster_dataops.checkpoints.resume.start_decision import OutcomeSource, StartRequest
from dagster_dataops.datasets.published_files import JOURNAL
from dagster_dataops.errors import StorageError
from dagster_dataops.records import decode

if TYPE_CHECKING:
    from dagster_dataops.operators.outcomes.record_change import ReadRule

_SETTINGS: Final = {"journal_mode": "OFF", "synchronous": "OFF"}  # not read after a crash
_COLUMNS: Final = "source, segment, place, size, emitted, checksum, notes"


class RecordCache:
    """The outcomes of records in several sources; the index of their digests is on disk.

    Args:
        path: The file of the index; replaced, and deleted by `close`.
        sources: Where the outcomes are. The first source with a record is used.
    """

    def __init__(self, path: Path, sources: Sequence[OutcomeSource]) -> None:
        self._path = path
        self._readers = [SegmentReader(source.segments) for source in sources]
        self._rules: dict[ReadRule, None] = {}
        with self._storage("create the index of outcomes"):
            path.unlink(missing_ok=True)
            self._database = sqlite3.connect(path, isolation_level=None)
        try:
            with self._storage("write the index of outcomes"):
                self._fill([source.journal for source in sources])
        except BaseException:
            self.close()
            raise

    def _fill(self, journals: Sequence[Path]) -> None:
        execute = self._database.execute
        for name, value in _SETTINGS.items():
            execute(f"PRAGMA {name} = {value}")
        execute(f"CREATE TABLE outcome (digest BLOB PRIMARY KEY, {_COLUMNS}) WITHOUT ROWID")
        for source, journal in enumerate(journals):
            rows = ((row.digest, source, *row[1:-1]) for row in self._ruled(journal))
            execute("BEGIN")
            insert = "INSERT OR IGNORE INTO outcome VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
            self._database.executemany(insert, rows)
            execute("COMMIT")

    def _ruled(self, journal: Path) -> Iterator[StoredOutcome]:
        """Yield the outcomes in a journal; note the rules of their digests."""
        for outcome in outcomes_in(journal):
            if outcome.change is not None:
                self._rules[outcome.change.rule] = None
            yield outcome

    def find(self, line: bytes) -> tuple[int, StoredOutcome, bytes] | None:
        """Find an input line.

        Returns:
            The index of a source, the outcome as it is for this line, and its result lines;
            ``None`` if the outcome is unknown or damaged on disk. The number of its segment is 0 if
            no segment has these lines.

        Raises:
            StorageError: The disk refuses.
        """
        return self._at(line_digest(line)) or self._by_columns(line)

    def _by_columns(self, line: bytes) -> tuple[int, StoredOutcome, bytes] | None:
        """Find the outcome of another record whose columns that count are the same."""
        try:
            record = decode(line) if self._rules else {}
        except ValueError:
            return None
        for rule in self._rules:
            known = self._at(rule.digest(record))
            if known is None:
                continue
            source, outcome, stored = known
            change = change_in(SpanNotes.unpack(outcome.notes)[0] if outcome.notes else None)
            if change is None or change.rule != rule or len(change.lines) != outcome.emitted:
                continue  # another outcome with this digest, or damaged notes
            output = change.apply(record, stored)
            made = outcome._replace(segment=0, size=len(output), check=checksum(output))
            return source, made, output
        return None

    def _at(self, digest: bytes) -> tuple[int, StoredOutcome, bytes] | None:
        """Return what is stored with a digest."""
        select = f"SELECT {_COLUMNS} FROM outcome WHERE digest = ?"  # noqa: S608 - of constants
        with self._storage("read the index of outcomes"):
            row = self._database.execute(select, (digest,)).fetchone()
        if row is None:
            return None
        source, outcome = row[0], StoredOutcome(digest, *row[1:])
        output = self._readers[source].read(outcome.segment, outcome.offset, outcome.size)
        return (source, outcome, output) if checksum(output) == outcome.check else None

    @contextmanager
    def _storage(self, action: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StorageError(str(self._path), action, str(error)) from error

    def close(self) -> None:
        """Close all files, and delete the index."""
        for reader in self._readers:
            reader.close()
        self._database.close()
        with suppress(OSError):  # it goes with the checkpoint
            self._path.unlink(missing_ok=True)


def outcome_sources(request: StartRequest, continued: CheckpointContent) -> Iterator[OutcomeSource]:
    """Yield where a run finds outcomes of earlier runs, the latest first.

    Args:
        request: Of the start.
        continued: The checkpoint that the run writes to. Its outcomes need no source.
    """
    folder, fingerprint = request.folder, request.fingerprint
    across = request.policy is ResumePolicy.ACROSS_CODE
    accepted = {"input", "code"} if across else {"input"}

    def usable(content: CheckpointContent) -> bool:
        before = content.fingerprint
        if before is None or not content.digests:
            return False
        differing = [*before.differences(fingerprint), *fingerprint.differs_from(content.kept_from)]
        return set(differing) <= accepted

    for content in request.contents:
        if content.folder != continued.folder and usable(content):
            yield OutcomeSource(content, content.folder / JOURNAL, content.segments)
    manifest = published_manifest(folder)
    if manifest is None or not manifest.outcomes or continued.result == manifest.fingerprint:
        return
    content = CheckpointContent.read(folder.path, folder.kept.name)
    if not usable(content):
        return
    folder = folder.in_form(manifest.form)
    file = folder.place.find(folder.result)
    result = OnlySegment(folder.result.resolve() if file is None else file.location)
    joins = bool(manifest.outputs or manifest.parted)
    if joins:
        joined = continued.folder / "outcomes.jsonl"  # it is deleted with the checkpoint
        put_result(folder, joined)
        result = OnlySegment(joined)
    # another result does not match its checksums
    yield OutcomeSource(content, folder.kept, result, published=not joins)
