"""`Outbox`: puts the outputs of an agent in the bucket of the run. Only keys go to the head."""

import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from dagster_dataops.checkpoints.journal.segments import segment_path
from dagster_dataops.checkpoints.journal.sent_pieces import (
    Piece,
    SentObject,
    SentPlace,
    freed,
    in_steps,
    note_sent,
    read_back,
)
from dagster_dataops.datasets.machine_folders import machine_folder
from dagster_dataops.errors import StorageError
from dagster_dataops.execution.agent_pool import SpanBatch
from dagster_dataops.foundation.places.open_stores import reading

_FOLDER: Final = "dagster-dataops-agents"


class Outbox:
    """Sends the outputs of an agent, which are in files of its machine until then.

    Args:
        place: Where the objects are put.
        folder: The folder with the files.
        first: The first segment number of the agent; no other agent has it.
    """

    def __init__(self, place: SentPlace, folder: Path, first: int) -> None:
        self._place, self._folder = place, folder
        self._mark = f"{place.mark}-{first}"
        self._sent = 0
        self._store = reading(place.bucket)

    def check(self) -> None:
        """Check that this machine reaches the bucket of the run.

        Raises:
            StorageError: It does not, or reaches another bucket of that name.
        """
        claim = f"{self._store.url}/{self._place.claim}"
        machine = socket.gethostname()
        try:
            status = self._store.status(self._place.claim)
        except StorageError as error:
            reason = f"machine {machine} does not reach the bucket of the run: {error.reason}"
            raise StorageError(claim, "read", reason) from error
        if status is None:
            reason = (
                f"machine {machine} sees no such object, which the run has made; all machines "
                "must reach the same server, with the same endpoint and region"
            )
            raise StorageError(claim, "find", reason)

    def send(self, batches: Sequence[SpanBatch]) -> list[SentObject]:
        """Put the outputs of settled spans in the bucket; return the objects.

        Raises:
            StorageError: The store cannot be reached, or refuses.
        """
        pieces = [piece for batch in batches if (piece := _piece_of(batch)) is not None]
        objects = []
        for step in in_steps(pieces):
            if step:
                name = f"{self._mark}-{self._sent}"
                self._sent += 1
                data = b"".join(read_back(self._folder, step))
                self._store.put(f"{self._place.folder}/{name}", data)
                objects.append(SentObject(name, step))
        for name, _, end in pieces:
            freed(self._folder / name, 0, end)  # blocks at the ends of earlier pieces, too
            note_sent(self._folder / name, end)
        return objects


def _piece_of(batch: SpanBatch) -> Piece | None:
    """Return the piece of a segment that a batch fills; ``None`` if it has no outputs."""
    size = sum(span.output_bytes + span.error_bytes for span in batch.spans)
    name = segment_path(Path(), batch.segment).name
    return Piece(name, batch.offset, batch.offset + size) if size else None


@contextmanager
def outputs_folder(shared: Path, place: SentPlace | None) -> Iterator[Path]:
    """Yield the folder for the segments of an agent.

    Args:
        shared: The folder of the run, which is used without a place.
        place: Where the outputs are put. The folder is then a new one on this machine, and folders
            of agents that were killed are deleted.

    Raises:
        StorageError: The disk refuses.
    """
    if place is None:
        yield shared
        return
    with machine_folder(_FOLDER, place.mark) as mine:
        yield mine
