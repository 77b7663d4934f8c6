"""JSON Lines, also compressed, and JSON arrays."""

import gzip
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final, Literal, TypeAlias, cast

from dagster_dataops.datasets.exporters.exporter import ExportRecords, Place
from dagster_dataops.datasets.exporters.packages import require
from dagster_dataops.datasets.lines import split_lines
from dagster_dataops.errors import DefinitionError

Compression: TypeAlias = Literal["gz", "zst"]
COMPRESSIONS: Final = (None, "gz", "zst")
_LEVELS: Final = {"gz": 6, "zst": 3}
_LEAST_DIGITS: Final = 5  # of the number in the name of a file
_BUFFER_BYTES: Final = 1 << 20


class JsonLinesFile:
    """Writes one JSON object per line; uncompressed with the bytes of the result.

    Args:
        compression: ``None``, ``gz`` or ``zst``.
    """

    format = "jsonl"
    place: Place = "file"

    def __init__(self, compression: Compression | None = None) -> None:
        self._compression = checked_compression(compression)

    def write(self, records: ExportRecords, place: Path) -> None:
        """Write the lines of the records."""
        with opened(place, self._compression) as file:
            for lines in records.lines():
                file.write(lines)


class JsonLinesFolder:
    """Writes a folder of files with so many JSON objects each, one per line; the last has the rest.

    The files are ``part-00000.jsonl`` and so on, with the ending of the compression. In order of
    their names they hold the records in order. Without records there is one empty file.

    Args:
        records_per_file: The number of records in each file but the last.
        compression: ``None``, ``gz`` or ``zst``.
    """

    format = "jsonl"
    place: Place = "folder"

    def __init__(self, records_per_file: int, compression: Compression | None = None) -> None:
        self._records = records_per_file
        self._compression = checked_compression(compression)

    def write(self, records: ExportRecords, place: Path) -> None:
        """Write the files."""
        lines = (line for block in records.lines() for line in split_lines(block))
        paths: list[Path] = []
        first = next(lines, None)
        while first is not None or not paths:
            paths.append(place / str(len(paths)))
            with opened(paths[-1], self._compression) as file:
                file.write(first or b"")
                for line in islice(lines, self._records - 1):
                    file.write(line)
            first = next(lines, None)
        digits = max(_LEAST_DIGITS, len(str(len(paths) - 1)))  # so that names sort in order
        ending = f".jsonl.{self._compression}" if self._compression else ".jsonl"
        for number, path in enumerate(paths):
            path.rename(place / f"part-{number:0{digits}d}{ending}")


def checked_compression(compression: str | None) -> Compression | None:
    """Check the name of a compression, and that its package is installed; return it.

    Raises:
        DefinitionError: There is no such compression.
        MissingExtraError: Its package is not installed.
    """
    if compression not in COMPRESSIONS:
        msg = f"compression is {compression!r}; it must be None, 'gz' or 'zst'"
        raise DefinitionError(msg)
    if compression == "zst":
        require("zstandard", "writing Zstandard files", "zstd")
    return cast("Compression | None", compression)


def compression_of(name: str) -> Compression | None:
    """Return the compression that the ending of a file names."""
    for ending in _LEVELS:
        if name.endswith(f".{ending}"):
            return cast("Compression", ending)
    return None


def write_array(lines: Iterable[bytes], file: BinaryIO) -> None:
    """Write JSON lines as one JSON array, an element per line."""
    before = b"[\n"
    for line in lines:
        file.write(before + line.rstrip(b"\n"))
        before = b",\n"
    file.write(b"[]\n" if before == b"[\n" else b"\n]\n")


@contextmanager
def opened(path: Path, compression: Compression | None) -> Iterator[BinaryIO]:
    """Open a new file for writing; equal contents give equal bytes."""
    with path.open("xb", buffering=_BUFFER_BYTES) as file:
        if compression is None:
            yield file
        elif compression == "gz":
            level = _LEVELS[compression]
            with gzip.GzipFile("", "wb", compresslevel=level, fileobj=file, mtime=0) as packed:
                yield cast("BinaryIO", packed)
        else:
            import zstandard

            packer = zstandard.ZstdCompressor(level=_LEVELS[compression], write_checksum=True)
            with packer.stream_writer(file, closefd=False) as packed:
                yield packed
