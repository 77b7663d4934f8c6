"""Names of the package for tests that run nodes, and read what is in their folders.

Tests import these names from here, so that a move of one in the package is an edit of this module.
"""

from dagster_dataops.checkpoints.checkpoint import CheckpointContent, existing
from dagster_dataops.checkpoints.folder.manifest import (
    Manifest,
    NodeFolder,
    published,
    published_manifest,
    write_result,
)
from dagster_dataops.checkpoints.folder_lock import FolderLock
from dagster_dataops.checkpoints.publish import commit
from dagster_dataops.checkpoints.resume.resume_policy import ResumePolicy
from dagster_dataops.datasets.artefact import held
from dagster_dataops.datasets.durable_files import draft_of
from dagster_dataops.datasets.writer import JsonlWriter, write_records
from dagster_dataops.execution.executor import OperatorExecutor
from dagster_dataops.execution.progress import ProgressState, Quiet
from dagster_dataops.execution.run_report import RunContext
from dagster_dataops.execution.runners.given_stream import given_stream
from dagster_dataops.foundation.concurrency.background import background, deleting
from dagster_dataops.foundation.hashing.file_digests import content_digest
from dagster_dataops.operators.definition.operator import reconfigured
from dagster_dataops.operators.options.settings import ExecutionSettings
from dagster_dataops.operators.outcomes.record_context import count_tables

__all__ = [
    "CheckpointContent",
    "ExecutionSettings",
    "FolderLock",
    "JsonlWriter",
    "Manifest",
    "NodeFolder",
    "OperatorExecutor",
    "ProgressState",
    "Quiet",
    "ResumePolicy",
    "RunContext",
    "background",
    "commit",
    "content_digest",
    "count_tables",
    "deleting",
    "draft_of",
    "existing",
    "given_stream",
    "held",
    "published",
    "published_manifest",
    "reconfigured",
    "write_records",
    "write_result",
]
