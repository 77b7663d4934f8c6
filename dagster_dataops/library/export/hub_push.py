"""Push a folder to a dataset on the Hub of Hugging Face, so that it can be repeated at any time."""

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, HfFileSystem
from huggingface_hub.errors import LocalTokenNotFoundError
from huggingface_hub.hf_api import RepoFile

from dagster_dataops.errors import DataOpsError, StorageError
from dagster_dataops.foundation.concurrency.retrying import Backoff
from dagster_dataops.readers.huggingface.hub_errors import DENIED, is_transient, shown, status_of

README: Final = "README.md"
_TRIES: Final = 3
_BACKOFF: Final = Backoff(2.0, 30.0)
_TYPE: Final = "dataset"


class Change(NamedTuple):
    """A change of the files of a dataset.

    Attributes:
        files: Files by their path in the dataset.
        replaced: Return whether a file of the dataset is removed if it is not one of ``files``.
        readme: Return the new text of the dataset card for the present one, and for the paths of
            the files of the dataset.
        message: First line of the commit.
    """

    files: Mapping[str, Path]
    replaced: Callable[[str], bool]
    readme: Callable[[str, Iterable[str]], str]
    message: str


class Pushed(NamedTuple):
    """The commit that has the files, and whether it is a new one."""

    commit: str
    is_new: bool


class HubDataset:
    """Push files to a dataset on the Hub.

    Args:
        repo: Name of the dataset, such as ``org/name``.
        revision: The branch.
        private: Whether the dataset is private if this creates it.
    """

    def __init__(self, repo: str, revision: str, *, private: bool) -> None:
        self._repo, self._revision, self._private = repo, revision, private
        self._api: Any = HfApi()
        self._where = {"repo_type": _TYPE, "revision": revision}

    def push(self, change: Change) -> Pushed:
        """Add files in one commit, which removes the files that they replace.

        What the Hub has already is not sent again, and a commit that would change nothing is not
        made. If another commit comes first, or the Hub fails for a moment, its state is read again.

        Raises:
            StorageError: The Hub refuses, or cannot be reached.
            DefinitionError: The dataset card would hide the files.
        """
        number = 0
        while True:
            number += 1
            try:
                return self._pushed(change)
            except DataOpsError:
                raise
            except Exception as error:  # of huggingface_hub, and of the libraries below it
                if number == _TRIES or not is_transient(error):
                    raise self._refused(error) from error
            time.sleep(_BACKOFF.pause(number))

    def _pushed(self, change: Change) -> Pushed:
        self._api.create_repo(self._repo, repo_type=_TYPE, private=self._private, exist_ok=True)
        head = str(self._api.repo_info(self._repo, **self._where).sha)
        known = self._known(head)
        before = self._readme(head) if README in known else ""
        after = change.readme(before, known)
        operations: list[Any] = [
            CommitOperationAdd(path, str(file))
            for path, file in change.files.items()
            if not _is_known(known.get(path), file)
        ]
        for addition in operations:  # one by one: after a kill those before are there
            self._api.preupload_lfs_files(self._repo, [addition], **self._where)
        gone = [path for path in known if change.replaced(path) and path not in change.files]
        operations += [CommitOperationDelete(path) for path in sorted(gone)]
        if after != before:
            operations.append(CommitOperationAdd(README, after.encode()))
        if not operations:
            return Pushed(head, is_new=False)
        commit = self._api.create_commit(
            self._repo, operations, commit_message=change.message, parent_commit=head, **self._where
        )
        return Pushed(str(commit.oid), is_new=True)

    def _known(self, head: str) -> dict[str, RepoFile]:
        tree = self._api.list_repo_tree(self._repo, recursive=True, revision=head, repo_type=_TYPE)
        return {entry.path: entry for entry in tree if isinstance(entry, RepoFile)}

    def _readme(self, head: str) -> str:
        """Return the text of the dataset card, without a copy in the cache of the user."""
        system = HfFileSystem(endpoint=self._api.endpoint, skip_instance_cache=True)
        return bytes(system.cat_file(f"datasets/{self._repo}@{head}/{README}")).decode()

    def _refused(self, error: Exception) -> StorageError:
        if status_of(error) in DENIED or isinstance(error, LocalTokenNotFoundError):
            reason = (
                f"it refuses ({type(error).__name__}); set HF_TOKEN to a token that may write to "
                f"the dataset, and check the name and the branch {self._revision!r}"
            )
        else:
            reason = f"{shown(error)}; run it again: what the Hub has is not sent twice"
        return StorageError(f"hf://datasets/{self._repo}", "push the dataset to the Hub", reason)


def _is_known(entry: RepoFile | None, path: Path) -> bool:
    """Return whether a file of the Hub has the content of a file."""
    if entry is None or entry.size != path.stat().st_size:
        return False
    with path.open("rb") as file:
        if entry.lfs:
            return hashlib.file_digest(file, "sha256").hexdigest() == entry.lfs.sha256
        content = file.read()
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False)
    return blob.hexdigest() == entry.blob_id
