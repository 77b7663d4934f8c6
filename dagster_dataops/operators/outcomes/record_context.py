"""OperatorContext: the interface of an operator to its run.

An operator gets it in ``open(context)``, or in a parameter of its function that is named
``context``.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import xxhash

from dagster_dataops.datasets.file_values.file_reads import COUNT as READ_FILES
from dagster_dataops.datasets.file_values.file_reads import READS
from dagster_dataops.errors import OperatorContextError
from dagster_dataops.foundation.override import override

HIDDEN: Final = "."  # begins the names of counts that are not the operator's
NUMBERED: Final = f"{HIDDEN}numbered"  # the hidden count of records whose number was asked for
TABLE: Final = "/"  # in the name of a count that is a row of a table: table/row


class Drop:
    """The return value of an operator that drops a record for a reason.

    Args:
        reason: A few words, the same for all records dropped for it, such as ``too_short``.
    """

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason

    @override
    def __repr__(self) -> str:
        return f"Drop({self.reason!r})"


class StopRun(BaseException):
    """Raise it in an operator to stop the run; a later run resumes at the open records.

    The record that raises it, and records that are not begun, stay open. None counts as failed.

    Args:
        reason: Why, and what to do.
        waits: Whether the operator waits for a long time; then the run did not fail.
    """

    def __init__(self, reason: str, *, waits: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.waits = reason, waits


class Call:
    """One call of an operator. A call that is abandoned counts to nothing any more.

    Args:
        start: Byte position of its record in the input.
        waits: Called with True when the call begins to wait, and with False when it goes on.

    Attributes:
        counts: What it has counted.
        start: Byte position of its record in the input.
    """

    __slots__ = ("_depth", "_since", "_waited", "_waits", "counts", "start")

    def __init__(self, start: int, waits: Callable[[bool], None] | None = None) -> None:
        self.counts: dict[str, int | float] = {}
        self.start = start
        self._waits = waits
        self._depth = 0
        self._since = self._waited = 0.0

    @property
    def waited(self) -> float:
        """Seconds that the call has spent in ``waiting()`` so far."""
        return self._waited + (time.monotonic() - self._since if self._depth else 0.0)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Do not count the block towards the time limit."""
        if not self._depth:
            self._since = time.monotonic()
        self._depth += 1
        if self._waits is not None:
            self._waits(True)  # noqa: FBT003
        try:
            yield
        finally:
            self._depth -= 1
            if not self._depth:
                self._waited += time.monotonic() - self._since
                if self._waits is not None:
                    self._waits(False)  # noqa: FBT003


def shown_counts(counts: Mapping[str, int | float]) -> dict[str, int | float]:
    """Return the sums of the operator's counters, without hidden ones."""
    return {name: number for name, number in counts.items() if not name.startswith(HIDDEN)}


def plain_counts(counts: Mapping[str, int | float]) -> dict[str, int | float]:
    """Return the sums without those that are rows of tables."""
    return {name: number for name, number in counts.items() if TABLE not in name}


def count_tables(counts: Mapping[str, int | float]) -> dict[str, dict[str, int | float]]:
    """Return the sums that are rows of tables, by table and row."""
    tables: dict[str, dict[str, int | float]] = {}
    for name, number in counts.items():
        table, mark, row = name.partition(TABLE)
        if mark:
            tables.setdefault(table, {})[row] = number
    return tables


_current: Final[ContextVar[Call]] = ContextVar("dataops_call")


def current_waited() -> float:
    """Return the seconds that the call of this coroutine has spent in ``waiting()``."""
    call = _current.get(None)
    return 0.0 if call is None else call.waited


