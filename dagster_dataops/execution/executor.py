"""OperatorExecutor: lock the folder, decide how to start, run, publish, export."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

from dagster_dataops.checkpoints.checkpoint import CheckpointContent, existing
from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder, published_manifest
from dagster_dataops.checkpoints.places.node_place import Claim
from dagster_dataops.checkpoints.publish.commit import (
    commit,
    finish_interrupted,
    published_files,
    write_manifest,
)
from dagster_dataops.checkpoints.publish.drafts import Drafts
from dagster_dataops.checkpoints.publish.other_versions import notes_on
from dagster_dataops.checkpoints.resume.resume_policy import chosen_only
from dagster_dataops.checkpoints.resume.start import decide_start
from dagster_dataops.checkpoints.resume.start_decision import StartRequest
from dagster_dataops.datasets.artefact import held
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.durable_files import storage
from dagster_dataops.datasets.file_values.file_keeper import FileKeeper
from dagster_dataops.datasets.file_values.result_roots import use_root, use_roots_above
from dagster_dataops.errors import RunStoppedError
from dagster_dataops.execution.column_presence import check_presence, warn_of_missing
from dagster_dataops.execution.input_facts import check_together, facts_of, identified, told_apart
from dagster_dataops.execution.node_attempt import NodeAttempt
from dagster_dataops.execution.run_report import RunContext, RunReport
from dagster_dataops.execution.runners.concat_inputs import gathered, removed_afterwards
from dagster_dataops.execution.runners.runner import Runner, make_runner, takes_separately
from dagster_dataops.execution.unchanged_result import note_if_unchanged
from dagster_dataops.foundation.places.bucket import local_path
from dagster_dataops.foundation.places.opening import PLAIN
from dagster_dataops.operators.definition.operator import (
    Operator,
    begun,
    in_run,
    keeping_files,
    with_present_files,
)
from dagster_dataops.operators.definition.shown_options import chosen_options, hidden_in
from dagster_dataops.operators.kinds.kind import Tracing
from dagster_dataops.operators.options.artefact_options import versions_in
from dagster_dataops.operators.outcomes.record_context import RunFacts, RunLink


class OperatorExecutor:
    """Runs operators into node folders."""

    def __init__(self, context: RunContext) -> None:
        self.context = context

    def run(
        self, operator: Operator, inputs: Sequence[JsonlDataset], folder: NodeFolder
    ) -> RunReport:
        """Run ``operator`` over ``inputs`` and publish the result in ``folder``.

        If the operator has an output, the result is exported to it, even if the result was
        published earlier.

        Args:
            operator: The operator.
            inputs: One dataset, or several. Several are concatenated for an operator that takes
                one. A dataset operator with as many inputs gets them separately.
            folder: The folder of result, error file, manifest and checkpoints.

        Raises:
            FolderLockedError: Another run is using the folder.
            RecordError: A record failed and failures are not ignored.
            AbsentColumnError: No record has a column that the operator reads.
            OutageError: Every record failed, or too many consecutive calls failed; the published
                result is kept.
            DatasetOperatorError: A dataset operator failed.
            StorageError: Reading or writing a file failed.
            RetryRefusedError: Only failed records were to be retried, but they cannot be retried
                alone.
            RunStoppedError: A stop was requested.
            ResultMissingError: An option is the path of an artefact that is missing or was
                changed.
        """
        spec = operator.__dataops__.spec
        form = PLAIN if spec.kind.holds_files else self.context.result_format
        folder = folder.in_form(form).with_outputs(spec.outputs)
        try:
            with held(versions_in(operator.__dataops__.options)):
                lock = folder.place.claim(self.context.run, self.context.lock_seconds)
                try:
                    return _exported(self._run(operator, inputs, folder, lock), operator, folder)
                finally:
                    lock.release()
        except BaseException as error:
            from dagster_dataops.operators.secrets.hidden_errors import hide_secrets  # rare

            hide_secrets(error, operator.__dataops__.secrets)
            raise

    def _run(
        self,
        operator: Operator,
        inputs: Sequence[JsonlDataset],
        folder: NodeFolder,
        lock: Claim,
    ) -> RunReport:
        attempt = NodeAttempt(operator=operator, context=self.context, folder=folder, lock=lock)
        late = finish_interrupted(folder)
        if late is not None:
            attempt.note(
                f"finished publishing the result of run {late.run}, which had been cut short"
            )
        contents = existing(folder.checkpoints, lock.segments)
        attempt.continues = bool(contents)
        contents = _readable(attempt, contents)
        with removed_afterwards(folder.input), attempt.resources:
            check_together(inputs)
            separate = takes_separately(operator.__dataops__.spec, len(inputs))
            if self.context.reuse_finished:
                inputs = identified(inputs, published_manifest(folder))
            inputs = told_apart(inputs)
            attempt.sources = [facts_of(dataset) for dataset in inputs]
            attempt.read(inputs if separate else [gathered(inputs, folder.input)])
            attempt.operator = operator = _in_run(operator, attempt)
            runner = make_runner(operator, attempt.inputs)
            attempt.start = decide_start(_start_request(attempt, runner, contents, late))
            if attempt.start.published is not None:
                manifest = _take_over(attempt, attempt.start.published)
                return _report(attempt, _in_form(attempt, manifest))
            check_presence(attempt)
            content = attempt.start.content
            content.started = content.started or datetime.now().astimezone().isoformat()
            begun(operator, content.started)
            parts = operator.__dataops__.identity_parts  # before an operator changes its constants
            drafts = runner.run(attempt)
            manifest = _manifest(attempt, drafts, runner, parts)
            note_if_unchanged(attempt, manifest)
            warn_of_missing(attempt, manifest)
            return _report(attempt, _publish(attempt, manifest))


def _readable(
    attempt: NodeAttempt, contents: Sequence[CheckpointContent]
) -> list[CheckpointContent]:
    """Return the checkpoints that this version reads; warn of all that it does not read."""
    keeps = bool(attempt.settings.keep_versions)
    for text in notes_on(attempt.folder, contents, keeps=keeps):
        attempt.unread = True
        attempt.warn(text)
    return [content for content in contents if not content.foreign]


def _exported(report: RunReport, operator: Operator, folder: NodeFolder) -> RunReport:
    """Return the report of a run with its export, if there is one."""
    use = operator.__dataops__
    if not use.spec.kind.exports and use.output is None:
        return report
    from dagster_dataops.execution import result_exports  # imports exporters

    if use.spec.kind.exports or use.output is None:
        return result_exports.exported_by_node(report, folder)
    return result_exports.exported(report, use.output, folder, use.columns)


def _in_run(operator: Operator, attempt: NodeAttempt) -> Operator:
    """Return the operator as part of the run of an attempt."""
    folder = attempt.folder
    root = folder.root.at(attempt.context.root or folder.path)
    for dataset in attempt.inputs:
        use_roots_above(dataset.location)
    use_root(root)  # the first one to be searched
    operator = in_run(with_present_files(operator), _link(attempt))
    return keeping_files(operator, FileKeeper(root))


def _link(attempt: NodeAttempt) -> RunLink:
    """Return the facts about the run for the operator's context."""
    context, folder = attempt.context, attempt.folder
    first = [local_path(dataset.location) or dataset.location for dataset in attempt.inputs[:1]]
    facts = RunFacts(
        folder=str(folder.path),
        root=str(context.root or folder.path),
        run=context.run,
        node=folder.name,
        input="".join(map(str, first)),
        retries_failed=chosen_only(context.resume),
    )
    return RunLink(facts, context.clients)


