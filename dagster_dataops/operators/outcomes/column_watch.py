"""ColumnWatch: count the records that lack a column which their operator reads.

It wraps the calls of an operator. A record that has its columns costs a look for each. What is
counted becomes hidden counts of the record's span, so that the sums are exact after a kill. A
record that fails does not count; it is in the error file.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson

from dagster_dataops.operators.options.read_columns import ReadKey, check_keys
from dagster_dataops.operators.outcomes.record_context import HIDDEN, TABLE, StopRun
from dagster_dataops.records import Record

MISSING_TABLE: Final = "missing_columns"  # the table of a manifest's counts
_LACKS: Final = f"{HIDDEN}lacks"
_FINDS: Final = f"{HIDDEN}finds"
_COLUMNS: Final = f"{HIDDEN}columns"
_MOST_LACKING: Final = 1000
_MOST_NAMED: Final = 20


class WatchedPart(NamedTuple):
    """An operator, or a part of a chain, and the keys that it reads.

    Attributes:
        keys: The keys.
        asynchronous: Whether its function is a coroutine function.
        batch: Whether its function takes a list of records.
    """

    keys: Sequence[ReadKey]
    asynchronous: bool = False
    batch: bool = False


class Patience:
    """Stops a run early if the first records of a part that makes calls lack a column.

    It is for coroutine functions in a chain after another part, whose input no file holds: their
    calls may cost money. The tasks of an event loop share it.
    """

    def __init__(self) -> None:
        self._lacking: dict[str, int] = {}
        self._present: set[str] = set()
        self._told: set[int] = set()

    def tells(self, part: int) -> bool:
        """Return whether no task has told the columns of a record of a part; this one does."""
        told = part in self._told
        self._told.add(part)
        return not told

    def find(self, name: str) -> None:
        """Note that a record had a column."""
        self._present.add(name)

    def lack(self, name: str, part: int, key: str) -> None:
        """Note that a record lacked a column.

        Raises:
            StopRun: So did all before it, and they are many.
        """
        if name in self._present:
            return
        self._lacking[name] = self._lacking.get(name, 0) + 1
        if self._lacking[name] >= _MOST_LACKING:
            reason = (
                f"the first {_MOST_LACKING:,} records that came to part {part + 1} of the chain "
                f"lack the column {key!r}, which it reads; name another column, or allow this by "
                "_missing='allow'"
            )
            raise StopRun(reason)


class ColumnWatch:
    """Counts for the calls of one thread, or of one task of an event loop.

    Args:
        parts: The parts of a chain in order; the operator alone if it is none.
        chained: Whether it is a chain.
        strict: Whether a record that lacks a column fails.
        patience: Of all tasks; by default of this one.
    """

    def __init__(
        self,
        parts: Sequence[WatchedPart],
        *,
        chained: bool,
        strict: bool,
        patience: Patience | None = None,
    ) -> None:
        self._parts, self._chained = parts, chained
        self._strict = strict
        self._patience = patience or Patience()
        self._counts: dict[str, int] = {}
        self._noted: list[str] = []  # of the calls that have not ended

    def take(self) -> dict[str, int]:
        """Return the counts since the last time."""
        counts, self._counts = self._counts, {}
        return counts

    def part(self, number: int, forward: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return the function of a part of a chain, which notes what its records lack.

        `around` has to wrap the function of the chain.
        """
        part = self._parts[number]
        if not part.keys:
            return forward
        finds = _Finds(number, part, self._count, self._patience) if number else None
        look = _Lacks(part, self._strict, finds)
        note = self._noted.extend
        return _noting(part, forward, look, lambda lacks, _: note(_names(number, lacks)))

    def around(self, forward: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return the plain function of the operator; what it lacks counts if it succeeds."""
        if self._chained:
            return self._around_chain(forward)
        return self._around(WatchedPart(self._parts[0].keys, batch=self._parts[0].batch), forward)

    def around_async(self, forward: Callable[..., Any]) -> Callable[[Any], Any]:
        """Return the coroutine function of the operator; what it lacks counts if it succeeds."""
        if not self._chained:
            part = self._parts[0]
            return self._around(WatchedPart(part.keys, True, part.batch), forward)  # noqa: FBT003

        async def call(record: Any) -> Any:
            try:
                returned = await forward(record)
            except BaseException:
                self._noted.clear()
                raise
            self._count_noted()
            return returned

        return call

    def _around_chain(self, forward: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def call(record: Any) -> Any:
            try:
                returned = forward(record)
            except BaseException:
                self._noted.clear()
                raise
            if self._noted:
                self._count_noted()
            return returned

        return call

    def _around(self, part: WatchedPart, forward: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def count(lacking: Sequence[list[str]], returned: Any) -> None:
            if part.batch and isinstance(returned, list) and len(returned) == len(lacking):
                pairs = zip(lacking, returned, strict=True)
                lacking = [
                    lacks for lacks, outcome in pairs if not isinstance(outcome, BaseException)
                ]
            for name in _names(0, lacking):
                self._count(name)

        return _noting(part, forward, _Lacks(part, self._strict, None), count)

    def _count_noted(self) -> None:
        for name in self._noted:
            self._count(name)
        self._noted.clear()

    def _count(self, name: str) -> None:
        self._counts[name] = self._counts.get(name, 0) + 1


class _Finds:
    """Counts, once, that a record of a part has a key, also if the record then fails."""

    def __init__(
        self, number: int, part: WatchedPart, count: Callable[[str], None], patience: Patience
    ) -> None:
        self._part, self._count, self._patience = number, count, patience
        self._waits = part.asynchronous
        self._open = {key.name for key in part.keys}

    def saw(self, record: Record, lacked: Sequence[str]) -> bool:
        """Count the keys that a record has; return whether all were counted."""
        seen = self._open.difference(lacked)
        for name in seen:
            self._count(self._name(name))
            self._patience.find(self._name(name))
        if lacked and self._patience.tells(self._part):
            names = orjson.dumps(list(record)[:_MOST_NAMED]).decode()
            self._count(f"{_COLUMNS} {self._part} {names}")
        if self._waits:
            for name in lacked:
                self._patience.lack(self._name(name), self._part, name)
        self._open -= seen
        return not self._open

    def _name(self, key: str) -> str:
        return f"{_FINDS} {self._part} {key}"


class _Lacks:
    """Returns what the given record, or each of a batch, lacks; nothing if they lack nothing."""

    def __init__(self, part: WatchedPart, strict: bool, finds: _Finds | None) -> None:  # noqa: FBT001
        self._keys, self._strict, self._finds = part.keys, strict, finds
        self._looks = self._at_batch if part.batch else self._at_one
        self.plain = [key.name for key in part.keys]
        self.quick = finds is None and not part.batch

    def __call__(self, argument: Any) -> Sequence[list[str]]:
        return self._looks(argument)

    def _at_batch(self, records: Any) -> Sequence[list[str]]:
        lacking = [names for record in records for names in self._at_one(record) or ([],)]
        return lacking if any(lacking) else ()

    def _at_one(self, record: Record) -> Sequence[list[str]]:
        lacked = [key.name for key in self._keys if not key.is_in(record)]
        if lacked and self._strict:
            check_keys(record, self._keys)
        if self._finds is not None and self._finds.saw(record, lacked):
            self._finds, self.quick = None, self._looks == self._at_one
        return (lacked,) if lacked else ()


def _noting(
    part: WatchedPart,
    forward: Callable[[Any], Any],
    look: _Lacks,
    note: Callable[[Sequence[list[str]], Any], None],
) -> Callable[[Any], Any]:
    """Return ``forward``, which notes what the given record lacks when it has succeeded."""
    names = tuple(look.plain)

    async def call_async(record: Any) -> Any:
        lacking = look(record)
        returned = await forward(record)
        if lacking:
            note(lacking, returned)
        return returned

    def call(record: Any) -> Any:
        if look.quick:
            for name in names:
                if name not in record:
                    break
            else:
                return forward(record)
        lacking = look(record)
        returned = forward(record)
        if lacking:
            note(lacking, returned)
        return returned

    return call_async if part.asynchronous else _quicker(look, forward, call)


def _quicker(
    look: _Lacks, forward: Callable[[Any], Any], call: Callable[[Any], Any]
) -> Callable[[Any], Any]:
    """Return ``call``; for one key, the usual case, with one test whether a record has it."""
    if len(look.plain) > 1 or not look.quick:
        return call
    name = look.plain[0]
    return lambda record: forward(record) if name in record else call(record)


def _names(part: int, lacking: Sequence[list[str]]) -> Iterator[str]:
    return (f"{_LACKS} {part} {name}" for names in lacking for name in names)


def missing_counts(
    counts: Mapping[str, float], parts: Sequence[str] = ()
) -> dict[str, int | float]:
    """Return rows of the table of records that lack a column, from the sums of hidden counts.

    Args:
        counts: The sums.
        parts: Names of the parts of a chain; they precede the keys.
    """
    rows: dict[str, int | float] = {}
    for name, number in counts.items():
        if name.startswith(f"{_LACKS} "):
            part, key = _split(name)
            label = f"{parts[part]}: {key}" if parts else key
            rows[f"{MISSING_TABLE}{TABLE}{label}"] = number
    return rows


def never_found(counts: Mapping[str, float]) -> list[tuple[int, str, int]]:
    """Return part, key and number of records of each key that no record of a later part had.

    Args:
        counts: The sums of hidden counts of a chain.
    """
    entries = []
    for name, number in counts.items():
        if not name.startswith(f"{_LACKS} "):
            continue
        part, key = _split(name)
        if part and f"{_FINDS} {part} {key}" not in counts:
            entries.append((part, key, int(number)))
    return entries


def columns_seen(counts: Mapping[str, float], part: int) -> list[str]:
    """Return the columns of records of a part that lacked one.

    Args:
        counts: The sums of hidden counts of a chain.
        part: The number of the part.
    """
    told = f"{_COLUMNS} {part} "
    texts = [name.removeprefix(told) for name in counts if name.startswith(told)]
    return list(dict.fromkeys(column for text in texts for column in orjson.loads(text)))


def _split(name: str) -> tuple[int, str]:
    _, part, key = name.split(" ", 2)
    return int(part), key
