"""Read the headers of tar archives: USTAR, GNU with long names, and PAX.

Every read is a ``pread`` of a header. Sparse files, links and unusual extensions are reported by
`UncommonTarError`; `uncommon_tars` reads such archives by Python's tarfile.
"""

import re
import struct
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias
from zlib import adler32

from dagster_dataops.errors import StreamSourceError
from dagster_dataops.training.filestores.sample_names import split_name

BLOCK: Final = 512
Read = Callable[[int, int], bytes]
"""Returns ``size`` bytes from an offset; fewer only at the end of the file."""

FILE, _OLD_FILE, _CONTIGUOUS = 48, 0, 55
_LONG_NAME, _LONG_LINK = ord("L"), ord("K")
_PAX: Final = frozenset(b"xX")
_GLOBAL: Final = ord("g")
_LINKS: Final = frozenset(b"12")
_SPARSE: Final = ord("S")
_WITHOUT_CONTENT: Final = frozenset(b"123456")  # links, devices, folders, pipes
_MAX_EXTENSION: Final = 1 << 20  # bytes of a long name or of PAX records
_MAX_EXTENSIONS: Final = 100  # extension headers of one member
_PAX_RECORD: Final = re.compile(rb"(\d{1,20}) ([^=]+)=")
_CHANGING: Final = ("GNU.sparse.", "hdrcharset")  # extensions that tarfile handles
_KEPT_GLOBALS: Final = frozenset({"path", "size", "linkpath"})


class UncommonTarError(Exception):
    """An archive has a member that only tarfile can read."""


class Member(NamedTuple):
    """A member of an archive.

    Attributes:
        name: Its name.
        offset: The first byte of its content.
        size: The size of its content.
        is_file: Whether it is a regular file.
        end: The first byte of the next member.
    """

    name: str
    offset: int
    size: int
    is_file: bool
    end: int


class _Checksums(dict[bytes, int]):
    """Checksums of headers, by the bytes of their field, in the form in which adler32 has them.

    The low 16 bits of adler32 are the sum of the bytes plus 1, for fewer than 257 bytes exactly.
    """

    def __missing__(self, field: bytes) -> int:
        try:
            number = int(field.rstrip(b"\0 "), 8) - 256 + sum(field) + 1
        except ValueError:
            number = -1
        if len(self) > _MAX_CHECKSUMS:
            self.clear()
        self[field] = number
        return number


_MAX_CHECKSUMS: Final = 100_000
CHECKSUMS: Final = _Checksums()
"""The sum of all bytes of a valid header plus 1, by its checksum field."""

unpack_header: Final = struct.Struct("<100s24x11sB12x8s").unpack_from
"""Returns name, size, byte behind the size, and checksum."""

REST: Final = 156  # the rest of a header, from the type on, is equal in most headers of an archive
PLAIN_RESTS: Final[dict[bytes, int]] = {}
"""For rests of simple headers of regular files the sum of their bytes, for others -1."""


def plain_rest(rest: bytes) -> int:
    """Return the sum of the bytes of a header's rest; -1 if the header is not simple."""
    known = PLAIN_RESTS.get(rest)
    if known is None:
        if len(PLAIN_RESTS) > _MAX_CHECKSUMS:
            PLAIN_RESTS.clear()
        is_plain = rest[0] == FILE and not rest[345 - REST]
        known = PLAIN_RESTS[rest] = sum(rest) if is_plain else -1
    return known


PlacedFile: TypeAlias = tuple[str, int, int, int]
"""Name, first byte of the header, first byte of the content, and size of a regular file."""


def plain_files(data: bytes, at: int, base: int) -> list[PlacedFile]:
    """Return the regular files whose headers are simple and follow each other in ``data``.

    ``at`` is the start of a header in ``data``, and ``base`` the place of ``data`` in the archive.
    """
    files: list[PlacedFile] = []
    last, known, other = len(data) - BLOCK, b"", -1
    while at <= last:
        text, digits, behind, checksum = unpack_header(data, at)
        rest = data[at + REST : at + BLOCK]
        if rest != known:
            known, other = rest, plain_rest(rest)
        if other < 0 or behind & 0xDF:
            break
        if (adler32(data[at : at + REST]) & 0xFFFF) + other != CHECKSUMS[checksum]:
            break
        try:
            size, name = int(digits, 8), text.rstrip(b"\0").decode()
        except ValueError:  # base 256, or a name in another encoding
            break
        if size < 0 or "\0" in name:
            break
        offset = at + BLOCK
        files.append((name, base + at, base + offset, size))
        at = offset + (size + 511 & -512)
    return files


def torn(path: str, at: int) -> StreamSourceError:
    """Return the error for an archive that ends at byte ``at`` without an end-of-archive block."""
    reason = (
        f"the archive is torn: it ends within a sample, or without its end-of-archive block, after "
        f"byte {at:,}; write it again, or skip the rest of it with on_error='skip'"
    )
    return StreamSourceError(path, reason)


def damaged(path: str, at: int, fault: str) -> StreamSourceError:
    """Return the error for an invalid header at byte ``at``."""
    reason = (
        f"the header at byte {at:,} is damaged: {fault}; write the archive again, or skip the rest "
        "of it with on_error='skip'"
    )
    return StreamSourceError(path, reason)


