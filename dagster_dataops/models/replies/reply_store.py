"""`ReplyStore`: every reply of a model is kept in a file before it is used, by its request.

Each line is a JSON object of one of four forms:

* ``{"key": ..., "start": ..., "model": ..., "seconds": ..., "reply": ...}`` is a reply: the digest
  of its request, the byte position of the record that asked, the model that it asked, the duration
  of the call, and the JSON of the server. ``address`` and ``deployment`` name the server; lines of
  version 0.2 have neither. ``estimated`` are the tokens of request and reply that the server does
  not report. A recorded reply also has ``asked``, the last message.
* ``{"spent": start, "model": ..., "reply": ...}`` is a reply without an answer, and its cost.
* ``{"key": ..., "rejected": at}`` says that the reply at a position of the file was of no use.
* ``{"published": ...}`` says that all replies before it were made for results of earlier runs.

Lines are appended whole under a lock. A process that dies while it writes leaves a line without
end, which the next one closes; such a line is not read. Several processes may use one file.
"""

import difflib
import hashlib
import logging
import os
import re
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from dagster_dataops.datasets.durable_files import make_folder, storage, write_all
from dagster_dataops.foundation.concurrency.file_lock import locked
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.models.replies.reply import text_of
from dagster_dataops.models.replies.served_by import ServedBy
from dagster_dataops.models.replies.usage import usage_of

_CHUNK: Final = 1 << 20
_READ: Final = 8 << 10
_KEY_LENGTH: Final = 32
_KEYED: Final = re.compile(rb'\{"key":"([0-9a-f]{16})[0-9a-f]{16}",')
_SPENT_AT: Final = re.compile(rb'\{"spent":([0-9]+),')
_PUBLISHED: Final = b'{"published":'
_FIRST_SLOTS: Final = 1 << 10
_LOGGER: Final = logging.getLogger(__name__)


class StoredReply(NamedTuple):
    """A reply that is stored with the result of an operator.

    Attributes:
        at: Byte position of its line in the file.
        start: Byte position of the record, in its input, for which it was asked.
        model: The model that was asked.
        seconds: Duration of the call; 0 for a reply of a batch.
        reply: The JSON of the server.
        share: The share of the usual price that it cost.
        estimated: The tokens of request and reply that the server did not report, as estimated
            then; ``None`` if it did, and for a reply that version 0.2 stored.
        address: The server that made it; empty for a reply that version 0.2 stored.
    """

    at: int
    start: int
    model: str
    seconds: float
    reply: dict[str, Any]
    share: float = 1.0
    estimated: tuple[int, int] | None = None
    address: str = ""

    @property
    def text(self) -> str:
        """The text of the reply; empty for one without text, such as vectors."""
        return text_of(self.reply)


def stored_replies(path: Path) -> Iterator[StoredReply]:
    """Yield the replies with an answer in a file, in order; nothing is written.

    Raises:
        StorageError: It cannot be read.
    """
    with storage(path, "read the replies"), path.open("rb") as file:
        at = 0
        for text in file:
            stored = _stored(at, _parsed(text)) if _KEYED.match(text) else None
            if stored is not None:
                yield stored
            at += len(text)


