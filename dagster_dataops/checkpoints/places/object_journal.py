"""ObjectJournal: the journal of a node as numbered objects, each created once.

The number is the fence. A run takes a node over by creating the next number; from then on the
number after it is not what the earlier run expects, and its next entry is refused. Entries up to
the number of the latest publication are void. The object with this number is never deleted before
a later publication, so that no earlier run gets past it.
"""

import os
import re
import socket
import uuid
from collections.abc import Container, Iterator
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import orjson

from dagster_dataops.errors import LostError, StorageError
from dagster_dataops.foundation.places.joined_object import DATA
from dagster_dataops.foundation.places.result_store import ConflictError, ResultStore

_NUMBER: Final = re.compile("[0-9]{8,}")
_MOST: Final = 1 << 53  # entries, far more than runs can make
_READERS: Final = 8  # entries that are read at once


class ObjectEntry(NamedTuple):
    """An entry.

    Attributes:
        number: Its number.
        head: Its kind, ``claim``, ``work`` or ``commit``, and facts about it.
        frames: Frames of the journal of a checkpoint.
    """

    number: int
    head: dict[str, Any]
    frames: bytes


class ObjectJournal:
    """The journal of a node, which this run has taken over.

    Attributes:
        first: The number by which this run took the node over.
        token: A name for this attempt that no other has.
        listed: The keys of all its objects, as they were listed last.
    """

    def __init__(self, store: ResultStore, key: str, run: str) -> None:
        self._store = store
        self.key = key
        self._run = run
        self.token = uuid.uuid4().hex[:12]
        self.first = self._next = 0
        self.listed: frozenset[str] = frozenset()
        self._claim()

    def _claim(self) -> None:
        """Take the node over. Of two runs that do so at once, the later one has it."""
        claim = {
            "kind": "claim",
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        while True:
            self._next = max(self.numbers(), default=0) + 1
            if self._next > _MOST:
                reason = "no run has given this number; delete the object"
                raise StorageError(
                    f"{self._store.url}/{self.entry_key(self._next - 1)}", "go on", reason
                )
            try:
                self.first = self._append(claim)
            except ConflictError:
                continue
            return

    def append(self, head: dict[str, Any], frames: bytes = b"") -> int:
        """Append an entry; return its number.

        Raises:
            LostError: Another run has taken the node over.
        """
        try:
            return self._append(head, frames)
        except ConflictError:
            raise LostError(f"{self._store.url}/{self.key}", "go on", self._holder()) from None

    def check_held(self) -> None:
        """Check that no other run has taken the node over.

        Raises:
            LostError: Another run has.
        """
        if max(self.numbers(), default=0) >= self._next:
            raise LostError(f"{self._store.url}/{self.key}", "go on", self._holder())

    def _append(self, head: dict[str, Any], frames: bytes = b"") -> int:
        entry = {**head, "token": self.token, "run": self._run}
        self._store.create(self.entry_key(self._next), orjson.dumps(entry) + b"\n" + frames)
        self._next += 1
        return self._next - 1

    @property
    def next_data(self) -> str:
        """The key for the outputs of the next entry, which no other attempt uses."""
        return self.data_key(f"{self._next:08d}-{self.token}")

    def data_key(self, name: str) -> str:
        """Return the key of an object with outputs."""
        return f"{self.key}/{DATA}/{name}"

    def url(self, number: int) -> str:
        """Return the URL of an entry."""
        return f"{self._store.url}/{self.entry_key(number)}"

    def numbers(self) -> list[int]:
        """Return the numbers of all entries, in order."""
        names = self._store.names(f"{self.key}/.journal")
        self.listed = frozenset(names)
        return sorted(int(name) for path in names if _is_number(name := path.rsplit("/", 1)[1]))

    def entries(self, after: int) -> Iterator[ObjectEntry]:
        """Yield the entries before that of this attempt, in order; missing ones have no head."""
        numbers = [number for number in self.numbers() if after < number < self.first]
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(_READERS) as pool:
            for number, entry in zip(numbers, pool.map(self._read, numbers), strict=True):
                yield ObjectEntry(number, *entry) if entry else ObjectEntry(number, {}, b"")

    def remove_before(self, number: int, kept: Container[str] = ()) -> None:
        """Delete the entries before a publication with this number, and all outputs up to it.

        Args:
            number: The number.
            kept: The keys of outputs that are parts of published results.
        """
        names = self._store.names(f"{self.key}/.journal")
        self._store.remove(key for key in names if _is_void(key, number) and key not in kept)

    def _read(self, number: int) -> tuple[dict[str, Any], bytes] | None:
        entry = self._store.read(self.entry_key(number))
        if entry is None:
            return None
        head, _, frames = entry[0].partition(b"\n")
        try:
            content = orjson.loads(head)
        except orjson.JSONDecodeError:
            return None
        return (content, frames) if isinstance(content, dict) else None

    def entry_key(self, number: int) -> str:
        """Return the key of an entry."""
        return f"{self.key}/.journal/{number:08d}"

    def _holder(self) -> str:
        entry = self._read(self._next)
        if entry is None:
            return (
                f"the store refuses to create {self.entry_key(self._next)}, which is not there: "
                "another run has taken it over and published since, or the store does not write "
                "on a condition (If-None-Match) any more"
            )
        head = entry[0]
        known = {"pid", "host"} <= head.keys()
        where = f" (process {head['pid']} on {head['host']})" if known else ""
        return f"run {head.get('run', 'unknown')}{where} has taken it over since"


def _is_void(name: str, number: int) -> bool:
    """Return whether an object belongs to entries that this publication has made void."""
    folder, _, last = name.rpartition("/")
    digits = last.split("-")[0]
    if not _is_number(digits):
        return False
    return int(digits) <= number if folder.endswith("/data") else int(digits) < number


def _is_number(text: str) -> bool:
    """Return whether a name, which others may have chosen, is a number of an entry."""
    return _NUMBER.fullmatch(text) is not None