class HeaderReader:
    """Reads any header of an archive."""

    def __init__(self, path: str, read: Read) -> None:
        self.path, self._read = path, read

    def member(self, at: int) -> Member | None:
        """Return the member whose first header starts at ``at``; ``None`` at the end.

        Raises:
            StreamSourceError: The archive is torn, or the header is damaged.
            UncommonTarError: Only tarfile can read the member.
        """
        name: str | None = None
        pax: dict[str, str] = {}
        first = at
        for _ in range(_MAX_EXTENSIONS):
            header = self._read(BLOCK, at)
            if len(header) < BLOCK:
                raise torn(self.path, first)
            if header.count(0) == BLOCK:
                if at == first:
                    return None
                raise torn(self.path, first)
            self._check(header, at)
            size, kind = self._number(header[124:136], at), header[156]
            if kind in {_LONG_NAME, _LONG_LINK}:
                text = self._extension(at, size)
                if kind == _LONG_NAME and name is None and "path" not in pax:
                    name = _text(text)
            elif kind in _PAX or kind == _GLOBAL:
                records = self._records(self._extension(at, size), at)
                self._use_records(records, pax, name, is_global=kind == _GLOBAL)
            else:
                return self._member(header, at, size, name, pax)
            at += BLOCK + padded(size)
        raise damaged(self.path, first, "it has too many extensions")

    def _use_records(
        self, records: dict[str, str], pax: dict[str, str], name: str | None, *, is_global: bool
    ) -> None:
        if any(record.startswith(_CHANGING) for record in records):
            raise UncommonTarError
        if is_global:
            if not _KEPT_GLOBALS.isdisjoint(records):
                raise UncommonTarError
            return
        if name is not None:
            records.pop("path", None)  # the first extension wins
        for key, value in records.items():
            pax.setdefault(key, value)

    def _member(
        self, header: bytes, at: int, size: int, name: str | None, pax: dict[str, str]
    ) -> Member:
        kind = header[156]
        path = _text(header[:100])
        prefix = _text(header[345:500])
        if prefix and kind != _SPARSE:
            path = f"{prefix}/{path}"
        is_folder = kind == _OLD_FILE and path.endswith("/")
        if "path" in pax:
            path = pax["path"].rstrip("/")
        elif name is not None:
            path = name
        if "size" in pax:
            size = self._pax_size(pax["size"], at)
        if kind == _SPARSE or (kind in _LINKS and split_name(path) is not None):
            raise UncommonTarError
        offset = at + BLOCK
        has_content = kind not in _WITHOUT_CONTENT and not is_folder
        end = offset + (padded(size) if has_content else 0)
        is_file = kind in {FILE, _OLD_FILE, _CONTIGUOUS} and not is_folder
        return Member(path, offset, size, is_file, end)

    def _pax_size(self, text: str, at: int) -> int:
        if not text.isascii() or not text.isdigit():
            raise damaged(self.path, at, f"its PAX size is {text!r}")
        return int(text)

    def _extension(self, at: int, size: int) -> bytes:
        if size > _MAX_EXTENSION:
            raise damaged(self.path, at, f"its extension has {size:,} bytes")
        data = self._read(size, at + BLOCK)
        if len(data) < size:
            raise torn(self.path, at)
        return data

    def _records(self, data: bytes, at: int) -> dict[str, str]:
        records, place = {}, 0
        while place < len(data) and data[place]:
            match = _PAX_RECORD.match(data, place)
            end = place + int(match[1]) if match else 0
            if not match or not match.end() < end <= len(data) or data[end - 1] != ord("\n"):
                raise damaged(self.path, at, "its PAX records are invalid")
            value = data[match.end() : end - 1]
            key = match[2].decode("utf-8", "surrogateescape")
            records[key] = value.decode("utf-8", "surrogateescape")
            place = end
        return records

    def _check(self, header: bytes, at: int) -> None:
        """Compare the checksum, of unsigned or of signed bytes."""
        stored = self._number(header[148:156], at)
        field = header[148:156]
        unsigned = 256 + sum(header) - sum(field)
        signed = unsigned - 256 * (_high(header) - _high(field))
        if stored not in {unsigned, signed}:
            raise damaged(self.path, at, "its checksum is wrong")

    def _number(self, field: bytes, at: int) -> int:
        """Return a number: octal digits, or big-endian bytes behind a mark (base 256)."""
        if field[0] in {0o200, 0o377}:
            number = int.from_bytes(field[1:], "big")
            if field[0] == 0o377:
                number -= 256 ** (len(field) - 1)
        else:
            digits = field.partition(b"\0")[0].strip()
            try:
                number = int(digits.decode("ascii") or "0", 8)
            except ValueError:
                raise damaged(self.path, at, f"{field!r} is no number") from None
        if number < 0:
            raise damaged(self.path, at, f"{field!r} is a negative number")
        return number


def _high(data: bytes) -> int:
    return sum(1 for byte in data if byte > 127)


def padded(size: int) -> int:
    """Return the bytes that a content of ``size`` bytes takes up in an archive."""
    return -(-size // BLOCK) * BLOCK


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "surrogateescape")
