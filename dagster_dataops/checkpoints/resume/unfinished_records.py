"""Decide whether a run resumes the records of an unfinished run."""

from dagster_dataops.checkpoints.resume.checkpoint_match import differing_anywhere, without_torn
from dagster_dataops.checkpoints.resume.resume_policy import ResumePolicy
from dagster_dataops.checkpoints.resume.start_decision import (
    SWITCHED_OFF,
    UNKNOWN,
    StartDecision,
    StartKind,
    StartRequest,
    Unused,
    have_changed,
    resuming,
    start_afresh,
)
from dagster_dataops.datasets.dataset import JsonlDataset


def resume_records(request: StartRequest, dataset: JsonlDataset) -> StartDecision:
    """Return whether to resume a checkpoint of records, and which, or to start afresh."""
    found = [content for content in request.found if content.table.records]
    policy, fingerprint = request.policy, request.fingerprint
    for content in found if policy is not ResumePolicy.NEVER else ():
        differing = differing_anywhere(content, fingerprint, dataset)
        if differing == [] or (differing == ["code"] and policy is ResumePolicy.ACROSS_CODE):
            whole = without_torn(content, dataset)
            return StartDecision(StartKind.RESUME, whole, resuming(whole, request))
    unknown = fingerprint.unknown
    if not found:
        return start_afresh(request, f"this run cannot be resumed: {unknown}" if unknown else "")
    if policy is ResumePolicy.NEVER:
        reason = SWITCHED_OFF
    elif unknown:
        reason = unknown
    else:
        differing = differing_anywhere(found[0], fingerprint, dataset)
        reason = UNKNOWN if differing is None else have_changed(differing)
    return start_afresh(request, unused=Unused(found[0], found[0].table.records, reason))