def request_key(request: dict[str, Any], sample: int = 0, reask: int = 0) -> str:
    """Return the key of a request: equal for equal requests, whatever the order of their fields.

    Equal requests with other numbers of ``sample`` or ``reask`` have other keys.
    """
    form = orjson.dumps([request, sample, reask], option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(form, digest_size=_KEY_LENGTH // 2).hexdigest()


class ReplyStore:
    """The replies in a file, which is created with its folder.

    The replies of ``server`` count, or those of all without one.

    Attributes:
        opened: Size of the file when it was opened.
        published: Byte position after the last replies made for results of earlier runs.

    Raises:
        StorageError: The file cannot be opened.
    """

    def __init__(self, path: Path, server: ServedBy | None = None) -> None:
        self._path = path
        self._server = server
        make_folder(path.parent)
        self._index = _KeyTable()
        self._unknown = 0  # lines of other versions
        self.published = 0
        self._notes_spent = True
        self._published_run = b""
        self._spent_before: dict[int, list[int]] = {}
        self._read_to = 0
        with storage(path, "open the replies"):
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._file = os.open(path, flags, 0o600)
            self._refresh()
        self.opened = self._read_to
        self._notes_spent = False
        if self._unknown:
            _LOGGER.warning(
                "%s: %s of no form that this version of the package reads are kept, but not used; "
                "their requests are sent again",
                path,
                counted(self._unknown, "lines"),
            )

    def get(self, key: str, *, rejected: bool = True) -> StoredReply | None:
        """Return the last reply to a request; ``None`` without one, or for one that is refused.

        A rejected reply is refused unless ``rejected`` is true.
        """
        entry = self._find(key)
        if entry is None:
            with storage(self._path, "read the replies"):
                self._refresh()
            entry = self._find(key)
        if entry is None:
            return None
        at, line, is_rejected = entry
        return None if is_rejected and not rejected else _stored(at, line)

    def put(  # noqa: PLR0913 - the fields of a line
        self,
        key: str,
        start: int,
        model: str,
        reply: dict[str, Any],
        *,
        seconds: float = 0.0,
        share: float = 1.0,
        asked: str = "",
        estimated: tuple[int, int] | None = None,
    ) -> None:
        """Keep a reply; it is there after a kill once this returns.

        ``start`` is the byte position of the record that asked, ``share`` the share of the
        usual price that it cost, ``asked`` the message, for `nearest`. The server does not
        report the ``estimated`` tokens of request and reply.

        Raises:
            StorageError: It cannot be written.
        """
        took = round(seconds, 6)
        line: dict[str, Any] = {"key": key, "start": start, "model": model}
        line |= {"seconds": took, "reply": reply}
        if share != 1:
            line["share"] = share
        if asked:
            line["asked"] = asked
        if estimated is not None:
            line["estimated"] = estimated
        self._append(line if self._server is None else line | self._server.facts())

    def nearest(self, asked: str) -> str:
        """Return the recorded message that is most like a text; empty if there is none."""
        lines = (_parsed(text) for _, text in self._lines(0))
        known = {line["asked"]: None for line in lines if line and "asked" in line}
        return next(iter(difflib.get_close_matches(asked, known, 1, 0)), "")

    def take_over(self) -> None:
        """Let the replies so far count as those that a stopped run was waiting for."""
        self.opened = self._read_to

    def spend(
        self,
        start: int,
        model: str,
        reply: dict[str, Any],
        *,
        share: float = 1.0,
        estimated: tuple[int, int] | None = None,
        owed: bool = False,
    ) -> None:
        """Store the cost of a reply without an answer; see `put`.

        With ``owed``, `take_spent` returns it, as what a stopped run got.
        """
        usage = usage_of(reply)
        told = None if usage is None else usage.reported()
        line: dict[str, Any] = {"spent": start, "model": model, "reply": {"usage": told}}
        if share != 1:
            line["share"] = share
        if estimated is not None:
            line["estimated"] = estimated
        self._notes_spent = owed
        self._append(line)
        self._notes_spent = False

    def take_spent(self, start: int) -> list[StoredReply]:
        """Return the replies without an answer that a stopped run got for a record, only once."""
        places = self._spent_before.pop(start, ())
        replies = [_stored(at, self._line(at)) for at in places]
        return [reply for reply in replies if reply is not None]

    def reject(self, key: str) -> None:
        """Record that the reply to a request was of no use."""
        entry = self._find(key)
        if entry is not None and not entry[2]:
            self._append({"key": key, "rejected": entry[0]})

    def begin(self, published: str) -> None:
        """Begin a run; replies so far are those of earlier results if a result was published since.

        ``published`` is the name of the run whose result is published; empty for none.
        """
        line = orjson.dumps({"published": published})
        with storage(self._path, "open the replies"), locked(self._file):
            self._refresh()  # another process of this run may have recorded it
            if published and line != self._published_run:
                self._write(line + b"\n")

    def since(self, position: int) -> Iterator[StoredReply]:
        """Yield the replies in the file from a position on, in order; also of other processes.

        Those without an answer are among them.
        """
        for at, text in self._lines(position):
            if _KEYED.match(text) or _SPENT_AT.match(text):
                stored = _stored(at, _parsed(text))
                if stored is not None:
                    yield stored

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _append(self, line: dict[str, Any]) -> None:
        with storage(self._path, "keep a reply"), locked(self._file):
            self._write(orjson.dumps(line) + b"\n")

    def _write(self, line: bytes) -> None:
        end = os.fstat(self._file).st_size
        if end == self._read_to:  # nobody else has written
            write_all(self._file, line)
            self._read_to = end + len(line)
            self._note(end, line)
            return
        torn = os.pread(self._file, 1, end - 1) != b"\n"
        write_all(self._file, b"\n" + line if torn else line)
        self._refresh()

    def _find(self, key: str) -> tuple[int, dict[str, Any], bool] | None:
        """Return position and line of the last reply to a request, and whether it is rejected."""
        for position in self._index.positions(int(key[:16], 16)):
            at, line = position, self._line(position)
            if line is None or line.get("key") != key:
                continue
            is_rejected = "rejected" in line
            if is_rejected:
                at = line["rejected"]
                line = self._line(at)
            if line is not None and (self._server is None or self._server.answered(line)):
                return at, line, is_rejected
        return None

    def _line(self, at: int) -> dict[str, Any] | None:
        text = os.pread(self._file, _READ, at)
        while (end := text.find(b"\n")) < 0:
            more = os.pread(self._file, _CHUNK, at + len(text))
            if not more:
                return None
            text += more
        return _parsed(text[:end])

    def _refresh(self) -> None:
        """Read the lines that were appended since the last time, also by other processes."""
        if os.fstat(self._file).st_size == self._read_to:
            return
        for at, text in self._lines(self._read_to):
            self._read_to = at + len(text)
            if _parsed(text) is not None:  # else it was not written whole
                self._note(at, text)

    def _note(self, at: int, text: bytes) -> None:
        """Take a line that was read or written last into the index."""
        if key := _KEYED.match(text):
            self._index.add(int(key[1], 16), at)
        elif text.startswith(_PUBLISHED):
            self.published, self._published_run = self._read_to, text.rstrip()
            self._spent_before.clear()
        elif spent := _SPENT_AT.match(text):
            if self._notes_spent:
                self._spent_before.setdefault(int(spent[1]), []).append(at)
        else:
            self._unknown += 1

    def _lines(self, start: int) -> Iterator[tuple[int, bytes]]:
        """Yield the whole lines from a position on, with their positions."""
        text = b""
        while chunk := os.pread(self._file, _CHUNK, start + len(text)):
            text += chunk
            end = text.rfind(b"\n") + 1
            for line in text[:end].splitlines(keepends=True):
                yield start, line
                start += len(line)
            text = text[end:]


def _parsed(text: bytes) -> dict[str, Any] | None:
    """Return the JSON of a line; ``None`` for a line that was not written whole."""
    try:
        line = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return line if isinstance(line, dict) else None


def _stored(at: int, line: dict[str, Any] | None) -> StoredReply | None:
    """Return the reply in a line; ``None`` if it has none."""
    if line is None or not isinstance(line.get("reply"), dict) or "model" not in line:
        return None
    start = line["spent"] if "spent" in line else line["start"]
    return StoredReply(
        at,
        start,
        line["model"],
        line.get("seconds", 0.0),
        line["reply"],
        line.get("share", 1.0),
        tuple(line["estimated"]) if "estimated" in line else None,
        line.get("address", ""),
    )


class _KeyTable:
    """Positions by 64 bits of a key, in 16 to 32 bytes a position: a table with open addressing."""

    def __init__(self) -> None:
        self._make(_FIRST_SLOTS)

    def _make(self, slots: int) -> None:
        self._keys = array("Q", bytes(8 * slots))
        self._positions = array("Q", bytes(8 * slots))  # plus 1; 0 for a free slot
        self._mask = slots - 1
        self._used = 0

    def add(self, key: int, position: int) -> None:
        """Add a position of a key."""
        if 2 * self._used >= len(self._keys):
            old = list(zip(self._keys, self._positions, strict=True))
            self._make(2 * len(self._keys))
            for before, at in sorted(
                (entry for entry in old if entry[1]), key=lambda entry: entry[1]
            ):
                self._put(before, at)
        self._put(key, position + 1)

    def _put(self, key: int, position: int) -> None:
        slot = key & self._mask
        while self._positions[slot]:
            slot = (slot + 1) & self._mask
        self._keys[slot], self._positions[slot] = key, position
        self._used += 1

    def positions(self, key: int) -> list[int]:
        """Return the positions of a key, the last one first."""
        positions = []
        slot = key & self._mask
        while position := self._positions[slot]:
            if self._keys[slot] == key:
                positions.append(position - 1)
            slot = (slot + 1) & self._mask
        return positions[::-1]
