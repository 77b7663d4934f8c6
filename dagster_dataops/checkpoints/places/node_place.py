"""`NodePlace`: where the files of a node are. `Claim`: the right of one run to change them."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from dagster_dataops.checkpoints.journal.journal_writer import JournalWriter
from dagster_dataops.checkpoints.journal.segments import Segments
from dagster_dataops.checkpoints.journal.span_table import SpanTable
from dagster_dataops.datasets.durable_files import draft_file
from dagster_dataops.datasets.writer import JsonlWriter
from dagster_dataops.foundation.places.bucket import Location
from dagster_dataops.foundation.places.opening import state_at

if TYPE_CHECKING:
    from dagster_dataops.checkpoints.journal.sent_pieces import SentPlace


class Outputs(Protocol):
    """A checkpoint whose outputs a claim can publish."""

    folder: Path
    table: SpanTable

    def check_synced(self) -> None:
        """Wait for background syncs, and check that none has failed.

        Raises:
            StorageError: One has.
        """

    def sync(self) -> None:
        """Make every settled span survive a power loss; in a bucket, send their outputs.

        Raises:
            StorageError: Disk or store refuse.
        """


class Claim(ABC):
    """The right of one run to change the results of a node, held until `release`.

    In a folder it is a lock. In a bucket it is the next number of the journal; no lock with a
    time-out is trusted. A run that was overtaken finds out at its next entry.
    """

    @abstractmethod
    def check(self) -> None:
        """Check that no other run has taken over, as far as that is known on this machine.

        Raises:
            StorageError: Another run has, or that cannot be told.
        """

    @abstractmethod
    def release(self) -> None:
        """Let other runs have the node; safe to call twice."""

    def journal(self, path: Path) -> JournalWriter:
        """Return the writer of the journal of a checkpoint."""
        return JournalWriter(path)

    def journal_of_stage(self, path: Path) -> JournalWriter:
        """Return the writer of the journal of a stage, which stays on this machine."""
        return JournalWriter(path)

    def segments(self, folder: Path) -> Segments:
        """Return the segments of the checkpoint in a folder, to be read."""
        return Segments(folder)

    def sent_place(self) -> "SentPlace | None":
        """Return where agents put outputs; ``None`` if they write to the folder."""
        return None

    def shared_input(self, location: Location) -> Location:
        """Return where agents read an input: at the same location, or an object with its content.

        Raises:
            StorageError: It cannot be sent to the bucket.
        """
        return location

    def take_result(self, path: Path) -> bool:  # noqa: ARG002
        """Use the published result as the first segment of a checkpoint, without a copy.

        Args:
            path: Of the segment; its folder is that of the checkpoint.

        Returns:
            Whether it is used, perhaps since an earlier attempt. It is not if another segment has
            this name.

        Raises:
            StorageError: The store cannot be read.
        """
        return False

    @abstractmethod
    def writer(
        self, path: Path, outputs: Outputs | None = None, whole_bytes: float = 0
    ) -> JsonlWriter:
        """Return the writer of the draft of a result.

        Args:
            path: Of the result in the folder.
            outputs: The checkpoint whose outputs in input order are the result, if it is that of
                one. In a bucket they may stay where they were sent.
            whole_bytes: A result of at most this size is one object of a bucket in any case.
        """

    def draft(self, path: Path) -> Location | None:
        """Return where the finished draft of a published file is; ``None`` if there is none."""
        return draft_file(path)

    @abstractmethod
    def publishing(
        self, files: Mapping[Path, Location], manifest: bytes
    ) -> AbstractContextManager[None]:
        """Publish files, all or none; inside the block they are put in place in the folder.

        Args:
            files: For each published file where its content is: in its draft, or itself.
            manifest: The manifest.

        Raises:
            LostError: Another run has taken over.
        """


class PublishedFile(NamedTuple):
    """A published file.

    Attributes:
        location: Where it is.
        size: Its size in bytes.
        modified_ns: Its modification time in nanoseconds.
    """

    location: Location
    size: int
    modified_ns: int

    @classmethod
    def of(cls, path: Path) -> "PublishedFile | None":
        """Return a file of this machine; ``None`` if it is missing."""
        try:
            state = state_at(path)
        except OSError:
            return None
        return cls(path, state.size, state.modified_ns)


class PublishedFiles(NamedTuple):
    """The published files of a node that this machine has no copy of.

    Attributes:
        manifest: The manifest.
        files: Each file by its path in the folder of the node.
    """

    manifest: bytes
    files: Mapping[str, PublishedFile]


class NodePlace(ABC):
    """Where the files of a node are. A store is opened by the first method that needs it.

    Args:
        folder: The folder of this machine in which runs of the node work.
        name: The name of the node.

    Attributes:
        at_once: Whether readers see all files of a publication from the same moment on. Then the
            manifests of named outputs are among the files.
    """

    at_once: bool = False

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = name

    @abstractmethod
    def claim(self, run: str, wait_seconds: float) -> Claim:
        """Return a run's claim on the node.

        Args:
            run: The name of the run.
            wait_seconds: Seconds to wait for a run that may be ending.

        Raises:
            FolderLockedError: Another run has it.
            StorageError: Disk or store refuse.
        """

    @abstractmethod
    def publish(self, files: Mapping[Path, Location], manifest: bytes) -> None:
        """Publish files that no checkpoint belongs to; of two publications the last one counts.

        Args:
            files: As for `Claim.publishing`; they are in place in the folder.
            manifest: The manifest, which is in place too.
        """

    @abstractmethod
    def refresh(self, *, whole: bool = True) -> None:
        """Make the folder hold the published files.

        Args:
            whole: Whether it must hold a large result, too, which a bucket can be read from.

        Raises:
            StorageError: The store cannot be read.
        """

    @abstractmethod
    def is_published(self) -> bool:
        """Return whether the node has a result, perhaps an edited one."""

    @abstractmethod
    def find(self, path: Path) -> PublishedFile | None:
        """Return a published file, as it was when the folder was last refreshed or claimed.

        Args:
            path: Of the file in the folder.

        Returns:
            The file in the folder, perhaps an edited one, or else where the place has it; ``None``
            if nothing was published.
        """

    def remote(self) -> PublishedFiles | None:
        """Return the published files, to be read where they are; ``None`` if the folder has them.

        Raises:
            StorageError: The store cannot be read.
        """
        return None

    @abstractmethod
    def uri(self, path: Path) -> str:
        """Return the URI of a published file in the folder."""

    @abstractmethod
    def address(self, path: Path) -> str:
        """Return the URI of a file or folder of the node, which no publication changes."""
