"""Feeds: the bottom of a run of stages that processes some elements of the stages before it."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, Final

from dagster_dataops.foundation.override import override
from dagster_dataops.streams.core.element_numbers import ElementCursor
from dagster_dataops.streams.core.finitude import Finitude
from dagster_dataops.streams.core.random_access import read_item
from dagster_dataops.streams.core.stage import Cursor, ReadContext, SourceStage, Stage, State
from dagster_dataops.streams.stages.random_order import RandomCursor

_END: Final = object()


class FeedCursor(Cursor):
    """The bottom of a run that is not read: it only holds a position, to convert states.

    Attributes:
        held: The state of the stages before the run.
        places: The states by element number, where states of workers hold numbers instead.
        number: The element number that a state held.
    """

    def __init__(self, before: Cursor) -> None:
        self.before = before
        self.numbering = before.numbering
        self.held: State = before.state()
        self.places: dict[int, State] | None = None
        self.number = 0

    @override
    def items(self) -> Iterator[Any]:
        return iter(())

    @override
    def state(self) -> State:
        return self.held

    @override
    def restore(self, state: State) -> None:
        if self.places is None:
            self.held = state
        else:
            self.number, self.held = state, self.places[state]

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        self.before.restore(self.held)
        self.before.restart(reset_rng=reset_rng)
        self.held = self.before.state()


class SentElements:
    """The elements that the reading process reads for its workers, with the states before them."""

    def __init__(self, feed: FeedCursor) -> None:
        self._before = feed.before
        self._before.restore(feed.held)
        self._items = self._before.items()
        self._places = feed.places = {0: feed.held}
        feed.number = self.number = 0
        self._error: BaseException | None = None

    def take(self, first: int, count: int) -> tuple[list[Any], bool]:
        """Return up to ``count`` elements, and whether they are the last."""
        items: list[Any] = []
        while len(items) < count:
            try:
                item = next(self._items, _END)
            except Exception as error:  # noqa: BLE001 - raised behind the elements before it
                self._error, item = error, _END
            if item is _END:
                break
            items.append(item)
            self.number = first + len(items)
            self._places[self.number] = self._before.state()
        return items, len(items) < count

    def forget(self, first: int, count: int) -> None:
        """Drop the states before elements that are finished."""
        for number in range(first, first + count):
            self._places.pop(number, None)

    def finish(self) -> None:
        """Set the state at the end.

        Raises:
            Exception: Reading failed.
        """
        if self._error is not None:
            raise self._error
        self._places[self.number] = self._before.state()


class PartFeed(Cursor):
    """The elements of one task of a worker.

    Attributes:
        at: The number of the next element.
        ended: Whether the stages before the run have ended.
    """

    at = 0
    ended = False
    _count = 0

    def begin(self, first: int, payload: Any) -> None:
        """Go to the elements of a task from ``first`` on; the payload has them, or their count."""
        raise NotImplementedError


class ReplicaFeed(PartFeed):
    """Elements that the worker reads itself; it passes over those of other workers.

    Args:
        before: The stages before the run.
        skips: Whether failed items do not end the stream.
    """

    def __init__(self, before: Cursor, *, skips: bool) -> None:
        self._before = before
        self._by_number = before if isinstance(before, RandomCursor) and not skips else None
        self.numbering = before.numbering
        self._source: Iterator[Any] | None = None

    @property
    @override
    def numbers_after(self) -> int:
        return self._before.numbers_after if self.ended else 0

    @override
    def begin(self, first: int, payload: int) -> None:
        if self._source is None:
            self._source = self._before.items()
        ahead = max(0, first - self.at)
        if self._by_number is not None:
            self._by_number.pass_over(ahead)
            self.at += ahead
        else:
            self.at += sum(1 for _ in islice(self._source, ahead))
        self._count = payload

    @override
    def items(self) -> Iterator[Any]:
        end = self.at + self._count
        for item in islice(self._source or (), self._count):
            self.at += 1
            yield read_item(item)
        self.ended = self.at < end

    @override
    def state(self) -> State:
        return self._before.state()

    @override
    def restore(self, state: State) -> None:
        self._before.restore(state)
        self._source = None


class DispatchedFeed(PartFeed):
    """Elements that the reading process sends. The state is the number of the next element."""

    _elements: Any = ()

    def __init__(self, numbering: tuple[int, int]) -> None:
        self.numbering = numbering

    @override
    def begin(self, first: int, payload: Any) -> None:
        self.at, self._elements = first, payload

    @override
    def items(self) -> Iterator[Any]:
        for item in self._elements:
            self.at += 1
            yield item

    @override
    def state(self) -> State:
        return self.at

    @override
    def restore(self, state: State) -> None:
        self.at = state


@dataclass(eq=False)
class Feed(SourceStage):
    """The stage at the bottom of a run.

    Attributes:
        before: The stages before the run; ``None`` where the elements are sent.
        above: The path of these stages, from which the seeds of the run are derived.
        is_replica: Whether a worker reads the stages before the run itself.
        numbering: The numbering of elements that are sent; see `Cursor`.
    """

    name: ClassVar[str] = "feed"
    before: Stage | None
    above: str
    is_replica: bool = False
    numbering: tuple[int, int] = (1, 0)

    @property
    @override
    def path(self) -> str:
        return self.above

    @property
    @override
    def finitude(self) -> Finitude:
        return Finitude.FINITE if self.before is None else self.before.finitude

    @override
    def items(self) -> Iterator[Any]:
        raise NotImplementedError  # another cursor is opened

    @override
    def open(self, context: ReadContext) -> Cursor:
        if self.before is None:
            return DispatchedFeed(self.numbering)
        unread = self.is_replica  # a worker reads only the elements of its tasks
        before = self.before.open(context.of_input(self.before, unread=unread))
        if not self.is_replica:
            return FeedCursor(before)
        return ReplicaFeed(before, skips=context.failures.on_error != "raise")


def run_cursors(top: Cursor) -> tuple[list[Cursor], ElementCursor | None, Cursor]:
    """Return the cursors of a run from the top, the one that numbers elements, and the feed."""
    run: list[Cursor] = []
    while not isinstance(top, (FeedCursor, PartFeed, ElementCursor)):
        run.append(top)
        top = top.opened[0]
    if isinstance(top, ElementCursor):
        return run, top, top.opened[0]
    return run, None, top
