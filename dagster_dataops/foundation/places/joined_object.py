"""`JoinedObject`: a text that lies in parts of several objects, read like one object.

The list of the parts is an object of its own, whose key ends in `.parts`. The parts are outputs and
earlier results of the same node: who can write the list cannot choose other objects.
"""

import posixpath
import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from itertools import accumulate
from typing import Any, Final, NamedTuple

import orjson

from dagster_dataops.errors import StorageError
from dagster_dataops.foundation.format_numbers import read_number
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.bucket import VERSIONS
from dagster_dataops.foundation.places.confined_names import is_plain
from dagster_dataops.foundation.places.result_store import (
    ConflictError,
    ReadableStore,
    Status,
    Version,
)

PARTS: Final = ".parts"  # the ending of the key of a list
DATA: Final = ".journal/data"  # the folder of outputs in the folder of a node
_LIST: Final = re.compile(rf"(.*)/{re.escape(VERSIONS)}/[^/]+/[^/]+\.jsonl\.parts")
_FORMAT: Final = 2
_ONLY_OUTPUTS: Final = 1  # the format of a list that names outputs alone
_UP: Final = "../.."  # from the folder of outputs to that of the node
_STEP_BYTES: Final = 4 << 20  # that are read at once
_GAP_BYTES: Final = 128 << 10  # between parts that one request reads
_CALLS: Final = 4


class PartList(NamedTuple):
    """Where the bytes of a text are.

    Attributes:
        names: The names of the objects, relative to the folder of outputs, see `name_in_list`.
        objects: Of each part, in the order of the text, the number of its object in ``names``.
        offsets: Where it begins there.
        lengths: Its length.
    """

    names: list[str]
    objects: "array[int]"
    offsets: "array[int]"
    lengths: "array[int]"

    @classmethod
    def empty(cls) -> "PartList":
        """Return a list without parts."""
        return cls([], array("Q"), array("Q"), array("Q"))

    def keys(self, folder: str) -> list[str]:
        """Return the keys of the objects.

        Args:
            folder: The key of the folder of outputs.
        """
        return [posixpath.normpath(f"{folder}/{name}") for name in self.names]

    def to_bytes(self) -> bytes:
        """Return the list as JSON: for each part the number of its object, its place and size."""
        parts = list(zip(self.objects, self.offsets, self.lengths, strict=True))
        number = _ONLY_OUTPUTS if all(map(is_plain, self.names)) else _FORMAT
        return orjson.dumps(
            {"format": number, "folder": f"../../{DATA}", "objects": self.names, "parts": parts}
        )

    @classmethod
    def parse(cls, data: bytes, place: str) -> "PartList | None":
        """Return the list in ``data``; ``None`` if it is malformed.

        Args:
            data: The content of the object.
            place: Its address, for the error.

        Raises:
            NewerVersionError: A newer version has written it.
        """
        try:
            content = orjson.loads(data)
            number = read_number(content["format"], _FORMAT, place)
            names, parts = list(content["objects"]), content["parts"]
            columns: Any = zip(*parts, strict=True) if parts else ((), (), ())
            objects, offsets, lengths = (array("Q", column) for column in columns)
        except (orjson.JSONDecodeError, TypeError, ValueError, KeyError, OverflowError):
            return None
        known = number is not None and all(map(_is_name, names))
        within = max(objects, default=-1) < len(names)
        return cls(names, objects, offsets, lengths) if known and within else None


def name_in_list(key: str) -> str:
    """Return the name by which a list of parts of the same node names an object.

    Args:
        key: Of outputs, or of a published result that is one object.
    """
    *_, folder, place, name = key.split("/")
    return f"{_UP}/{VERSIONS}/{place}/{name}" if folder == VERSIONS else name


def _is_name(name: object) -> bool:
    """Return whether a list may have a name, see `name_in_list`."""
    published = str(name).removeprefix(f"{_UP}/{VERSIONS}/")
    if published == name:
        return is_plain(name)
    place, _, file = published.partition("/")
    return is_plain(place) and is_plain(file)


def pieces_of(store: ReadableStore, key: str, size: int) -> Iterator[tuple[str, int, int]]:
    """Yield key, offset and length of each piece of a published text; none if its list is missing.

    Args:
        store: The store.
        key: Of the text, or of the list of its parts.
        size: Of the text.

    Raises:
        StorageError: The list is damaged.
    """
    if not is_list(key):
        yield key, 0, size
        return
    listed = JoinedObject(store, key)
    if listed.status(key) is not None:
        yield from listed.pieces()


def is_list(key: str) -> bool:
    """Return whether an object with this key is the list of the parts of a result."""
    return _LIST.fullmatch(key) is not None


def readable(store: ReadableStore, key: str) -> ReadableStore:
    """Return the store to read an object from; for a list of parts one that reads the parts."""
    return JoinedObject(store, key) if is_list(key) else store


