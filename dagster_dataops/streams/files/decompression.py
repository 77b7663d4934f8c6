"""Decompress files while reading: gzip, bzip2, xz and, with an extra, Zstandard.

A truncated file yields all bytes that can be decompressed and then raises an error, so it is never
taken for a shorter file. A damaged file yields the compressed blocks before the damage. The text
of a compressed result is compared with its index, which tells frames that are missing or moved, or
with its manifest if the index is missing, too.
"""

import bz2
import lzma
import zlib
from collections.abc import Callable
from typing import Any, Final

import xxhash

from dagster_dataops.errors import DamagedFileError, MissingExtraError, StreamSourceError
from dagster_dataops.streams.files.contents import ByteSource

SUFFIXES: Final = {
    ".gz": "gzip",
    ".bgz": "gzip",
    ".bz2": "bz2",
    ".xz": "xz",
    ".zst": "zstd",
    ".zstd": "zstd",
    ".tgz": "gzip",
    ".tbz2": "bz2",
    ".txz": "xz",
    ".tzst": "zstd",
}
PACKED_TARS: Final = (".tgz", ".tbz2", ".txz", ".tzst")  # short for .tar.gz and so on
_MAX_WINDOW_BYTES: Final = 1 << 31  # of Zstandard: the largest that `zstd --long` writes
_ZERO_PADDED: Final = {"gzip", "xz"}  # kinds with zero bytes between or after parts
_COMPRESSED_BYTES: Final = 64 << 10  # compressed bytes read at once
# Compressed bytes passed on at once. With zstd, 4 bytes can hold 128 KiB: these, 128 MiB.
_PIECE_BYTES: Final = 4 << 10
_OTHER_TEXT: Final = (
    "has an index of another text: frames are missing, moved, or those of another file"
)
_NO_INDEX: Final = (
    "has no index of frames at its end, and its manifest is that of another text: it was cut off, "
    "or another program wrote it; move a file that is to stay as it is to another folder"
)


def _zstd() -> Any:
    try:
        import zstandard
    except ImportError:
        raise MissingExtraError("reading Zstandard files", "zstd") from None
    return zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES).decompressobj()


_DECOMPRESSORS: Final[dict[str, Callable[[], Any]]] = {
    "gzip": lambda: zlib.decompressobj(wbits=zlib.MAX_WBITS | 16),
    "bz2": bz2.BZ2Decompressor,
    "xz": lzma.LZMADecompressor,
    "zstd": _zstd,
}
KINDS: Final = tuple(_DECOMPRESSORS)
_FIRST_BYTES: Final = {
    "gzip": (b"\x1f\x8b",),
    "bz2": (b"BZh",),
    "xz": (b"\xfd7zXZ\0",),
    "zstd": (b"\x28\xb5\x2f\xfd", *(bytes((low, 0x2A, 0x4D, 0x18)) for low in range(0x50, 0x60))),
}


