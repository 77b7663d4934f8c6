"""JsonlDataset: a handle on one jsonl file, cheap to pass around, never the rows themselves."""

import itertools
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dagster_dataops.datasets.formats import check_json_lines
from dagster_dataops.datasets.lines import LineCounter, content_interval, iterate_lines
from dagster_dataops.errors import InputError
from dagster_dataops.records import Record, decode

if TYPE_CHECKING:
    from dagster_dataops.streams.pipeline import DataPipelineBuilder


@dataclass(frozen=True, slots=True)
class JsonlDataset:
    """Records in a fixed order, one JSON object a line.

    Attributes:
        path: The file, absolute.
        size_bytes: Its size.
        rows: How many records it holds; ``None`` for a file that we did not write and
            therefore never counted.
        fingerprint: Digest of its bytes, ``xxh3:...``; ``None`` where it was never computed.
    """

    path: Path
    size_bytes: int
    rows: int | None = None
    fingerprint: str | None = None

    @classmethod
    def of_file(cls, path: str | os.PathLike[str]) -> "JsonlDataset":
        """Return a handle on an existing file; nothing of it is read but its first lines.

        Raises:
            InputError: There is no such file, it is none, or it is another format than JSON Lines.
        """
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
            InputError: It cannot be read, or is not as long as the content of that digest.
        """
        status = self._status()
        if self.fingerprint is not None:
            if status.st_size != self.size_bytes:
                reason = (
                    f"has {status.st_size:,} bytes, not the {self.size_bytes:,} it was published "
                    "with; run again what writes it"
                )
                raise InputError(str(self.path), reason)
            return self.fingerprint
        times = f"{status.st_mtime_ns}:{status.st_ctime_ns}"
        return f"stat:{status.st_size}:{times}:{status.st_ino}"

    def stamp(self) -> tuple[int, int, int, int]:
        """Return device, inode, size and modification time; a change means another content."""
        status = self._status()
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns

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
        from dagster_dataops.streams.stored import read_stored  # workers do without streams

        return read_stored(self.path, self.size_bytes, self.fingerprint)

    def _line_number(self, offset: int) -> int:
        with self.path.open("rb") as file:
            return LineCounter(file.fileno()).line_at(offset)