def parts_of_list(store: ReadableStore, key: str) -> set[str]:
    """Return the keys of the objects that a list names; none if it is missing.

    Raises:
        StorageError: It is damaged.
    """
    opened = JoinedObject(store, key)
    return opened.keys if opened.status(key) is not None else set()


class JoinedObject(ReadableStore):
    """A text in parts. The list is read once, by the first method that needs it.

    Args:
        store: The store.
        key: The key of the list, see `is_list`.
    """

    def __init__(self, store: ReadableStore, key: str) -> None:
        self.url = store.url
        self._store, self._key = store, key
        match = _LIST.fullmatch(key)
        self._folder = f"{match[1] if match else ''}/{DATA}".lstrip("/")
        self._list: PartList | None = None
        self._version = Version("")
        self._starts = array("Q", [0])

    def _read_list(self) -> bool:
        """Read the list; return whether there is one."""
        if self._list is not None:
            return True
        stored = self._store.read(self._key)
        if stored is None:
            return False
        place = f"{self.url}/{self._key}"
        parts = PartList.parse(stored[0], place)
        if parts is None:
            raise StorageError(place, "read the list of parts", "it is damaged")
        self._starts = array("Q", accumulate(parts.lengths, initial=0))
        self._version, self._list = stored[1], parts
        return True

    @property
    def _parts(self) -> PartList:
        if not self._read_list() or self._list is None:
            raise ConflictError(self._key)
        return self._list

    @property
    def keys(self) -> set[str]:
        """The keys of the objects with the parts."""
        return set(self._keys)

    @property
    def _keys(self) -> list[str]:
        return self._parts.keys(self._folder)

    def pieces(self) -> Iterator[tuple[str, int, int]]:
        """Yield key, offset and length of each part, in the order of the text."""
        keys, parts = self._keys, self._parts
        for number, at, length in zip(parts.objects, parts.offsets, parts.lengths, strict=True):
            yield keys[number], at, length

    @override
    def status(self, key: str) -> Status | None:
        return Status(self._starts[-1], self._version) if self._read_list() else None

    @override
    def read(self, key: str) -> tuple[bytes, Version] | None:
        if not self._read_list():
            return None
        return self._bytes(0, self._starts[-1]), self._version

    @override
    def read_start(self, key: str, length: int) -> tuple[Status, bytes] | None:
        status = self.status(key)
        with suppress(ConflictError):  # an object of a part is missing
            return None if status is None else (status, self._bytes(0, min(length, status.size)))
        return None

    @override
    def read_range(self, key: str, start: int, length: int, version: Version | None) -> bytes:
        if not self._read_list() or version not in {None, self._version}:
            raise ConflictError(key)
        return self._bytes(start, min(start + length, self._starts[-1]))

    @override
    def read_on(self, key: str, start: int, end: int, version: Version) -> Iterator[bytes]:
        while start < end:
            data = self.read_range(key, start, min(_STEP_BYTES, end - start), version)
            yield data
            start += len(data)

    def _bytes(self, start: int, end: int) -> bytes:
        """Return bytes of the text. Parts that are close to one another are read at once."""
        wanted = list(self._pieces(start, end))
        requests = _requests(wanted)
        if len(requests) > 1:
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(min(_CALLS, len(requests))) as pool:
                answers = list(pool.map(self._request, requests))
        else:
            answers = list(map(self._request, requests))
        begun = [(request.object, request.start) for request in requests]
        pieces = []
        for piece in wanted:
            at = bisect_right(begun, (piece.object, piece.start)) - 1
            within = piece.start - requests[at].start
            pieces.append(answers[at][within : within + piece.end - piece.start])
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _pieces(self, start: int, end: int) -> Iterator["_Range"]:
        """Yield the ranges of objects that hold bytes of the text, in its order."""
        parts = self._parts
        number = bisect_right(self._starts, start) - 1
        while start < end:
            upto = min(end, self._starts[number + 1])
            if upto > start:
                at = parts.offsets[number] + start - self._starts[number]
                yield _Range(parts.objects[number], at, at + upto - start)
            start, number = upto, number + 1

    def _request(self, wanted: "_Range") -> bytes:
        key = posixpath.normpath(f"{self._folder}/{self._parts.names[wanted.object]}")
        data = self._store.read_range(key, wanted.start, wanted.end - wanted.start, None)
        if len(data) != wanted.end - wanted.start:
            reason = f"it has {wanted.start + len(data):,} bytes, and its list of parts needs more"
            raise StorageError(f"{self.url}/{key}", "read a part of the result", reason)
        return data


class _Range(NamedTuple):
    """A range of bytes of an object."""

    object: int
    start: int
    end: int


def _requests(wanted: list[_Range]) -> list[_Range]:
    """Return ranges that hold all wanted ones, sorted; those with small gaps are joined."""
    joined: list[_Range] = []
    for piece in sorted(wanted):
        last = joined[-1] if joined else None
        if last and last.object == piece.object and piece.start <= last.end + _GAP_BYTES:
            joined[-1] = last._replace(end=max(last.end, piece.end))
        else:
            joined.append(piece)
    return joined