def _start_request(
    attempt: NodeAttempt, runner: Runner, contents: list[CheckpointContent], late: Manifest | None
) -> StartRequest:
    """Return the facts that the start decision depends on."""
    context = attempt.context
    late_run = "" if late is None else late.run
    return StartRequest(
        folder=attempt.folder,
        kind=attempt.operator.__dataops__.spec.kind,
        fingerprint=runner.fingerprint,
        policy=context.resume,
        contents=contents,
        records=runner.records,
        stream=runner.stream,
        reuse_finished=context.reuse_finished,
        reuse_outcomes=attempt.settings.reuse_outcomes,
        own_runs=context.earlier_runs | {context.run},
        unreported=lambda run: run == late_run or context.unreported(run),
        complete=lambda: runner.complete(attempt),
        segments_of=attempt.lock.segments,
        take_result=attempt.lock.take_result,
    )


def _take_over(attempt: NodeAttempt, manifest: Manifest) -> Manifest:
    """Return the manifest of a result that was published earlier; log its origin.

    If this run adopts the result, the manifest file names this run as publisher, so that no later
    run adopts it as an unreported result. The returned manifest names the run that made it.
    """
    run = attempt.context.run
    if attempt.start.takes_over and manifest.run != run:
        attempt.lock.check()
        adopted = replace(manifest, run=run)
        files = published_files(attempt.folder, adopted)
        with attempt.lock.publishing(files, adopted.to_bytes()):
            write_manifest(attempt.folder, adopted)
    attempt.note(attempt.start.note)
    return manifest


def _in_form(attempt: NodeAttempt, manifest: Manifest) -> Manifest:
    """Return the manifest of a result after it was rewritten in the form of this run, if needed.

    Other unfinished runs of the node would be lost by a publication; beside them it stays as it is.
    """
    folder, claim = attempt.folder, attempt.lock
    if manifest.form == folder.form or manifest.parted or attempt.continues:
        return manifest
    from dagster_dataops.checkpoints.publish.other_form import draft_in_form  # rare

    attempt.note(f"its file is rewritten as {folder.form}, with the same records")
    drafts = draft_in_form(folder, Manifest.of(folder) or manifest, claim.writer)
    claim.check()
    rewritten = commit(folder, drafts, claim.publishing, claim.draft)
    return replace(rewritten, run=manifest.run)


