"""``yield_from``: make a stream of each item and yield its items."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final

from dagster_dataops.errors import DataPipelineError, StreamStateError
from dagster_dataops.foundation.override import override
from dagster_dataops.streams.core.element_numbers import NOTHING, NumberedStage
from dagster_dataops.streams.core.finitude import Finitude
from dagster_dataops.streams.core.item_failures import (
    FAILED,
    FailureCounter,
    FailureHandler,
    OnError,
)
from dagster_dataops.streams.core.seeds import derive_seed
from dagster_dataops.streams.core.stage import Cursor, NestingCursor, ReadContext, Stage, State
from dagster_dataops.streams.files.file_stages import FileStage

_END: Final = object()


@dataclass(eq=False)
class YieldFrom(NestingCursor, NumberedStage):
    """Yield the items of the streams that ``fn`` returns, one stream after another.

    The position before the current item is saved, and the position in its stream. Each stream gets
    a seed derived from the number of its item.
    """

    name: ClassVar[str] = "yield_from"
    saved: ClassVar[tuple[str, ...]] = ("failed", "begun_before", "within")
    fn: Callable[[Any], Any]

    @override
    def begin(self, context: ReadContext) -> None:
        super().begin(context)
        self._seed, self._on_error = derive_seed(context.seed, self.path), context.failures.on_error
        self._elements.observers.append(self._observe)

    def _observe(self) -> None:
        self._before_element = self.source.state()

    @override
    def reset(self) -> None:
        super().reset()
        self._before: State = None  # the state of the input before the current item
        self._last: list[int] = []  # `begun` before the current item
        self.within = None

    @property
    def begun_before(self) -> list[int]:
        """The value of `begun` before the current item, or before the next one."""
        return self.begun if self.inner is None else list(self._last)

    @begun_before.setter
    def begun_before(self, begun: list[int]) -> None:
        self.begun = begun

    @override
    def with_names(self, state: Any) -> dict[str, Any]:
        failed, (*begun, within), *inputs = state
        return super().with_names([failed, begun, within, *inputs])

    @property
    @override
    def is_within(self) -> bool:
        return self.inner is not None or self.to_restore is not None

    @override
    def states_before(self) -> list[State] | None:
        return None if self.inner is None else [self._before]

    @override
    def items(self) -> Iterator[Any]:
        upstream = self.source.items()
        while True:
            before, last, elements = self.source.state(), self.begun, self._elements.number
            item = next(upstream, _END)
            if item is _END:
                return
            if self._elements.number != elements:  # the state before the element of this item
                before, last = self._before_element, list(NOTHING)
            number = self.next_number()
            try:
                inner = self._opened(item, number)
            except Exception as error:  # noqa: BLE001 - the user's function may raise anything
                self.counter.end(self.counter.handle(item, error, self.counter.before))
                continue
            self.enter(inner)
            self._before, self._last = before, last
            yield from self._items_of(inner)
            self.inner = None

    def _items_of(self, inner: Cursor) -> Iterator[Any]:
        items = inner.items()
        first = next(items, _END)
        if first is not _END:
            self.counter.end(first)
            yield first
            yield from items

    def _opened(self, item: Any, number: tuple[int, ...]) -> "_InnerStream":
        stage = inner_stage(self.fn(item))
        seed = derive_seed(self._seed, *number)
        context = ReadContext(seed, _InnerFailures(self.counter, self._on_error))
        return _InnerStream(stage, stage.open(context))


class _InnerStream(Cursor):
    """The stream of one item. The files that it reads are saved, with its position."""

    saved: ClassVar[tuple[str, ...]] = ("files",)

    def __init__(self, stage: Stage, cursor: Cursor) -> None:
        self._stage = stage
        self.opened = [cursor]

    @cached_property
    def _files(self) -> list[object]:
        stages = self._stage.ordered()  # sources in memory are not compared
        return [stage.identity() for stage in stages if isinstance(stage, FileStage)]

    @property
    def files(self) -> list[object]:
        """The identities of the files; others than those of the stream are refused."""
        return self._files

    @files.setter
    def files(self, files: list[object]) -> None:
        if files != self._files:
            msg = "yield_from: the stream of the item reads other files than in the saved state"
            raise StreamStateError(msg)

    @property
    @override
    def title(self) -> str:
        return f"yield_from (the stream of an item, {self._stage.name})"

    @override
    def state(self) -> State:  # as the base does it, but it is called for every item
        return {"files": self._files, "inputs": [self.opened[0].state()]}

    @override
    def items(self) -> Iterator[Any]:
        return self.opened[0].items()


class _InnerFailures(FailureHandler):
    """Count failures inside the stream of an item as failures of ``yield_from``."""

    def __init__(self, outer: FailureCounter, on_error: OnError) -> None:
        super().__init__(on_error, tolerance=None)  # that of the outer stage counts
        self._outer = outer

    @override
    def handle(self, counter: FailureCounter, item: Any, error: Exception) -> None:
        before = FAILED if counter.in_a_row > 1 else self._outer.before
        self._outer.end(self._outer.handle(item, error, before))


def inner_stage(stream: object) -> Stage:
    """Return the last stage of the stream that the user's function returned."""
    part = getattr(stream, "part", None)
    stage = part() if callable(part) else None
    if not isinstance(stage, Stage):
        msg = f"yield_from: the function returned a {type(stream).__name__}, not a stream"
        raise DataPipelineError(msg)
    if stage.finitude is not Finitude.FINITE:
        endless = stage.endless() or stage
        msg = f"yield_from: the stream never ends because of {endless.name}; end it with take()"
        raise DataPipelineError(msg)
    return stage
