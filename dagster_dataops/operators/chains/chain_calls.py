"""Call the parts of a chain, one after the other, on a record and on the records made of it.

The usual record, one in each part, costs the calls and little else. All others take the way of
`Passage`, which writes down what became of the records of every part.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import deepcopy
from time import perf_counter
from types import FrameType
from typing import Any, Final, NamedTuple, TypeAlias

from dagster_dataops.datasets.file_values.file_keeper import MADE, FileKeeper, with_stored_files
from dagster_dataops.foundation.override import override
from dagster_dataops.operators.outcomes.dispositions import Disposition, disposition
from dagster_dataops.operators.outcomes.record_context import HIDDEN, Drop
from dagster_dataops.operators.outcomes.return_contract import FAILED_PART, Disposed, emitted
from dagster_dataops.records import Record

Mark: TypeAlias = tuple[str, Disposition]  # name of the part that failed, disposition

_MOST_UNTIMED: Final = 1024  # records up to the next whose parts are timed
_TIMED_SECONDS: Final = 0.002  # time of these records; measuring takes some microseconds
_WORTH_NOTING: Final = 0.05  # of the seconds noted before
_SEPARATOR: Final = ": "  # of the name of a part and its reason
_MOST_REASONS: Final = 1024  # to remember, with their dispositions
_PLAIN: Final = frozenset({str, int, float, bool, type(None)})

# The source text of the function that calls the parts. The interpreter optimizes each call site
# for the function that it calls. In a loop over the parts, all parts share one call site, and eight
# quick parts take a quarter longer.
_FILE: Final = f"{__file__} (parts of a chain)"
_RUN: Final = """
def bound(parts, made, {names}):
    until = 1  # records up to the next that is timed, which counts

    def run(record):
        nonlocal until
        part = 0
        until -= 1
        if until <= 0:
            try:
                return parts.timed(record)
            finally:
                until = parts.weight
        try:
            while True:  # never repeated: `break` leaves the usual way
{steps}
                return record
        except BaseException as error:
            parts.blame(part, error)
            raise
        return parts.pass_on(part, returned, record)

    return run
"""
_KEEP: Final = """
                if made:
                    record = parts.kept(record)"""
_STEP: Final = """
                part = {part}{keep}
                returned = forward_{part}(record)
                if returned is not None and returned is not record:
                    if type(returned) is not dict:
                        break
                    record = returned
