"""Nodes as tests see them: how one is run, what is published in its folder, what is unfinished.

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
from dagster_dataops.checkpoints.resume.resume_policy import ResumePolicy
from dagster_dataops.datasets.durable_files import draft_of
from dagster_dataops.execution.executor import OperatorExecutor
from dagster_dataops.execution.run_report import RunContext
from dagster_dataops.execution.runners.given_stream import given_stream
from dagster_dataops.foundation.concurrency.background import background, deleting
from dagster_dataops.foundation.hashing.file_digests import content_digest

__all__ = [
    "CheckpointContent",
    "FolderLock",
    "Manifest",
    "NodeFolder",
    "OperatorExecutor",
    "ResumePolicy",
    "RunContext",
    "background",
    "content_digest",
    "deleting",
    "draft_of",
    "existing",
    "given_stream",
    "published",
    "published_manifest",
    "write_result",
]
