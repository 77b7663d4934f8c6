"""Names of the package for tests that write and read journals, segments and input lines.

Tests import these names from here, so that a move of one in the package is an edit of this module.
"""

from dagster_dataops.checkpoints.checkpoint import Checkpoint, fresh
from dagster_dataops.checkpoints.folder.run_fingerprint import RunFingerprint
from dagster_dataops.checkpoints.journal.finished_span import FinishedSpan
from dagster_dataops.checkpoints.journal.frames import (
    FORMAT,
    FrameKind,
    frame,
    read_frames,
    spans_frame,
)
from dagster_dataops.checkpoints.journal.journal_reader import read_journal, read_positions
from dagster_dataops.checkpoints.journal.journal_writer import JournalWriter
from dagster_dataops.checkpoints.journal.positions import Position
from dagster_dataops.checkpoints.journal.segments import SegmentWriter, checksum, segment_path
from dagster_dataops.checkpoints.journal.span import Span, SpansEntry
from dagster_dataops.checkpoints.journal.span_table import SpanTable
from dagster_dataops.checkpoints.journal.stored_outcomes import line_digest
from dagster_dataops.datasets.lines import Line, content_interval, iterate_lines

__all__ = [
    "FORMAT",
    "Checkpoint",
    "FinishedSpan",
    "FrameKind",
    "JournalWriter",
    "Line",
    "Position",
    "RunFingerprint",
    "SegmentWriter",
    "Span",
    "SpanTable",
    "SpansEntry",
    "checksum",
    "content_interval",
    "frame",
    "fresh",
    "iterate_lines",
    "line_digest",
    "read_frames",
    "read_journal",
    "read_positions",
    "segment_path",
    "spans_frame",
]