"""


class PartCall(NamedTuple):
    """How a part of a chain is called.

    Attributes:
        name: Name of the part.
        forward: The function to call.
        asynchronous: Whether it is a coroutine function.
        batch: Whether it takes a list of records.
    """

    name: str
    forward: Callable[[Any], Any]
    asynchronous: bool
    batch: bool = False


class PartTimes:
    """Estimated seconds of the parts of a chain, in one thread.

    Some records are timed; each stands for those since the one before it.
    """

    def __init__(self, parts: int) -> None:
        self._names = [f"{HIDDEN}seconds {part}" for part in range(parts)]
        self._seconds = [0.0] * parts
        self._fresh = self._noted = 0.0

    def add(self, part: int, seconds: float) -> None:
        """Add to the seconds of a part."""
        self._seconds[part] += seconds
        self._fresh += seconds

    def take(self) -> dict[str, float]:
        """Return the seconds since the last time by hidden name; nothing while they are few.

        So most spans have no notes.
        """
        if self._fresh <= self._noted * _WORTH_NOTING:
            return {}
        self._noted += self._fresh
        self._fresh = 0.0
        seconds, self._seconds = self._seconds, [0.0] * len(self._names)
        return dict(zip(self._names, seconds, strict=True))


def seconds_of(counts: dict[str, Any], part: int) -> float:
    """Return the seconds of a part from the sums of counts."""
    return float(counts.get(f"{HIDDEN}seconds {part}", 0.0))


class AnyPassage(ABC):
    """The way of records through the parts of a chain."""

    @abstractmethod
    def blame(self, error: BaseException) -> Mark:
        """Write the part that failed into an exception; return it."""


class Passage(AnyPassage):
    """The way of one record, and of the records made of it, through the parts.

    All records are through a part before one of them enters the next.

    Args:
        names: Of the parts.
        part: Index of the part that the record entered last.
        keeper: Stores the files that the parts make, before the next part.
    """

    def __init__(self, names: Sequence[str], part: int, keeper: FileKeeper | None = None) -> None:
        self._names = names
        self._keeper = keeper
        self._part = part
        self._entered = [1] * (part + 1)
        self._dropped: dict[str, int] = {}
        self.records: list[Record] = []

    def enter(self, part: int) -> list[Record]:
        """Return the records that enter a part; none shares a list or a dict with another."""
        records, self.records = self.records, []
        if MADE:
            records = [with_stored_files(record, self._keeper) for record in records]
        if len(records) > 1:
            records[1:] = [own_copy(record) for record in records[1:]]
        self._part = part
        self._entered.append(len(records))
        return records

    def take(self, returned: object, record: Record) -> None:
        """Process the return value of a part for a record."""
        records, reason = emitted(returned, record)
        self.records += records
        if reason is not None:
            part = self._names[self._part]
            reason = f"{part}{_SEPARATOR}{reason}" if reason else part
            self._dropped[reason] = self._dropped.get(reason, 0) + 1

    @override
    def blame(self, error: BaseException) -> Mark:
        fields = self._fields()
        fields.pop("emitted", None)
        mark = (self._names[self._part], disposition(**fields, failed=self._part))
        with suppress(Exception):  # an exception of the user may refuse attributes
            setattr(error, FAILED_PART, mark)
        return mark

    def outcome(self) -> Record | Disposed:
        """Return the records that came through all parts; with the disposition if not usual."""
        if len(self.records) == 1 and self._one_in_each and not self._dropped:
            return self.records[0]
        return Disposed(self.records, disposition(**self._fields()))

    @property
    def _one_in_each(self) -> bool:
        """Whether one record has entered each part."""
        return len(self._entered) == len(self._names) == sum(self._entered)

    def _fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"entered": self._entered, "emitted": len(self.records)}
        if self._one_in_each:
            del fields["entered"]
        if self._dropped:
            once = all(number == 1 for number in self._dropped.values())
            fields["dropped"] = list(self._dropped) if once else self._dropped
        return fields


def part_of(reason: str) -> str:
    """Return the name of the part in a reason of a chain's disposition."""
    return reason.partition(_SEPARATOR)[0]