class Tally:
    """Notes that the calls of one thread, or the tries of one record, add to a span.

    Attributes:
        used: Whether the operator has a context, so that it can count.
        start: Byte position of the next record in the input.
        waits: Called with True when a call begins to wait, and with False when it goes on.
        unusual: Position and disposition of records with an unusual one.
        exact: Whether integers beyond 64 bits are looked for: orjson makes floats of them. This
            package writes none, so its own results need no search.
        measure: Returns further counts, such as the seconds of the parts of a chain.
        measure_each: Returns the name of a further count of each record of the latest batch.
    """

    __slots__ = (
        "_call", "_counts", "_reads", "exact", "measure", "measure_each", "start", "unusual",
        "used", "waits",
    )  # fmt: skip

    def __init__(self) -> None:
        self._counts: dict[str, int | float] = {}
        self._call: Call | None = None
        self._reads = READS.number
        self.used = False
        self.exact = False
        self.measure: Callable[[], Mapping[str, float]] | None = None
        self.measure_each: Callable[[], list[str]] | None = None
        self.start = 0
        self.waits: Callable[[bool], None] | None = None
        self.unusual: list[tuple[int, bytes]] = []

    def begin(self) -> None:
        """Begin a call in this thread or coroutine. The counts of the previous call stay."""
        self._end_call()
        self._call = Call(self.start, self.waits)
        _current.set(self._call)

    @property
    def waited(self) -> float:
        """Seconds that the current call has spent in ``waiting()``."""
        return 0.0 if self._call is None else self._call.waited

    def _end_call(self) -> None:
        if self._call is not None:
            for name, number in self._call.counts.items():
                self._counts[name] = self._counts.get(name, 0) + number
            self._call = None

    def around(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``forward``, counting here in the thread that calls it."""

        def call(record: Any) -> Any:
            self.begin()
            return forward(record)

        return call

    def take_counts(self) -> dict[str, int | float]:
        """Return the counts since the last call."""
        self._end_call()
        counts, self._counts = self._counts, {}
        if self.measure is not None:
            counts.update(self.measure())
        if self._reads != READS.number:
            counts[READ_FILES] = READS.number - self._reads
            self._reads = READS.number
        return counts

    @property
    def has_counts(self) -> bool:
        """Whether `take_counts` may return any."""
        return self.used or self.measure is not None or self._reads != READS.number

    def take_unusual(self) -> list[tuple[int, bytes]]:
        """Return the unusual dispositions since the last time."""
        unusual = self.unusual[:]
        self.unusual.clear()
        return unusual

    def forget_call(self) -> None:
        """Discard the counts of the current call; its record stays open."""
        self._call = None

    def clear(self) -> None:
        """Forget everything since the last time."""
        self._counts.clear()
        self._call = None
        self.unusual.clear()


class RunFacts(NamedTuple):
    """The part of a context that every process of a run has; sent to workers as JSON.

    Attributes:
        folder: Folder of the node.
        root: Root folder of all results.
        run: Name of the run.
        node: Name of the node.
        input: Path of the input.
        retries_failed: Whether only failed or chosen records of an earlier result are processed.
        agent: The number of this agent, from 0, and the number of all agents of the run.
        started: When the first attempt of the run began.
    """

    folder: str
    root: str
    run: str
    node: str
    input: str
    retries_failed: bool = False
    agent: tuple[int, int] = (0, 1)
    started: str = ""


class RunLink(NamedTuple):
    """Facts about the run, in an operator's `Invocation`.

    Attributes:
        facts: The facts about the run that all its processes share.
        clients: Objects of the user, by name.
    """

    facts: RunFacts
    clients: Mapping[str, Any]


class OperatorContext:
    """The interface of an operator to its run.

    Args:
        facts: The facts about the run that all its processes share.
        clients: Objects of the user, by name.
        index_of: Return the index of the record at a byte position of the input.
        hiding: Return the function that hides secrets of the operator in names of counts and
            reasons of drops; called when it is first needed.

    Attributes:
        folder: Folder of the node. Files there are the operator's own.
        root: Root folder of all results.
        run: Name of the run: the run id under Dagster.
        node: Name of the node.
        input: Path of the input.
        clients: Objects that the run was given by name: resources under Dagster, otherwise
            ``config.clients``.
        seed: A number that depends on the name of the node alone.
        retries_failed: Whether only failed or chosen records of an earlier result are processed.
        agent: The number of the agent of a cluster that processes the record, from 0, and the
            number of all agents; ``(0, 1)`` without a cluster.
        started: When the first attempt of the run began, as ISO 8601 with the offset of its time
            zone. An attempt that resumes another one has the same.
    """

    def __init__(
        self,
        facts: RunFacts,
        clients: Mapping[str, Any],
        index_of: Callable[[int], int],
        hiding: Callable[[], Callable[[str], str]] = lambda: str,
    ) -> None:
        self._hiding = hiding
        self.folder = Path(facts.folder)
        self.root = Path(facts.root)
        self.run = facts.run
        self.node = facts.node
        self.input = Path(facts.input)
        self.clients = Clients(facts.node, clients)
        self.seed = xxhash.xxh3_64_intdigest(facts.node.encode()) >> 1
        self.retries_failed = facts.retries_failed
        self.agent = facts.agent
        self.started = facts.started
        self._index_of = index_of

    @property
    def index(self) -> int:
        """Index of the current record in the input, counted from 0.

        Raises:
            OperatorContextError: No record is being processed.
        """
        call = _call("index")
        call.counts[NUMBERED] = 1
        return self._index_of(call.start)

    @property
    def position(self) -> int:
        """Byte position of the current record in the input.

        Raises:
            OperatorContextError: No record is being processed.
        """
        return _call("position").start

    def count(self, **numbers: float) -> None:
        """Add numbers to the sums of the result, such as ``count(tokens=120, cost=0.002)``.

        They are kept with the record: after a kill they count exactly if the record does. What was
        counted in a failed try of a record counts as well. A name with a slash, such as
        ``count(**{"language/en": 1})``, is a row of the table ``language`` of the asset page.

        Raises:
            TypeError: A value is no finite number.
            OperatorContextError: No record is being processed.
        """
        counts = _call("count()").counts
        for name, number in numbers.items():
            if type(number) not in {int, float} or not math.isfinite(number):
                msg = f"count({name}=...) takes a finite number; got {number!r}"
                raise TypeError(msg)
            shown = self._shown(name)
            counts[shown] = counts.get(shown, 0) + number

    def waiting(self) -> AbstractContextManager[None]:
        """Return a context manager for a block that does not count towards ``_timeout``.

        Use it around the wait for a rate limit or a free connection:
        ``with context.waiting(): await limiter``.
        """
        return _call("waiting()").waiting()

    def drop(self, reason: str) -> Drop:
        """Return the value by which an operator drops a record for a reason."""
        return Drop(self._shown(reason))

    @cached_property
    def _shown(self) -> Callable[[str], str]:
        """Return a name or reason without secrets; the last ones are remembered."""
        return lru_cache(maxsize=1024)(self._hiding())


class Clients(dict[str, Any]):
    """The clients of a run, by name."""

    def __init__(self, node: str, clients: Mapping[str, Any]) -> None:
        super().__init__(clients)
        self._node = node

    def __missing__(self, name: str) -> Any:
        known = ", ".join(sorted(self)) or "none"
        reason = (
            f"is needed by node {self._node!r}, and the run has {known}; give it as "
            f"build_definitions(clients={{{name!r}: ...}}) under Dagster, otherwise as "
            f"config.clients[{name!r}]"
        )
        raise OperatorContextError(f"clients[{name!r}]", reason)


def _call(wanted: str) -> Call:
    call = _current.get(None)
    if call is None:
        reason = "is known only while a record is being processed; use it inside forward"
        raise OperatorContextError(wanted, reason)
    return call