class DecompressedSource:
    """The decompressed content of a file with one or more concatenated compressed parts.

    Args:
        path: The path to show in messages.
        open_source: Opens the compressed file.
        kind: The compression, one of `KINDS`.
        digest_of: Returns the digest of a compressed result by its manifest; ``None`` without one.

    Raises:
        MissingExtraError: The package for this compression is not installed.
    """

    def __init__(
        self,
        path: str,
        open_source: Callable[[], ByteSource],
        kind: str,
        digest_of: Callable[[], str | None],
    ) -> None:
        self._path, self._kind, self._digest_of = path, kind, digest_of
        self._decompressor: Any = _DECOMPRESSORS[kind]()
        self._source = open_source()
        self._begun = False  # whether any byte of the current part was read
        self._check = _TextCheck() if kind == "zstd" else None
        self._compressed = memoryview(b"")
        self._decompressed = b""
        self._at = 0  # the number of decompressed bytes already returned
        self._failure: StreamSourceError | None = None

    def read(self, size: int, /) -> bytes:
        """Return up to ``size`` bytes; empty at the end.

        Raises:
            StreamSourceError: The file is damaged or truncated here.
        """
        while self._at == len(self._decompressed):
            if self._failure is not None:
                raise self._failure
            if not self._decompress_more():
                return b""
        part = self._decompressed[self._at : self._at + size]
        self._at += len(part)
        return part

    def _decompress_more(self) -> bool:
        """Decompress the next piece; return whether there was one."""
        if not self._compressed and not self._read_compressed():
            return False
        if not self._begun and self._kind in _ZERO_PADDED:
            self._compressed = memoryview(bytes(self._compressed).lstrip(b"\0"))
            if not self._compressed:
                return True
        self._begun = True
        piece, self._compressed = self._compressed[:_PIECE_BYTES], self._compressed[_PIECE_BYTES:]
        try:
            self._decompressed, self._at = self._decompressor.decompress(piece), 0
        except MemoryError:  # not caused by the data
            raise
        except Exception as error:
            self._failure = self._error(f"is not valid {self._kind} data: {error}")
            raise self._failure from error
        if self._check is not None:
            self._check.add(piece, self._decompressed)
        if self._decompressor.eof:
            self._end_part()
        return True

    def _end_part(self) -> None:
        if self._check is not None and not self._check.end_part():
            self._failure = self._error(_OTHER_TEXT)
            raise self._failure
        self._compressed = memoryview(self._decompressor.unused_data + self._compressed)
        self._decompressor, self._begun = _DECOMPRESSORS[self._kind](), False

    def _read_compressed(self) -> bool:
        """Read the next compressed bytes; return whether there were any."""
        self._compressed = memoryview(self._source.read(_COMPRESSED_BYTES))
        if not self._compressed and self._begun:
            self._failure = self._error("is truncated: the compressed data has no end")
            raise self._failure
        if not self._compressed and self._check is not None and not self._check.noted:
            digest = self._digest_of()
            if digest not in {None, self._check.digest}:
                self._failure = self._error(_NO_INDEX)
                raise self._failure
        return bool(self._compressed)

    def _error(self, reason: str) -> StreamSourceError:
        advice = "the content before this point was read; fetch or write the file again"
        return DamagedFileError(self._path, f"{reason}; {advice}")

    def close(self) -> None:
        """Close the compressed file."""
        self._source.close()


class _TextCheck:
    """Compares a text with the note that `FrameWriter` puts behind its frames.

    Attributes:
        noted: Whether no text follows the last note.
    """

    def __init__(self) -> None:
        from dagster_dataops.foundation.frames import frame_index  # only for Zstandard

        self._frames = frame_index
        self._part = b""  # the first bytes of the current part
        self._digest, self._size = xxhash.xxh3_128(), 0
        self.noted = False

    @property
    def digest(self) -> str:
        """The digest of the text after the last note."""
        return f"xxh3:{self._digest.hexdigest()}"

    def add(self, piece: memoryview, text: bytes) -> None:
        """Take a piece of the current part, and its text."""
        if len(self._part) < self._frames.NOTE_BYTES:
            self._part += piece[: self._frames.NOTE_BYTES]
        self._digest.update(text)
        self._size += len(text)
        self.noted = self.noted and not text

    def end_part(self) -> bool:
        """End a part; return whether it is no note, or that of the text before it."""
        noted, self._part = self._frames.noted_text(self._part), b""
        if noted is None:
            return True
        present = self._size, self._digest.digest()
        self._digest, self._size, self.noted = xxhash.xxh3_128(), 0, True
        return noted == present


class _Begun:
    """A source of which the first bytes were read."""

    def __init__(self, head: bytes, rest: ByteSource) -> None:
        self._head, self._rest = head, rest

    def read(self, size: int, /) -> bytes:
        part, self._head = self._head[:size], self._head[size:]
        return part or self._rest.read(size)

    def close(self) -> None:
        self._rest.close()


def decompressed(
    path: str, source: ByteSource, kind: str, digest_of: Callable[[], str | None]
) -> ByteSource:
    """Return the decompressed content of a source that may have decompressed it already.

    An HTTP server that sends a ``.gz`` file with ``Content-Encoding: gzip`` makes the client do so.

    Args:
        path: The path to show in messages.
        source: The file, at its start.
        kind: The compression by the name of the file, one of `KINDS`.
        digest_of: As for `DecompressedSource`.

    Raises:
        MissingExtraError: The package for this compression is not installed.
        StreamSourceError: The file cannot be read.
    """
    first = _FIRST_BYTES[kind]
    head = b""
    while len(head) < len(first[0]) and (part := source.read(len(first[0]) - len(head))):
        head += part
    begun = _Begun(head, source)
    if head and not head.startswith(first):
        return begun
    return DecompressedSource(path, lambda: begun, kind, digest_of)
