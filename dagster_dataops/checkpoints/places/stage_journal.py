"""`StageJournal`: the journal of a stage of a step, which only the present attempt reads.

The objects of the parts tell the next attempt, perhaps on another machine, what is done.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

from typing_extensions import override

from dagster_dataops.checkpoints.journal.journal_writer import JournalWriter
from dagster_dataops.checkpoints.journal.sent_pieces import SentObject
from dagster_dataops.checkpoints.places.sent_segments import SentSegments


class StageJournal(JournalWriter):
    """Appends entries to a journal on this machine; agents may have put the outputs in the bucket.

    Args:
        path: The file in the working copy.
        key_of: Returns the key of an object by its name.
        segments: Of the stage; learns what was sent.
    """

    on_disk = False

    def __init__(self, path: Path, key_of: Callable[[str], str], segments: SentSegments) -> None:
        self._key_of, self._segments = key_of, segments
        super().__init__(path)

    @property
    @override
    def segments(self) -> SentSegments:
        return self._segments

    @override
    def sync(self, segments: Iterable[Path] = ()) -> None:
        """Do nothing: the next attempt makes the folder anew."""

    @override
    def sent(self, objects: Iterable[SentObject]) -> None:
        for sent in objects:
            self._segments.add(sent.pieces, self._key_of(sent.name), here=False)
