"""Push a folder to a dataset on the Hub of Hugging Face, so that it can be repeated at any time."""

import hashlib
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi
from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError
from huggingface_hub.hf_api import RepoFile

from dagster_dataops.errors import StorageError

README: Final = "README.md"
_PAUSES: Final = (1.0, 4.0)  # seconds before a commit is tried again
_MOVED: Final = 412  # another commit came first
_PASSING: Final = {408, 429, 500, 502, 503, 504, _MOVED}
_DENIED: Final = {401, 403, 404}
_TYPE: Final = "dataset"
_QUERY: Final = re.compile(r"\?\S+")


class Pushed(NamedTuple):
    """The commit that has the files, and whether it is a new one."""

    commit: str
    is_new: bool


class HubDataset:
    """A dataset on the Hub that files are pushed to.

    Args:
        repo: Its name, such as ``org/name``.
        revision: The branch.
        private: Whether it is private, if it is made now.
    """

    def __init__(self, repo: str, revision: str, *, private: bool) -> None:
        self._repo, self._revision, self._private = repo, revision, private
        self._api: Any = HfApi()
        self._where = {"repo_type": _TYPE, "revision": revision}

    def push(
        self,
        files: Mapping[str, Path],
        replaced: Callable[[str], bool],
        readme: Callable[[str], str],
        message: str,
    ) -> Pushed:
        """Add files in one commit, which removes the files that they replace.

        What the Hub has already is not sent again, and a commit that would change nothing is not
        made. If another commit comes first, the state of the Hub is read again.

        Args:
            files: Files by their path in the dataset.
            replaced: Whether a file of the dataset is removed if it is not one of ``files``.
            readme: Return the new text of the dataset card for the present one.
            message: First line of the commit.

        Raises:
            StorageError: The Hub refuses, or cannot be reached.
        """
        try:
            self._api.create_repo(self._repo, repo_type=_TYPE, private=self._private, exist_ok=True)
            for pause in (*_PAUSES, None):
                try:
                    return self._pushed(files, replaced, readme, message)
                except (HfHubHTTPError, RuntimeError) as error:  # the latter of an upload
                    if pause is None or _status(error) not in _PASSING:
                        raise
                    time.sleep(pause)
        except StorageError:
            raise
        except Exception as error:  # of huggingface_hub, and of the libraries below it
            raise self._refused(error) from error
        raise AssertionError

    def _pushed(
        self,
        files: Mapping[str, Path],
        replaced: Callable[[str], bool],
        readme: Callable[[str], str],
        message: str,
    ) -> Pushed:
        head = str(self._api.repo_info(self._repo, **self._where).sha)
        known = self._known(head)
        operations: list[Any] = [
            CommitOperationAdd(path, str(file))
            for path, file in files.items()
            if not _is_known(known.get(path), file)
        ]
        for addition in operations:  # one by one: after a kill those before are there
            self._api.preupload_lfs_files(self._repo, [addition], **self._where)
        gone = [path for path in known if replaced(path) and path not in files]
        operations += [CommitOperationDelete(path) for path in sorted(gone)]
        before = self._readme(head) if README in known else ""
        after = readme(before)
        if after != before:
            operations.append(CommitOperationAdd(README, after.encode()))
        if not operations:
            return Pushed(head, is_new=False)
        made = self._api.create_commit(
            self._repo, operations, commit_message=message, parent_commit=head, **self._where
        )
        return Pushed(str(made.oid), is_new=True)

    def _known(self, head: str) -> dict[str, RepoFile]:
        tree = self._api.list_repo_tree(self._repo, recursive=True, revision=head, repo_type=_TYPE)
        return {entry.path: entry for entry in tree if isinstance(entry, RepoFile)}

    def _readme(self, head: str) -> str:
        """Return the text of the dataset card, without a copy in the cache of the user."""
        from huggingface_hub import HfFileSystem

        system = HfFileSystem(endpoint=self._api.endpoint, skip_instance_cache=True)
        try:
            return bytes(system.cat_file(f"datasets/{self._repo}@{head}/{README}")).decode()
        except (FileNotFoundError, EntryNotFoundError):
            return ""

    def _refused(self, error: Exception) -> StorageError:
        status = _status(error)
        kind = type(error).__name__
        if status in _DENIED or kind == "LocalTokenNotFoundError":
            reason = (
                f"it refuses ({kind}); set HF_TOKEN to a token that may write to the dataset, and "
                f"check the name and the branch {self._revision!r}"
            )
        else:
            text = _QUERY.sub("?...", str(error))[:300]  # addresses of uploads have signatures
            reason = f"{kind}: {text}; run it again: what the Hub has is not sent twice"
        return StorageError(f"hf://datasets/{self._repo}", "push the dataset to the Hub", reason)


def _status(error: BaseException | None) -> int:
    """Return the status of the answer that led to an error; 0 if there was none."""
    while error is not None:
        status = getattr(getattr(error, "response", None), "status_code", None)
        if status:
            return int(status)
        error = error.__cause__
    return 0


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
