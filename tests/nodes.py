"""Names of the package for tests that run nodes, and read what is in their folders.

Tests import these names from here, so that a move of one in the package is an edit of this module.
"""

from pathlib import Path

from dagster_dataops.checkpoints.checkpoint import CheckpointContent, existing
from dagster_dataops.checkpoints.folder.manifest import (
    Manifest,
    NodeFolder,
    published,
    published_manifest,
    result_by_range,
    write_result,
)
from dagster_dataops.checkpoints.folder_lock import FolderLock
from dagster_dataops.checkpoints.publish import commit
from dagster_dataops.checkpoints.resume.resume_policy import ResumePolicy
from dagster_dataops.datasets.artefact import held
from dagster_dataops.datasets.durable_files import draft_of
from dagster_dataops.datasets.file_values.file_keeper import FileKeeper
from dagster_dataops.datasets.writer import JsonlWriter, write_records
from dagster_dataops.execution.executor import OperatorExecutor
from dagster_dataops.execution.progress import ProgressState, Quiet
from dagster_dataops.execution.run_report import RunContext
from dagster_dataops.execution.runners.given_stream import given_stream
from dagster_dataops.foundation.concurrency.background import background, deleting
from dagster_dataops.foundation.hashing.file_digests import content_digest
from dagster_dataops.foundation.places.file_state import FileState
from dagster_dataops.foundation.places.opening import state_at
from dagster_dataops.foundation.places.root import Root
from dagster_dataops.operators.definition.operator import exporting, reconfigured
from dagster_dataops.operators.options.artefact_options import ArtefactReference
from dagster_dataops.operators.options.settings import (
    SETTING_NAMES,
    ExecutionSettings,
    execution_settings,
)
from dagster_dataops.operators.outcomes.record_context import count_tables, plain_counts
from dagster_dataops.pipelines.local_run import run_operator

__all__ = [
    "SETTING_NAMES",
    "ArtefactReference",
    "CheckpointContent",
    "ExecutionSettings",
    "FileKeeper",
    "FileState",
    "FolderLock",
    "JsonlWriter",
    "Manifest",
    "NodeFolder",
    "OperatorExecutor",
    "ProgressState",
    "Quiet",
    "ResumePolicy",
    "Root",
    "RunContext",
    "background",
    "commit",
    "content_digest",
    "count_tables",
    "deleting",
    "draft_of",
    "execution_settings",
    "existing",
    "exporting",
    "given_stream",
    "held",
    "plain_counts",
    "published",
    "published_manifest",
    "reconfigured",
    "result_by_range",
    "run_operator",
    "state_at",
    "text_of",
    "write_records",
    "write_result",
]


def text_of(result: Path) -> bytes:
    """Return the lines of a result, by another program than the package if it is compressed."""
    data = result.read_bytes()
    if result.suffix != ".zst":
        return data
    import zstandard

    with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
        return reader.read()