def own_copy(value: Any) -> Any:
    """Return a copy of a JSON value."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is dict:
        return {key: own_copy(item) for key, item in value.items()}
    if kind is list:
        return [own_copy(item) for item in value]
    return deepcopy(value)


def chain_function(
    calls: Sequence[PartCall], times: PartTimes, keeper: FileKeeper | None = None
) -> Callable[[Record], Any]:
    """Return the function that calls the parts in order on one record.

    It returns a dict for the usual record, else `Disposed`. An exception of a part leaves it with
    the name of the part and the disposition of the record.

    Args:
        calls: The parts, none of them asynchronous.
        times: Takes their seconds; used by one thread.
        keeper: Stores the files that they make.
    """
    parts = _Parts(calls, times, keeper)
    numbers = range(len(calls))
    names = ", ".join(f"forward_{number}" for number in numbers)
    steps = "".join(_STEP.format(part=number, keep=_KEEP if number else "") for number in numbers)
    defined: dict[str, Any] = {}
    exec(compile(_RUN.format(names=names, steps=steps), _FILE, "exec"), defined)  # noqa: S102 - text from here
    run: Callable[[Record], Any] = defined["bound"](parts, MADE, *parts.forwards)
    return run


class _Parts:
    """The parts of a chain, for records that are not usual or that are timed."""

    def __init__(
        self, calls: Sequence[PartCall], times: PartTimes, keeper: FileKeeper | None
    ) -> None:
        self._keeper = keeper
        self.names = [call.name for call in calls]
        self.forwards = tuple(call.forward for call in calls)
        self.weight = 1
        self._times = times
        self._dropped: dict[tuple[int, str], Disposed] = {}

    def kept(self, record: Record) -> Record:
        """Return a record whose files are stored, for the next part."""
        kept: Record = with_stored_files(record, self._keeper)
        return kept

    def blame(self, part: int, error: BaseException) -> None:
        """Write into an exception that a part failed on the usual record."""
        Passage(self.names, part).blame(error)

    def pass_on(self, part: int, returned: object, before: Record) -> Record | Disposed:
        """Take the records that a part returned for one record through the parts after it."""
        reason = returned.reason if type(returned) is Drop else None
        known = self._dropped.get((part, reason)) if type(reason) is str else None
        if known is not None:
            return known
        passage = Passage(self.names, part, self._keeper)
        try:
            passage.take(returned, before)
            for after in range(part + 1, len(self.names)):
                if not passage.records:
                    break
                for record in passage.enter(after):
                    passage.take(self.forwards[after](record), record)
        except BaseException as error:
            passage.blame(error)
            raise
        outcome = passage.outcome()
        if type(reason) is str and type(outcome) is Disposed and len(self._dropped) < _MOST_REASONS:
            self._dropped[part, reason] = outcome
        return outcome

    def timed(self, record: Record) -> Record | Disposed:
        """Take a record through all parts; time each."""
        passage = Passage(self.names, -1, self._keeper)
        passage.records.append(record)
        spent = _TIMED_SECONDS / _MOST_UNTIMED
        try:
            for part, forward in enumerate(self.forwards):
                if not passage.records:
                    break
                for entered in passage.enter(part):
                    start = perf_counter()
                    try:
                        returned = forward(entered)
                    finally:
                        seconds = perf_counter() - start
                        spent += seconds
                    self._times.add(part, seconds * self.weight)
                    passage.take(returned, entered)
        except BaseException as error:
            passage.blame(error)
            raise
        finally:
            self.weight = max(1, int(_TIMED_SECONDS / spent))
        return passage.outcome()


def blame_part_in(frame: FrameType | None, error: BaseException) -> None:
    """Write into an exception the part of a chain that a call in another thread is in, if any.

    Args:
        frame: The innermost frame of that thread.
        error: The exception, which is raised in this one.
    """
    while frame is not None:
        if frame.f_code.co_filename == _FILE:
            frame.f_locals["parts"].blame(frame.f_locals["part"], error)
            return
        if isinstance(passage := frame.f_locals.get("passage"), AnyPassage):
            passage.blame(error)
            return
        frame = frame.f_back


def async_chain_function(
    calls: Sequence[PartCall], times: PartTimes, keeper: FileKeeper | None = None
) -> Callable[..., Any]:
    """Return the coroutine function that calls the parts in order on one record.

    As `chain_function`. It takes a list as well, to which it adds the part that failed: an error
    about a time limit is made outside, and knows of none.
    """
    names = [call.name for call in calls]

    async def run(record: Record, failed: list[Mark] | None = None) -> Record | Disposed:
        passage = Passage(names, -1, keeper)
        passage.records.append(record)
        try:
            for part, call in enumerate(calls):
                if not passage.records:
                    break
                for entered in passage.enter(part):
                    start = perf_counter()
                    returned = call.forward(entered)
                    if call.asynchronous:
                        returned = await returned
                    times.add(part, perf_counter() - start)
                    passage.take(returned, entered)
        except BaseException as error:
            mark = passage.blame(error)
            if failed is not None:
                failed.append(mark)
            raise
        return passage.outcome()

    return run
