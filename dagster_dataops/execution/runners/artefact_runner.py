"""ArtefactRunner: call ``build`` with an iterator for each input and an empty folder.

The result is the listing of the folder's files; the folder is published with it.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from dagster_dataops.checkpoints.publish.artefact_versions import ArtefactVersions
from dagster_dataops.checkpoints.publish.drafts import Drafts
from dagster_dataops.datasets.version_folders import discard
from dagster_dataops.errors import DatasetOperatorError
from dagster_dataops.execution.node_attempt import NodeAttempt
from dagster_dataops.execution.runners.dataset_runner import DatasetRunner
from dagster_dataops.foundation.override import override
from dagster_dataops.operators.bound_methods import plain_function
from dagster_dataops.records import Record


class ArtefactRunner(DatasetRunner):
    """Runs operators that build an artefact.

    Args:
        operator: The operator.
        inputs: One dataset for each of its parameters before the folder.
    """

    @override
    def run(self, attempt: NodeAttempt) -> Drafts:
        """Build the artefact, publish its version, and write its listing as a draft.

        Raises:
            DatasetOperatorError: ``build`` raised, wrote nothing, or wrote a link.
            RecordError: An input line is no record and failures are not ignored.
            OutageError: No input line is a record.
        """
        versions = ArtefactVersions(attempt.folder)
        draft = versions.new_draft()
        self._build = _Build(attempt, versions, draft)
        try:
            drafts = super().run(attempt)
        except BaseException:
            with suppress(OSError):  # the next attempt removes it
                discard(draft)
            raise
        return replace(drafts, dropped=0, artefact=self._build.version)

    @override
    def function(self, attempt: NodeAttempt) -> Callable[..., Any]:
        """Return a function of the inputs that builds the artefact and returns its listing."""
        return self._build


class _Build:
    """Builds one version.

    Attributes:
        version: The name of the version; empty before it was built.
    """

    def __init__(self, attempt: NodeAttempt, versions: ArtefactVersions, draft: Path) -> None:
        self._attempt = attempt
        self._versions = versions
        self._draft = draft
        self.version = ""

    def __call__(self, *records: Iterator[Record]) -> list[Record]:
        returned = plain_function(self._attempt.operator)(*records, self._draft)
        if returned is not None and returned != self._draft:
            kind = type(returned).__name__
            raise self._error(f"returned a {kind}; write to the folder and return nothing")
        if not any(self._draft.iterdir()):
            raise self._error("wrote nothing to the folder that it was given")
        try:
            self.version, rows = self._versions.publish(self._draft)
        except ValueError as error:
            raise self._error(f"wrote what an artefact cannot hold: {error}") from None
        return rows

    def _error(self, reason: str) -> DatasetOperatorError:
        method = self._attempt.operator.__dataops__.spec.method
        return DatasetOperatorError(self._attempt.name, f"{method} {reason}", "")
