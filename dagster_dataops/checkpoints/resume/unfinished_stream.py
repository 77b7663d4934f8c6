"""Decide whether a run resumes the stream of an unfinished run, and at which position."""

import json

from dagster_dataops.checkpoints.checkpoint import CheckpointContent
from dagster_dataops.checkpoints.journal.journal_reader import read_positions
from dagster_dataops.checkpoints.journal.positions import Position
from dagster_dataops.checkpoints.resume.resume_policy import ResumePolicy
from dagster_dataops.checkpoints.resume.start_decision import (
    SWITCHED_OFF,
    UNKNOWN,
    ResumableStream,
    StartDecision,
    StartKind,
    StartRequest,
    in_files,
    not_used,
    settled_by,
    start_afresh,
)
from dagster_dataops.checkpoints.stream_checkpoint import cut_quarantine, intact_positions
from dagster_dataops.datasets.published_files import JOURNAL
from dagster_dataops.foundation.format_numbers import read_number
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.streams.identity.stream_identity import VERSION, difference


def resume_stream(request: StartRequest, stream: ResumableStream) -> StartDecision:
    """Return the decision to resume a checkpoint of a stream, or to start afresh.

    Raises:
        NewerVersionError: A newer version has written the positions of one.
    """
    note = ""
    for content in request.contents:
        known = read_positions(content.folder / JOURNAL)
        if not known.positions:
            continue
        place = f"the positions of the stream in {request.folder.located(content.folder)}"
        read_number(json.loads(known.positions[-1].state).get("version"), VERSION, place)
        reason = _why_not(
            request, content, difference(stream.as_present(known.stages), stream.parts)
        )
        if not reason:
            content.segments.fetch()
            positions = intact_positions(content.folder, known.positions)
            if positions:
                return _resume_at(request, stream, content, known.positions, positions)
            reason = "all its positions are damaged on disk; check the disk"
        items = max(position.items for position in known.positions)
        note = note or not_used(settled_by(content, items, "items"), reason)
    return start_afresh(request, note)


def _resume_at(
    request: StartRequest,
    stream: ResumableStream,
    content: CheckpointContent,
    known: list[Position],
    positions: list[Position],
) -> StartDecision:
    """Return the decision to resume at the furthest of ``positions`` that the stream accepts."""
    refused = ""
    for position in positions:
        cut_quarantine(content.folder, position)
        refused = stream.restore(content.folder, position)
        if not refused:
            note = f"resuming: {settled_by(content, position.items, 'items')}"
            note += _redone(known, positions)
            return StartDecision(StartKind.RESUME, content, note, position)
    note = f"starting afresh: no position of the earlier run can be used: {refused}"
    return start_afresh(request, note)


def _redone(known: list[Position], positions: list[Position]) -> str:
    """Return a text about items behind every intact position; empty if there are none."""
    lost = max(position.items for position in known) - positions[0].items
    reason = "their output, or failed items between them, are damaged on disk"
    return f"; {counted(lost, 'items')} must be processed again: {reason}" if lost else ""


def _why_not(request: StartRequest, content: CheckpointContent, other: str) -> str:
    """Return the reason why a stream does not resume a checkpoint; empty if it may."""
    if request.policy is ResumePolicy.NEVER:
        return SWITCHED_OFF
    if other:
        return f"the stream has changed: {other}"
    if content.fingerprint is None:
        return UNKNOWN
    differing = content.fingerprint.differences(request.fingerprint)
    if differing and request.fingerprint.unknown:
        return request.fingerprint.unknown
    names = {"options": "options or seeds"}
    parts = " and ".join(names.get(part, part) for part in differing)
    which = in_files(content.fingerprint.files_changed(request.fingerprint))
    return f"the stream's {parts} changed since{which}" if differing else ""
