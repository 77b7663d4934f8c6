"""`PruningMark`: the object of a bucket by which runs notice that files are being deleted.

A bucket has no locks, and cannot delete an object only if it is still an old one. So a command that
deletes files writes the mark, lists the files, deletes those that are old, and writes another mark.
A run reads the mark before and after it stores files. If it differs, or tells that files are being
deleted, the run stores them again: the command may have listed the old ones. So each stored file is
there after the second read, or was stored before the listing, which then told that it is new.
"""

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from dagster_dataops.errors import FolderLockedError
from dagster_dataops.foundation.places.result_store import ConflictError, ResultStore

_NAME: Final = ".pruned"
_DELETING: Final = b"deleting "
_IDLE: Final = b"idle "
_LEASE_SECONDS: Final = 600.0  # after which a command that deletes files has died
_DELETE_SECONDS: Final = 300.0  # in which it lists and deletes the files of one mark
_FORGOTTEN_SECONDS: Final = 3600.0  # after which another one takes its place
_PAUSE_SECONDS: Final = 0.2


class PruningMark:
    """The mark of a root.

    Args:
        root: The root, for errors.
        folder: The key of the folder with its files.
        store: The store of its bucket.
    """

    def __init__(self, root: str, folder: str, store: ResultStore) -> None:
        self._root, self._folder, self._store = root, folder, store
        self._key = f"{folder}/{_NAME}"

    def read(self) -> bytes:
        """Return the mark; empty if no file was ever deleted.

        Raises:
            StorageError: It cannot be read.
        """
        stored = self._store.read(self._key)
        return b"" if stored is None else stored[0]

    def idle(self) -> bytes:
        """Wait while files are being deleted, and return the mark.

        The mark of a command that was killed counts after ten minutes.

        Raises:
            StorageError: It cannot be read.
        """
        last, since = self.read(), time.monotonic()
        while last.startswith(_DELETING) and time.monotonic() - since < _LEASE_SECONDS:
            time.sleep(_PAUSE_SECONDS)
            mark = self.read()
            if mark != last:
                last, since = mark, time.monotonic()
        return last

    @contextmanager
    def deleting(self) -> Iterator["Deletion"]:
        """Let runs know that files may be deleted in the block.

        Raises:
            FolderLockedError: Another command deletes files.
            StorageError: The store refuses.
        """
        stored = self._store.read(self._key)
        if stored is not None and stored[0].startswith(_DELETING) and not self._is_forgotten():
            raise self._locked()
        try:
            version = self._store.replace(self._key, _new(_DELETING), stored and stored[1])
        except ConflictError:
            raise self._locked() from None
        try:
            yield Deletion(self._root)
        finally:
            with suppress(ConflictError):  # it took an hour, and another command goes on
                self._store.replace(self._key, _new(_IDLE), version)

    def _is_forgotten(self) -> bool:
        modified = self._store.listed(self._folder)[self._key].modified
        return modified < time.time() - _FORGOTTEN_SECONDS

    def _locked(self) -> FolderLockedError:
        command = "another prune-files; one that was killed is forgotten after an hour"
        return FolderLockedError(self._root, command, 0.0)


class Deletion:
    """A time in which runs know that files may be deleted.

    Args:
        root: The root, for errors.
    """

    def __init__(self, root: str) -> None:
        self._root, self._until = root, time.monotonic() + _DELETE_SECONDS

    def check(self) -> None:
        """Check that runs still wait for the end of the deletion."""
        if time.monotonic() > self._until:
            holder = f"a store that took more than {_DELETE_SECONDS:g} s to list its files"
            raise FolderLockedError(self._root, holder, _DELETE_SECONDS)


def _new(state: bytes) -> bytes:
    return state + uuid.uuid4().hex.encode()
