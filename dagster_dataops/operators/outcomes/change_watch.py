"""`ChangeWatch`: note which columns of a record each call reads, and which it changes.

It wraps the calls of an operator whose outcomes are kept. Its notes become a hidden count of the
span of the record. If the outcome of another record cannot be derived, it notes nothing, and the
whole record counts.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson

from dagster_dataops.operators.outcomes.record_change import LineChange, RecordChange, change_of
from dagster_dataops.operators.outcomes.record_context import Drop
from dagster_dataops.operators.outcomes.recorded_record import RecordedRecord, ShieldedRecord
from dagster_dataops.operators.outcomes.return_contract import Disposed
from dagster_dataops.records import Record

_MOST_DIFFERENT: Final = 256  # changes of the calls of one thread; later others are not noted
_SMALL_INTEGERS: Final = range(-5, 1025)


class ReadTerms(NamedTuple):
    """Facts about the columns that an operator reads.

    Attributes:
        columns: Columns that count in any case.
        shielded: Whether code in C must not get the record: it could read columns unseen.
        trusted: Whether an operator that sees all columns treats the columns outside ``columns``
            alike: it passes all of them on as they are, or leaves all of them out.
        adds: Whether the operator is declared to add columns to all others.
    """

    columns: frozenset[str] = frozenset()
    shielded: bool = False
    trusted: bool = False
    adds: bool = False


class _BegunCall(NamedTuple):
    """A call that has begun."""

    recorded: list[RecordedRecord]
    argument: Any
    as_json: bytes  # the argument, for a second call


class ChangeWatch:
    """Notes what the calls of one thread, or of one task of an event loop, read and change.

    Args:
        terms: Facts about the columns that the operator reads.
        batch: Whether it takes lists of records, and returns an element for each.
        refusals: The errors of calls that needed a real dict, of all threads. The first one ends
            the watching of calls.
    """

    def __init__(
        self, terms: ReadTerms, *, batch: bool = False, refusals: list[str] | None = None
    ) -> None:
        self._terms, self._batch = terms, batch
        self._refusals: list[str] = [] if refusals is None else refusals
        self._notes: list[str] = []  # of the latest call, for each record
        self._noted: set[str] = set()

    def take(self) -> Mapping[str, float]:
        """Return the note of the latest call with one record, as a count."""
        notes = [] if self._batch else self.take_each()
        return {note: 1 for note in notes if note}

    def take_each(self) -> list[str]:
        """Return the name of the count of each record of the latest call; empty for none."""
        notes, self._notes = self._notes, []
        return notes

    def around(self, forward: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return the plain function of an operator, whose calls are watched."""

        def call(argument: Any) -> Any:
            begun = self._begin(argument)
            if begun is None:
                return forward(argument)
            try:
                returned = forward(begun.argument)
            except Exception as error:  # noqa: BLE001 - raised again
                plain = self._again(begun, error)
                returned = forward(plain)
                return plain if returned is None else returned
            return self._end(begun.recorded, returned)

        return call

    def around_async(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        """Return the coroutine function of an operator, whose calls are watched."""

        async def call(argument: Any) -> Any:
            begun = self._begin(argument)
            if begun is None:
                return await forward(argument)
            try:
                returned = await forward(begun.argument)
            except Exception as error:  # noqa: BLE001 - raised again
                plain = self._again(begun, error)
                returned = await forward(plain)
                return plain if returned is None else returned
            return self._end(begun.recorded, returned)

        return call

    def _begin(self, argument: Any) -> _BegunCall | None:
        """Begin to watch a call; return ``None`` if calls are not watched any more."""
        self._notes = []
        if self._refusals:
            return None
        recorded = list(map(RecordedRecord, argument if self._batch else [argument]))
        passed: list[Any] = (
            list(map(ShieldedRecord, recorded)) if self._terms.shielded else recorded
        )
        as_json = orjson.dumps(argument) if self._terms.shielded else b""
        return _BegunCall(recorded, passed if self._batch else passed[0], as_json)

    def _again(self, begun: _BegunCall, error: Exception) -> Any:
        """Stop watching after a refusal, and return plain records; raise another failure."""
        named = ShieldedRecord.__name__ in str(error)
        if not self._terms.shielded or not (isinstance(error, TypeError) or named):
            raise error
        self._refusals.append(str(error))
        return orjson.loads(begun.as_json)

    def _end(self, recorded: list[RecordedRecord], returned: Any) -> Any:
        """Note the changes of a call; return its result with plain records."""
        if not self._batch:
            return self._ended(recorded[0], returned)
        if not isinstance(returned, list) or len(returned) != len(recorded):
            return _plain(returned)
        return [self._ended(*pair) for pair in zip(recorded, returned, strict=True)]

    def _ended(self, recorded: RecordedRecord, returned: Any) -> Any:
        records = _records_in(returned, recorded)
        change = None if records is None else _change(self._terms, recorded, records)
        note = "" if change is None else change.as_count()
        if note not in self._noted and len(self._noted) >= _MOST_DIFFERENT:
            note = ""
        self._noted.add(note)
        self._notes.append(note)
        if records is None:
            return _plain(returned)
        plain = list(map(_plain, records))
        if isinstance(returned, Disposed):
            return Disposed(plain, returned.disposition)
        if isinstance(returned, list):
            return plain
        return returned if isinstance(returned, Drop) else plain[0]


def _records_in(returned: Any, recorded: RecordedRecord) -> list[Any] | None:
    """Return the records that an operator returned; ``None`` if it broke its contract."""
    if returned is None:
        return [recorded]
    if isinstance(returned, Drop):
        return []
    records = returned if isinstance(returned, list) else [returned]
    if isinstance(returned, Disposed):
        records = returned.records
    return records if all(isinstance(record, dict) for record in records) else None


def _change(
    terms: ReadTerms, recorded: RecordedRecord, records: Sequence[Any]
) -> RecordChange | None:
    """Return the columns read and changed; ``None`` if the whole record counts."""
    log = recorded.log
    if log.whole and not terms.trusted:
        return None
    reads = {*terms.columns, *log.columns}
    lines: list[LineChange | None] = []
    for returned in records:
        record = returned.recorded if type(returned) is ShieldedRecord else returned
        if any(map(_holds_record, dict.values(record))):
            return None
        change: LineChange | None
        if type(record) is RecordedRecord and record.log is not log:
            return None  # another record of the batch
        if type(record) is RecordedRecord:
            change = _of_copy(record, reads, terms)
        elif not log.whole:
            change = _of_new(record, recorded, reads, terms)
        else:
            change = _of_plain_copy(record, recorded, reads, terms)
        if change is _UNKNOWN:
            return None
        lines.append(change)
    return change_of(sorted(reads), lines)


_UNKNOWN: Final = LineChange((), (), ("unknown",))  # compared by identity


def _of_copy(copy: RecordedRecord, reads: set[str], terms: ReadTerms) -> LineChange:
    """Return the change of the record itself, or of a copy that continues its notes."""
    names = list(dict.keys(copy))
    rest = [name for name in copy.origin if name not in reads]
    if copy.log.whole and not (copy.placed.issuperset(rest) and (rest or terms.adds)):
        return _UNKNOWN
    return LineChange(
        tuple(name for name in names if name in copy.placed and _is_written(copy, name, reads)),
        tuple(name for name in names if name not in copy.placed),
        tuple(name for name in copy.origin if not dict.__contains__(copy, name)),
    )


def _is_written(copy: RecordedRecord, name: str, reads: set[str]) -> bool:
    """Return whether a value is that of the result; a value that was read may be changed."""
    return name in reads or name not in copy.passed


def _of_new(
    new: Record, recorded: RecordedRecord, reads: set[str], terms: ReadTerms
) -> LineChange | None:
    """Return the change to a new record that was made of values that were read one by one."""
    unread = recorded.origin.keys() - reads
    copied = not terms.shielded and any(name in new for name in unread)  # perhaps by code in C
    return _UNKNOWN if copied else None


def _of_plain_copy(
    copy: Record, recorded: RecordedRecord, reads: set[str], terms: ReadTerms
) -> LineChange | None:
    """Return the change to a dict that was made by code that saw all columns.

    The identity of its keys shows which entries were copied, in which order, and which were set
    anew. A value that may be equal by chance counts as read.
    """
    origin, keys = recorded.origin, recorded.key_objects
    rest = [name for name in origin if name not in reads]
    if any(_holds_keys(value, keys) for value in copy.values()):
        return _UNKNOWN
    if rest and not any(name in copy for name in rest):
        return None  # a new record, from columns that count
    copied = [key for key in copy if len(key) > 1 and keys.get(key) is key]
    if (
        copied != [name for name in origin if name in set(copied)]
        or copied != list(copy)[: len(copied)]
        or any(len(key) == 1 and key in origin for key in copy)
        or not (rest or (copied and terms.adds))
        or not set(rest) <= set(copied)
    ):
        return _UNKNOWN
    same = [name for name in rest if copy[name] is origin[name]]
    reads.update(name for name in same if _may_be_shared(origin[name]))
    passed = set(same) - reads
    return LineChange(
        tuple(name for name in copied if name not in passed),
        tuple(key for key in copy if key not in set(copied)),
        tuple(name for name in origin if name not in copy),
    )


def _may_be_shared(value: object) -> bool:
    """Return whether an equal value made elsewhere may be the same object."""
    if isinstance(value, str):
        return len(value) < 2
    if isinstance(value, int):
        return value in _SMALL_INTEGERS
    return value is None


def _holds_record(value: object) -> bool:
    """Return whether a value contains a record that notes its use."""
    kind = type(value)
    if kind is RecordedRecord or kind is ShieldedRecord:
        return True
    if isinstance(value, dict):
        return any(map(_holds_record, value.values()))
    return isinstance(value, (list, tuple)) and any(map(_holds_record, value))


def _holds_keys(value: object, keys: Mapping[str, str]) -> bool:
    """Return whether a value contains a copy of the record, by the identity of its keys."""
    if isinstance(value, dict):
        is_copy = any(len(key) > 1 and keys.get(key) is key for key in value)
        return is_copy or any(_holds_keys(inner, keys) for inner in value.values())
    return isinstance(value, (list, tuple)) and any(_holds_keys(inner, keys) for inner in value)


def _plain(value: Any) -> Any:
    """Return a value with plain dicts in place of records that note."""
    value = value.recorded if type(value) is ShieldedRecord else value
    if not _holds_record(value):
        return value
    if type(value) is RecordedRecord:
        return _plain(value.plain())
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return list(map(_plain, value))
