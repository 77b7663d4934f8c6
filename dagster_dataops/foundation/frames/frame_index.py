"""`FrameIndex`: the index at the end of a text in compressed frames.

The file is one of the public "seekable format" of Zstandard::

    frame 0 .. frame n-1    whole lines, up to 1 MiB of text each; each with its checksum
    note                    a skippable frame: size and digest of the text, checksum of the index
    seek table              a skippable frame: sizes and checksum of each frame and of the note

Other programs skip the two last frames. The seek table has no checksum of its own, and an entry
with another size would move all texts behind it; hence the note.
"""

import struct
from array import array
from itertools import accumulate
from typing import Final, NamedTuple

import xxhash

FRAME_BYTES: Final = 1 << 20  # of text
FRAME_START: Final = b"\x28\xb5\x2f\xfd"
LEAST_BYTES: Final = 13  # of a frame: its start, a header, a block, the checksum
_SKIPPABLE: Final = struct.Struct("<II")  # magic number, size of what follows
_ENTRY: Final = struct.Struct("<III")  # compressed size, size of the text, its checksum
_FOOTER: Final = struct.Struct("<IBI")  # number of entries, features, magic number
_FACTS: Final = struct.Struct("<BQ16s")  # of the note: whether frames begin lines, size, digest
_TABLE_MAGIC: Final = 0x184D2A5E
_FOOTER_MAGIC: Final = 0x8F92EAB1
_NOTE_MAGIC: Final = 0x184D2A5D
_MARK: Final = b"DOframe1"
_CHECKSUMS: Final = 0x80  # the feature that entries have checksums; no other is used
_NO_TEXT: Final = xxhash.xxh64_intdigest(b"") & 0xFFFFFFFF  # the checksum of the note
NOTE_BYTES: Final = _SKIPPABLE.size + len(_MARK) + _FACTS.size + 8  # a checksum at its end
_NOTE_ENTRY: Final = _ENTRY.pack(NOTE_BYTES, 0, _NO_TEXT)
TAIL_BYTES: Final = 64 << 10  # holds the index of five gigabytes of text


class IndexDamage(Exception):  # noqa: N818 - it becomes an error with the name of the file
    """The index cannot be used; the message is the reason, as the end of a sentence."""


class FrameIndex(NamedTuple):
    """Where the frames are.

    Attributes:
        places: The position of each frame in the file, then the end of the last one.
        starts: The position of the text of each frame in the text, then the size of the text.
        checksums: The checksum of the text of each frame, which is also the end of the frame.
        digest: The digest of the text, ``xxh3:...``.
        lines: Whether each frame begins with a line.
    """

    places: "array[int]"
    starts: "array[int]"
    checksums: "array[int]"
    digest: str
    lines: bool

    @property
    def frames(self) -> int:
        """The number of frames."""
        return len(self.checksums)


def packed_entry(frame: bytes, size: int) -> bytes:
    """Return the entry of a frame in the seek table.

    Args:
        frame: The frame, which ends with the checksum of its text.
        size: The size of its text.
    """
    return _ENTRY.pack(len(frame), size, int.from_bytes(frame[-4:], "little"))


def packed_index(entries: bytes, size: int, digest: bytes, *, lines: bool) -> bytes:
    """Return note and seek table, the end of a file.

    Args:
        entries: Those of all frames, by `packed_entry`.
        size: The size of the text.
        digest: The digest of the text.
        lines: Whether each frame begins with a line.
    """
    facts = _FACTS.pack(lines, size, digest)
    head = _SKIPPABLE.pack(_NOTE_MAGIC, NOTE_BYTES - _SKIPPABLE.size)
    note = head + _MARK + facts + _checksum(entries + facts)
    table = entries + _NOTE_ENTRY
    head = _SKIPPABLE.pack(_TABLE_MAGIC, len(table) + _FOOTER.size)
    return note + head + table + _FOOTER.pack(len(table) // _ENTRY.size, _CHECKSUMS, _FOOTER_MAGIC)


def _checksum(data: bytes) -> bytes:
    return xxhash.xxh3_64_digest(data)


def has_footer(tail: bytes) -> bool:
    """Return whether the end of a file is that of a seek table."""
    return tail[-4:] == _FOOTER_MAGIC.to_bytes(4, "little")


def index_bytes(tail: bytes) -> int:
    """Return the size of note and seek table, which the last bytes of a file with one tell."""
    entries, features, _ = _FOOTER.unpack(tail[-_FOOTER.size :].rjust(_FOOTER.size, b"\0"))
    if features != _CHECKSUMS:  # of another program
        return 0
    return int(NOTE_BYTES + _SKIPPABLE.size + entries * _ENTRY.size + _FOOTER.size)


def is_ours(data: bytes) -> bool:
    """Return whether an index has our note; the arguments are those of `parsed_index`."""
    return data[_SKIPPABLE.size :].startswith(_MARK)


def noted_text(part: bytes) -> tuple[int, bytes] | None:
    """Return the size and the digest of the text of which a frame is our note, else ``None``."""
    start = _SKIPPABLE.pack(_NOTE_MAGIC, NOTE_BYTES - _SKIPPABLE.size) + _MARK
    if len(part) < NOTE_BYTES or not part.startswith(start):
        return None
    _, size, digest = _FACTS.unpack_from(part, len(start))
    return size, digest


def parsed_index(data: bytes, file_bytes: int) -> FrameIndex:
    """Return the index.

    Args:
        data: Note and seek table, as many bytes as `index_bytes` tells.
        file_bytes: The size of the file.

    Raises:
        IndexDamage: It is damaged, or that of another file.
    """
    note, head, table = _divided(data)
    start = _SKIPPABLE.pack(_NOTE_MAGIC, NOTE_BYTES - _SKIPPABLE.size) + _MARK
    facts = note[len(start) : -8]
    is_whole = note == start + facts + _checksum(table + facts)
    if not is_whole or head != (_TABLE_MAGIC, len(data) - NOTE_BYTES - _SKIPPABLE.size):
        raise IndexDamage("has a damaged index of frames: it does not match its checksum")
    lines, size, digest = _FACTS.unpack(facts)
    entries = list(_ENTRY.iter_unpack(table))
    starts = array("Q", accumulate((text for _, text, _ in entries), initial=0))
    places = array("Q", accumulate((stored for stored, _, _ in entries), initial=0))
    if places[-1] + len(data) != file_bytes or size != starts[-1]:
        raise IndexDamage(
            f"has an index of frames of another file, of {places[-1] + len(data):,} bytes; this "
            f"file has {file_bytes:,}"
        )
    checksums = array("I", (checksum for _, _, checksum in entries))
    return FrameIndex(places, starts, checksums, f"xxh3:{digest.hex()}", bool(lines))


def _divided(data: bytes) -> tuple[bytes, tuple[int, int], bytes]:
    """Return the note, the head of the seek table, and its entries without that of the note."""
    note, rest = data[:NOTE_BYTES], data[NOTE_BYTES:]
    entries = rest[_SKIPPABLE.size : -_FOOTER.size]
    if not entries.endswith(_NOTE_ENTRY):
        raise IndexDamage("has a damaged index of frames: its last entry is not that of its note")
    magic, size = _SKIPPABLE.unpack(rest[: _SKIPPABLE.size])
    return note, (magic, size), entries[: -_ENTRY.size]
