"""File stores for tests that construct one without its public function."""

from dagster_dataops.training.filestores.folder_store import FolderStore

__all__ = ["FolderStore"]
