"""JsonlDataset: a handle on one jsonl file, cheap to pass around, never the rows themselves."""

import itertools
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from dagster_dataops.configuration import is_url
from dagster_dataops.datasets.digests import content_digest
from dagster_dataops.datasets.formats import check_json_lines
from dagster_dataops.datasets.lines import LineCounter, content_interval, iterate_lines
from dagster_dataops.errors import InputError
from dagster_dataops.records import Record, decode

if TYPE_CHECKING:
    from dagster_dataops.streams.data_pipeline import DataPipelineBuilder


class FileState(NamedTuple):
    """What the file system knows of a file: nobody can change the file and keep all of this.

    Attributes:
        device: Number of the device it lies on.
        inode: Its number there.
        size: Its bytes.
        modified_ns: When its content was changed, in nanoseconds; anybody can set this.
        changed_ns: When anything of it was changed, links and rights included; nobody can set it.
    """

    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> Self:
        """Return the state that a ``stat`` call found."""
        return cls(
            status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
        )

    def resembles(self, other: "FileState") -> bool:
        """Whether all is equal but the time of change, which new links and rights change, too."""
        return self[:4] == other[:4]


@dataclass(frozen=True, slots=True)
class JsonlDataset:
    """Records in a fixed order, one JSON object a line.

    Attributes:
        path: The file, absolute.
        size_bytes: Its size.
        rows: How many records it holds; ``None`` for a file that we did not write and
            therefore never counted.
        fingerprint: Digest of its bytes, ``xxh3:...``; ``None`` where it was never computed.
        state: Of the file when it had these bytes; ``None`` where that is not known. A file in
            another state is read once more to compare its bytes with ``fingerprint``.
    """

    path: Path
    size_bytes: int
    rows: int | None = None
    fingerprint: str | None = None
    state: FileState | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of_file(cls, path: str | os.PathLike[str]) -> "JsonlDataset":
        """Return a handle on an existing file; nothing of it is read but its first lines.

        Raises:
            InputError: There is no such file, it is none, or it is another format than JSON Lines.
        """
        if is_url(path):
            reason = "is a URL, which a stream reads: give read_jsonl(url) in place of it"
            raise InputError(str(path), reason)
        try:
            absolute = Path(path).expanduser().absolute()
        except RuntimeError as error:  # ~somebody who does not exist
            raise InputError(str(path), str(error)) from None
        size_bytes = content_interval(absolute).end
        check_json_lines(absolute)
        return cls(path=absolute, size_bytes=size_bytes)

    @property
    def identity(self) -> str:
        """What tells this content from another: the digest, or what the file system knows.

        Of a file without a digest: size, modification and change time, and inode. The change time
        cannot be set, so that no rewritten file passes for the old one, whatever its modification
        time says.

        Raises:
            InputError: It cannot be read, or does not hold the content of that digest.
        """
        if self.fingerprint is None:
            now = self.stamp()
            return f"stat:{now.size}:{now.modified_ns}:{now.changed_ns}:{now.inode}"
        self.check_content()
        return self.fingerprint

    def check_content(self) -> None:
        """Refuse a file that does not hold the content of the digest, if there is one.

        A file in the state it had then is not read.

        Raises:
            InputError: It does not, or it cannot be read.
        """
        now = self.stamp()
        if self.fingerprint is None or now == self.state:
            return
        found = f"{now.size:,} bytes, not the {self.size_bytes:,}"
        if now.size == self.size_bytes:
            if _digest(self.path, now) == self.fingerprint:
                return
            found = "other content than"
        reason = (
            f"was changed after its handle was made: it has {found} it was written with; run "
            "again what writes it, or make a handle of it as it is by JsonlDataset.of_file(path)"
        )
        raise InputError(str(self.path), reason)

    def stamp(self) -> FileState:
        """Return the present state of the file; a change may mean another content.

        Raises:
            InputError: It cannot be read.
        """
        return FileState.of(self._status())

    def check_unchanged(self, since: FileState) -> None:
        """Refuse a file that may have another content than when `stamp` was ``since``.

        Where new links or rights may be all that changed, the digest decides, if it is known.

        Raises:
            InputError: It has, or it cannot be read.
        """
        now = self.stamp()
        if now == since:
            return
        if self.fingerprint is None or not now.resembles(since):
            reason = "changed while it was being processed; run again once nobody writes to it"
            raise InputError(str(self.path), reason)
        self.check_content()

    def _status(self) -> os.stat_result:
        try:
            return self.path.stat()
        except OSError as error:
            raise InputError(str(self.path), f"cannot be read: {error.strerror}") from error

    def __iter__(self) -> Iterator[Record]:
        """Yield the records in order, decoding one at a time.

        Raises:
            InputError: A line is no record; file and line are named.
        """
        interval = content_interval(self.path)
        with self.path.open("rb") as file:
            for line in iterate_lines(file.fileno(), [interval]):
                try:
                    yield decode(line.text)
                except ValueError as error:
                    number = self._line_number(line.start)
                    raise InputError(f"{self.path}, line {number}", str(error)) from None

    def read(self) -> list[Record]:
        """Return all records."""
        return list(self)

    def head(self, count: int) -> list[Record]:
        """Return the first ``count`` records."""
        return list(itertools.islice(self, count))

    def sample(self, count: int) -> list[Record]:
        """Return the records among the first ``count`` lines, without those that are none."""
        interval = content_interval(self.path)
        with self.path.open("rb") as file:
            lines = list(itertools.islice(iterate_lines(file.fileno(), [interval]), count))
        records = []
        for line in lines:
            with suppress(ValueError):
                records.append(decode(line.text))
        return records

    def stream(self) -> "DataPipelineBuilder":
        """Return the records as a stream to build on, for reading in a training loop.

        Its state is refused once the content is another. ``shuffle(0)`` shuffles all records
        without holding them, and ``shard()`` behind it leaves the other shards' records unread.
        """
        from dagster_dataops.streams.result_stream import read_stored  # workers do without streams

        return read_stored(self.path, self.size_bytes, self.fingerprint, self.state)

    def _line_number(self, offset: int) -> int:
        with self.path.open("rb") as file:
            return LineCounter(file.fileno()).line_at(offset)


@lru_cache(maxsize=64)
def _digest(path: Path, _: FileState) -> str:
    """Return the digest of a file, read once for as long as it stays in one state."""
    return content_digest(path)