def _publish(attempt: NodeAttempt, manifest: Manifest) -> Manifest:
    """Put the drafts in place."""
    reason = attempt.context.should_stop()
    if reason is not None:
        raise RunStoppedError(manifest.operator, reason)
    if attempt.checkpoint is not None:
        attempt.checkpoint.check_synced()  # the syncs ran while the result was composed
        attempt.checkpoint.close()
    attempt.lock.check()
    claim, checkpoint = attempt.lock, attempt.checkpoint
    settled = attempt.continues or (checkpoint is not None and checkpoint.synced)
    with _keeping_versions(attempt, manifest):
        return commit(
            attempt.folder,
            manifest,
            claim.publishing,
            claim.draft,
            settled=settled,
            unread=attempt.unread,
        )


@contextmanager
def _keeping_versions(attempt: NodeAttempt, manifest: Manifest) -> Iterator[None]:
    """Keep the result that the block replaces; afterwards remove versions beyond the limit."""
    most = attempt.settings.keep_versions
    if not most:
        digests = attempt.folder.input_digests  # of a result that kept versions
        with storage(digests, "delete the file"):
            digests.unlink(missing_ok=True)
        yield
        return
    from dagster_dataops.checkpoints.versions.input_digests import write_input_digests
    from dagster_dataops.checkpoints.versions.keeping import keep_replaced, remove_beyond

    if attempt.operator.__dataops__.spec.kind.trace is Tracing.RECORD:
        (dataset,) = attempt.inputs
        write_input_digests(attempt.folder, dataset, manifest)
    attempt.kept_version, note = keep_replaced(attempt.folder, manifest)
    attempt.note(note)
    yield
    remove_beyond(attempt.folder, most)


def _manifest(
    attempt: NodeAttempt, drafts: Drafts, runner: Runner, parts: dict[str, dict[str, str]]
) -> Manifest:
    fingerprint, checkpoint = runner.fingerprint, attempt.checkpoint
    run, spec = attempt.context.run, attempt.operator.__dataops__.spec
    return Manifest(
        **_without_secrets(drafts.facts(), attempt.operator),
        operator=attempt.name,
        rows_in=drafts.records,
        rows_out=drafts.dataset.rows or 0,
        dropped=0 if spec.new_records else drafts.dropped,
        resumed=checkpoint.resumed_records if checkpoint else 0,
        size_bytes=drafts.dataset.size_bytes,
        fingerprint=drafts.dataset.fingerprint or "",
        run=run,
        attempts=checkpoint.content.attempts if checkpoint else [run],
        seconds=round(time.monotonic() - attempt.began, 3),
        made_from=fingerprint.to_json(),
        kept_from=checkpoint.content.kept_from if checkpoint else [],
        resumed_from=checkpoint.resumed_from if checkpoint else [],
        inputs=attempt.sources,
        kind=spec.kind.name,
        new_records=spec.new_records,
        traced=attempt.settings.trace,
        **_options(attempt.operator),
        identity_parts=parts,
    )


def _options(operator: Operator) -> dict[str, Any]:
    """Return the chosen options of an operator and their defaults, without secrets.

    Options of a part of a chain have names that begin with that of the part.
    """
    use = operator.__dataops__
    parts = [f"{name}." for name, _ in use.spec.parts] or [""]
    chosen = {
        f"{part}{name}": option
        for part, inner in zip(parts, use.uses, strict=True)
        for name, option in chosen_options(inner).items()
    }
    hide = use.secrets.hide
    return {
        "options": {name: hidden_in(option.value, hide) for name, option in chosen.items()},
        "defaults": {
            name: hidden_in(option.default, hide)
            for name, option in chosen.items()
            if not option.required
        },
    }


def _without_secrets(facts: dict[str, Any], operator: Operator) -> dict[str, Any]:
    """Return the facts about drafts with no secret in names of counts and reasons of drops."""
    for name in ("counts", "drops", "drop_examples"):
        if facts.get(name):
            hide = operator.__dataops__.secrets.hide_values
            facts[name] = {hide(key): value for key, value in facts[name].items()}
    return facts


def _report(attempt: NodeAttempt, manifest: Manifest) -> RunReport:
    folder = attempt.folder
    whole = _report_of(attempt, folder.name, folder, manifest)
    if not manifest.outputs:
        return whole
    outputs = {
        name: _report_of(attempt, f"{folder.name}.{name}", place, facts)
        for name, (place, facts) in manifest.parts(folder).items()
    }
    return replace(whole, outputs=outputs)


def _report_of(
    attempt: NodeAttempt, node: str, folder: NodeFolder, manifest: Manifest
) -> RunReport:
    return RunReport(
        node=node,
        dataset=manifest.dataset(folder),
        manifest=manifest,
        error_path=manifest.error_file(folder),
        reused=attempt.start.published is not None,
        notes=tuple(attempt.notes),
        seconds=time.monotonic() - attempt.began,
        kind=attempt.operator.__dataops__.spec.kind.name,
        replaced=attempt.kept_version,
    )
