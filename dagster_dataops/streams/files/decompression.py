"""Packed files, unpacked as they are read: gzip, bzip2, xz and, by an extra, Zstandard.

Of a file that was cut off, all that can be unpacked is given out, then comes the error: it never
passes for a shorter file, as it does where a library stops at the end of its input. Of a damaged
one, what stands in the packed blocks before the damage is given out.
"""

import bz2
import lzma
import zlib
from collections.abc import Callable
from typing import Any, Final

from dagster_dataops.errors import MissingExtraError, StreamSourceError
from dagster_dataops.streams.files.contents import Source

SUFFIXES: Final = {
    ".gz": "gzip",
    ".bgz": "gzip",
    ".bz2": "bz2",
    ".xz": "xz",
    ".zst": "zstd",
    ".zstd": "zstd",
}
_PACKED_BYTES: Final = 64 << 10  # read at once
# Unpacked at once. 128 KiB of one byte take 4 bytes with zstd, so this may become 128 MiB.
_PIECE_BYTES: Final = 4 << 10


def _zstd() -> Any:
    try:
        import zstandard
    except ImportError:
        raise MissingExtraError("reading Zstandard files", "zstd") from None
    return zstandard.ZstdDecompressor().decompressobj()


_UNPACKERS: Final[dict[str, Callable[[], Any]]] = {
    "gzip": lambda: zlib.decompressobj(wbits=zlib.MAX_WBITS | 16),
    "bz2": bz2.BZ2Decompressor,
    "xz": lzma.LZMADecompressor,
    "zstd": _zstd,
}
KINDS: Final = tuple(_UNPACKERS)


class Unpacked:
    """The content of a packed file, of one part or of several one behind another.

    Args:
        path: What messages call it.
        open_source: Opens the packed bytes.
        kind: How they are packed, of `KINDS`.

    Raises:
        MissingExtraError: What unpacks them is not installed.
    """

    def __init__(self, path: str, open_source: Callable[[], Source], kind: str) -> None:
        self._path, self._kind = path, kind
        self._unpacker: Any = _UNPACKERS[kind]()
        self._source = open_source()
        self._begun = False  # whether anything of the present part was read
        self._packed = memoryview(b"")
        self._unpacked = b""
        self._at = 0  # how much of the unpacked has been given out
        self._failure: StreamSourceError | None = None

    def read(self, size: int, /) -> bytes:
        """Return up to ``size`` bytes; none at the end.

        Raises:
            StreamSourceError: It is damaged or cut off here.
        """
        while self._at == len(self._unpacked):
            if self._failure is not None:
                raise self._failure
            if not self._unpack():
                return b""
        part = self._unpacked[self._at : self._at + size]
        self._at += len(part)
        return part

    def _unpack(self) -> bool:
        """Unpack some more; return whether there was any more."""
        if not self._packed and not self._read_packed():
            return False
        if not self._begun and self._kind == "gzip":
            self._packed = memoryview(bytes(self._packed).lstrip(b"\0"))  # the padding of files
            if not self._packed:
                return True
        self._begun = True
        piece, self._packed = self._packed[:_PIECE_BYTES], self._packed[_PIECE_BYTES:]
        try:
            self._unpacked, self._at = self._unpacker.decompress(piece), 0
        except MemoryError:  # it says nothing of the data
            raise
        except Exception as error:
            self._failure = self._refused(f"is no sound {self._kind} data: {error}")
            raise self._failure from error
        if self._unpacker.eof:
            self._packed = memoryview(self._unpacker.unused_data + self._packed)
            self._unpacker, self._begun = _UNPACKERS[self._kind](), False
        return True

    def _read_packed(self) -> bool:
        """Read some more of what is packed; return whether there was any more."""
        self._packed = memoryview(self._source.read(_PACKED_BYTES))
        if not self._packed and self._begun:
            self._failure = self._refused("is cut off: the packed data has no end")
            raise self._failure
        return bool(self._packed)

    def _refused(self, reason: str) -> StreamSourceError:
        advice = "what stands before has been read; fetch or write the file anew"
        return StreamSourceError(self._path, f"{reason}; {advice}")

    def close(self) -> None:
        """Close what it reads."""
        self._source.close()
