"""Decide how an attempt starts: fresh, resume, retry failed or done."""

from dagster_dataops.checkpoints.folder.manifest import Manifest, published_manifest
from dagster_dataops.checkpoints.folder.run_fingerprint import RunFingerprint
from dagster_dataops.checkpoints.resume.resume_policy import (
    ChosenRecords,
    ResumePolicy,
    chosen_only,
)
from dagster_dataops.checkpoints.resume.start_decision import (
    SWITCHED_OFF,
    UNKNOWN,
    StartDecision,
    StartKind,
    StartRequest,
    not_used,
    resuming,
    settled_by,
    start_afresh,
    why_other,
)
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.file_values.file_reads import COUNT as READ_FILES
from dagster_dataops.foundation.quantities import counted


def decide_start(request: StartRequest) -> StartDecision:
    """Return how an attempt starts. Call it under the lock of the node's folder.

    Raises:
        RetryOutdatedError: Failed records were to be retried, and the result is of another input.
        RetryRefusedError: Failed or chosen records were to be processed again, and cannot be alone.
        ConditionSyntaxError, ConditionColumnError: The condition for records is malformed, or no
            record has a column that it names.
        StorageError: The disk refuses.
    """
    done = _published_before(request)
    if done is not None:
        return done
    if isinstance(request.policy, ChosenRecords):
        from dagster_dataops.checkpoints.resume.chosen_records import redo_chosen  # rare

        return redo_chosen(request, request.policy)
    retries = request.policy is ResumePolicy.FAILED_RECORDS
    decision = (_retry_failed(request) if retries else None) or _unfinished(request)
    if not request.reuse_outcomes or request.policy is ResumePolicy.NEVER:
        return decision
    from dagster_dataops.checkpoints.resume.record_cache import outcome_sources  # sqlite3

    return decision._replace(sources=tuple(outcome_sources(request, decision.content)))


def _unfinished(request: StartRequest) -> StartDecision:
    """Return whether an unfinished run is resumed, or a fresh run starts."""
    if request.stream is not None:
        from dagster_dataops.checkpoints.resume.unfinished_stream import resume_stream

        return resume_stream(request, request.stream)
    if request.records is None:
        unknown = request.fingerprint.unknown
        return start_afresh(
            request, f"its result cannot be used again: {unknown}" if unknown else ""
        )
    return _resume_records(request, request.records)


def _resume_records(request: StartRequest, dataset: JsonlDataset) -> StartDecision:
    """Return the decision to resume a checkpoint of records, or to start afresh."""
    contents = [content for content in request.contents if content.table.records]
    policy, fingerprint = request.policy, request.fingerprint
    unknown = fingerprint.unknown
    if not contents:
        return start_afresh(request, f"this run cannot be resumed: {unknown}" if unknown else "")
    from dagster_dataops.checkpoints.resume.checkpoint_match import differing_anywhere, without_torn

    for content in contents if policy is not ResumePolicy.NEVER else ():
        differing = differing_anywhere(content, fingerprint, dataset)
        if differing == [] or (differing == ["code"] and policy is ResumePolicy.ACROSS_CODE):
            whole = without_torn(content, dataset)
            return StartDecision(StartKind.RESUME, whole, resuming(whole, request))
    if policy is ResumePolicy.NEVER:
        reason = SWITCHED_OFF
    elif unknown:
        reason = unknown
    else:
        differing = differing_anywhere(contents[0], fingerprint, dataset)
        reason = UNKNOWN if differing is None else why_other(contents[0], fingerprint, differing)
    return start_afresh(
        request, not_used(settled_by(contents[0], contents[0].table.records), reason)
    )


def _retry_failed(request: StartRequest) -> StartDecision | None:
    """Return how failed records are retried; ``None`` if no earlier run holds any."""
    from dagster_dataops.checkpoints.resume.retry_failed import refuse_whole, retry_failed

    if request.records is not None:
        return retry_failed(request, request.records)
    refuse_whole(request.folder, request.kind)
    return None


def _published_before(request: StartRequest) -> StartDecision | None:
    """Return the decision that the published result is the result of this run, if it is."""
    manifest = published_manifest(request.folder)
    if manifest is None or not request.complete():
        return None
    unit = "files" if request.kind.holds_files else "records"
    retries = request.policy is ResumePolicy.FAILED_RECORDS
    reusing = request.reuse_finished and not chosen_only(request.policy)
    reused = reusing and manifest.made_by(request.fingerprint)
    reused = reused and READ_FILES not in manifest.counts  # which may be others now
    if reused or (manifest.finished_by(request.fingerprint) and _is_own(request, manifest.run)):
        note = (
            f"already finished by run {manifest.run}: {counted(manifest.rows_out, unit)}, "
            "same operator, options, code and input"
        )
    elif retries and _without_failures(manifest, request.fingerprint):
        note = f"no failed record to retry: the result of run {manifest.run} is kept"
        reused = True
    else:
        return None
    return StartDecision(
        StartKind.DONE,
        start_afresh(request).content,
        note,
        published=manifest,
        takes_over=not reused,
    )


def _is_own(request: StartRequest, run: str) -> bool:
    """Return whether the result of ``run``, not reported yet, is the result of this run."""
    if run in request.own_runs:
        return True
    if request.policy is ResumePolicy.NEVER or chosen_only(request.policy):
        return False
    return request.unreported(run)


def _without_failures(manifest: Manifest, fingerprint: RunFingerprint) -> bool:
    """Return whether no record of a result failed, so that it can be kept on request."""
    from dagster_dataops.checkpoints.resume.checkpoint_match import changeable  # to keep a result

    made_from = RunFingerprint.from_json(manifest.made_from)
    if manifest.failed or made_from is None:
        return False
    return changeable(made_from.differences(fingerprint))
