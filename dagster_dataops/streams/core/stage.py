"""`Stage`, a node of a stream definition, and `Cursor`, an open stage with a position.

A definition holds no position, so one stage can be part of two streams: opening a stage makes a
copy, which is the cursor. Reading runs through nested generators. Everything that a generator keeps
between two items is stored in its cursor, so a state can be taken between any two items.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import chain
from operator import length_hint
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from dagster_dataops.errors import StreamStateError
from dagster_dataops.foundation.override import override
from dagster_dataops.streams.core.finitude import Finitude
from dagster_dataops.streams.core.item_failures import FailureCounter, FailureHandler

if TYPE_CHECKING:
    from dagster_dataops.streams.core.random_access import RandomAccess, ShardSlice

State: TypeAlias = Any
"""The position of a cursor: a small JSON value that is never changed after it was returned.

It is an object with the values of a stage by name, and with the positions of its inputs, a list,
under ``inputs``. The position of a stage with one input and no values is that of its input.
"""

UNNAMED: Final = "unnamed"
"""The key of a position as version 2 has written it: a list of values without names."""

_INPUTS: Final = "inputs"
_CHECKED_TYPES: Final = frozenset({int, bool, list})


@contextmanager
def restoring() -> Iterator[None]:
    """Raise the errors of a damaged position in the ``with`` block as `StreamStateError`."""
    try:
        yield
    except StreamStateError:
        raise
    except (TypeError, ValueError, LookupError) as error:
        msg = f"its position is damaged: {type(error).__name__}: {error}"
        raise StreamStateError(msg) from error


class Cursor(ABC):
    """An open stage with a reading position.

    Attributes:
        saved: The names of the attributes that are the position, besides the positions of the
            inputs. Their values are JSON values. In states, they have no leading underscore, and
            their order does not matter. States of version 2 have the values in this order.
        keys: The names in states, each with the name of the attribute.
        opened: The cursors of the inputs.
        counter: Counts failed items.
        numbering: The distance between the numbers of two items, and what to add to them: 1 and 0,
            but for one rank of several, whose items are numbered among those of all ranks.
    """

    saved: ClassVar[tuple[str, ...]] = ()
    keys: ClassVar[tuple[tuple[str, str], ...]] = ()
    opened: "Sequence[Cursor]" = ()
    numbering: tuple[int, int] = (1, 0)
    counter: FailureCounter

    @override
    def __init_subclass__(cls) -> None:
        cls.keys = tuple((name.removeprefix("_"), name) for name in cls.saved)

    @property
    def numbers_after(self) -> int:
        """At the end: difference between the number of all items and that after the last item."""
        return 0

    @abstractmethod
    def items(self) -> Iterator[Any]:
        """Yield the items from the current position on.

        Call it once after opening and once after each `restore` or `restart`.
        """

    def reset(self) -> None:  # noqa: B027 - a stage without a position of its own needs none
        """Set the own position to the start of an epoch, and drop the items read ahead."""

    def splits_element(self) -> bool:
        """Return whether a restored position is between several items of one element."""
        return any(stage.splits_element() for stage in self.opened)

    def leaves(self) -> list[dict[str, Any]]:
        """Return facts about the datasets that are mixed; see `Manifest.leaves`."""
        return [leaf for stage in self.opened for leaf in stage.leaves()]

    def states_before(self) -> list[State] | None:
        """Return the states of the inputs before the items that were read ahead, if any were."""
        return None

    @property
    def failed(self) -> int:
        """The number of items on which this stage failed."""
        return self.counter.count

    @failed.setter
    def failed(self, count: int) -> None:
        self.counter.count = count

    def state(self) -> State:
        """Return the position after the last yielded item. Called often, so it must be fast."""
        position: dict[str, Any] = {}
        for key, name in self.keys:
            position[key] = getattr(self, name)
        inputs = self.states_before()
        if inputs is None:
            inputs = []
            for stage in self.opened:
                inputs.append(stage.state())
        if inputs:
            if not position and len(inputs) == 1:
                return inputs[0]
            position[_INPUTS] = inputs
        return position

    def restore(self, state: State) -> None:
        """Go to a position. The time this takes must not depend on the position.

        Raises:
            StreamStateError: The position lacks a value, or has one that the stage does not know.
            TypeError: A value has another type than at the start.
        """
        alone = not self.keys and len(self.opened) == 1
        values = {_INPUTS: [state]} if alone else self.values_of(state)
        self.reset()
        for key, name in self.keys:
            start, value = getattr(self, name), values[key]
            if type(start) in _CHECKED_TYPES and type(value) is not type(start):
                types = f"{type(value).__name__}, not {type(start).__name__}"
                msg = f"{key} of stage {self.title} is of type {types}"
                raise TypeError(msg)
            setattr(self, name, value)
        for stage, inner in zip(self.opened, values.get(_INPUTS, ()), strict=True):
            stage.restore(inner)

    def values_of(self, state: State) -> Mapping[str, Any]:
        """Return the values in a position by name."""
        if not isinstance(state, dict):
            msg = f"stage {self.title} has a {type(state).__name__} instead of named values"
            raise TypeError(msg)
        values = self.with_names(state[UNNAMED]) if state.keys() == {UNNAMED} else state
        needed = {key for key, _ in self.keys} | ({_INPUTS} if self.opened else set())
        if values.keys() != needed:
            names, expected = (", ".join(sorted(value)) or "none" for value in (values, needed))
            msg = (
                f"its position is damaged, or another version of stage {self.title} has written "
                f"it: its values are {names}, and {expected} are expected. Start afresh, or use "
                "that version"
            )
            raise StreamStateError(msg)
        return values

    def with_names(self, state: Any) -> dict[str, Any]:
        """Add the names to the values of a position of version 2; see `UNNAMED`."""
        count = len(self.keys)
        parts = [state] if count + len(self.opened) == 1 else state
        values = {key: part for (key, _), part in zip(self.keys, parts[:count], strict=True)}
        if self.opened:
            values[_INPUTS] = [{UNNAMED: part} for part in parts[count:]]
        return values

    @property
    def title(self) -> str:
        """The name of the stage in messages."""
        return getattr(self, "name", type(self).__name__)

    def restart(self, *, reset_rng: bool = False) -> None:
        """Go to the start of the next epoch, or of the first one with ``reset_rng``.

        It starts from the position that `state` returns. Inputs may have been read ahead and may
        already be in a later epoch. How far is not deterministic (threads, restored states), so it
        must not affect the order.
        """
        before = self.states_before()
        self.reset()
        for number, stage in enumerate(self.opened):
            if before is not None:
                stage.restore(before[number])
            stage.restart(reset_rng=reset_rng)


class NestingCursor(Cursor):
    """A cursor that reads other cursors, one after another; it saves the position in the last one.

    Attributes:
        inner: The cursor that is read; ``None`` before the next one is opened.
        to_restore: The position to restore in the next one; ``None`` for its start.
    """

    inner: "Cursor | None" = None
    to_restore: State = None

    @property
    def within(self) -> State:
        """The position in the cursor that is read, or the one to restore in the next."""
        return self.to_restore if self.inner is None else self.inner.state()

    @within.setter
    def within(self, state: State) -> None:
        self.inner, self.to_restore = None, state

    def enter(self, cursor: Cursor) -> None:
        """Read a cursor from now on: from the position to restore, or from its start.

        Raises:
            StreamStateError: The position is damaged.
        """
        if self.to_restore is not None:
            with restoring():
                cursor.restore(self.to_restore)
        self.inner, self.to_restore = cursor, None

    @override
    def with_names(self, state: Any) -> dict[str, Any]:
        values = super().with_names(state)
        within = values["within"]
        return {**values, "within": within if within is None else {UNNAMED: within}}


class BlockwiseCursor(Cursor):
    """A cursor that yields blocks of items, whose iterators know the number of remaining items.

    So keeping the position costs nothing per item.

    Attributes:
        first_index: The index of the first item of the current block, with `indexed_block`.
    """

    first_index = 0
    _failed_before = 0  # the current block
    _remaining: Any = iter(())  # a list iterator
    _length = 0

    @abstractmethod
    def blocks(self) -> Iterator[Iterator[Any]]:
        """Yield the items from the current position on, in iterators over blocks."""

    @override
    def items(self) -> Iterator[Any]:
        return chain.from_iterable(self.blocks())

    @override
    def reset(self) -> None:
        self.first_index = 0
        self.begin_block([])

    @property
    def item_index(self) -> int:
        """The index of the next item."""
        return self.first_index + self.read

    @item_index.setter
    def item_index(self, index: int) -> None:
        self.first_index = index

    @property
    def failed_before(self) -> int:
        """The number of failures before the current block."""
        return self._failed_before

    @failed_before.setter
    def failed_before(self, count: int) -> None:
        self._failed_before = self.failed = count

    def indexed_block(self, items: Sequence[Any]) -> Iterator[Iterator[Any]]:
        """Yield an iterator over the items of a new block; then go to the index behind it."""
        yield self.begin_block(items)
        self.first_index += len(items)
        self.begin_block([])

    def begin_block(self, items: Sequence[Any]) -> Iterator[Any]:
        """Return an iterator over the items of a new block."""
        self._remaining, self._length = iter(items), len(items)
        return self._remaining  # type: ignore[no-any-return]

    @property
    def read(self) -> int:
        """The number of items that were read of the current block."""
        return self._length - length_hint(self._remaining)


@dataclass(frozen=True, eq=False)
class ReadContext:
    """The values that all cursors of a stream share: the seed and the failure handling.

    Attributes:
        unread: Whether items may be `UnreadItem`, which only the process that yields them reads.
    """

    seed: int
    failures: FailureHandler
    unread: bool = False

    def of_input(self, stage: "Stage", *, unread: bool | None = None) -> "ReadContext":
        """Return the context of an input: it yields unread items only if it declares that.

        Without ``unread``, they may be unread if those of the stage may be.
        """
        wanted = self.unread if unread is None else unread
        wanted = wanted and stage.takes_unread
        return self if wanted is self.unread else replace(self, unread=wanted)


@dataclass(eq=False)
class Stage(Cursor):
    """A node of a stream definition, together with its inputs; opened, a copy is the cursor.

    Attributes:
        name: The name of the operation.
        elementwise: Whether the stage processes each item alone and holds nothing between two
            items, except for counts of failures. Worker processes run such stages.
        transparent: Whether the stage changes how a stream is read, but neither its items nor its
            states.
        keeps_step: Whether the number of yielded items says how many items were read, as long as
            no item fails. So ranks that have yielded as many items have the same position.
        elastic: Whether the items that follow a position, which all ranks have, are those that no
            rank has yielded, for any number of ranks; unless the position splits an element. To
            declare either, prove it.
        expands: Whether it is elastic and can make several items of one; see `splits_element`.
        takes_unread: Whether the stage passes items on without a look into them, so that they may
            be unread; for a source, whether it can yield such items.
        code_seen: The digest of its functions, as it was when it was first taken.
        left_out: The fields that are no options, besides inputs: they do not change the
            items, or `identity` covers them.
        added_later: The fields that are no options while they are empty: states of versions before
            these fields are still read.
    """

    name: ClassVar[str]
    left_out: ClassVar[frozenset[str]] = frozenset()
    added_later: ClassVar[frozenset[str]] = frozenset()
    elementwise: ClassVar[bool] = False
    transparent: ClassVar[bool] = False
    keeps_step: ClassVar[bool] = False
    elastic: ClassVar[bool] = False
    expands: ClassVar[bool] = False
    takes_unread: ClassVar[bool] = False
    code_seen: str | None = field(default=None, init=False, repr=False)

    @property
    def inputs(self) -> "tuple[Stage, ...]":
        """The stages that this stage reads."""
        return ()

    @property
    @abstractmethod
    def finitude(self) -> Finitude:
        """Whether the stage ends by itself."""

    def open(self, context: ReadContext) -> Cursor:
        """Return a cursor at the start. Reading begins when its first item is requested."""
        opened = copy(self)
        opened.counter = context.failures.counter(self.name)
        opened.opened = [stage.open(context.of_input(stage)) for stage in self.inputs]
        opened.begin(context)
        opened.reset()
        return opened

    def begin(self, context: ReadContext) -> None:
        """Take values of the context that an opened stage needs, such as its seed."""

    def access(self, context: ReadContext) -> "RandomAccess | None":  # noqa: ARG002 - for overriding stages
        """Return random access to the items; ``None`` if they can only be read in order."""
        return None

    def open_part(self, context: ReadContext, part: "ShardSlice") -> Cursor | None:  # noqa: ARG002
        """Return a cursor that reads only the items of ``part``; ``None`` if not supported."""
        return None

    def is_elastic(self) -> bool:
        """Return whether another number of ranks can go on; see ``elastic``."""
        return self.elastic

    def identity(self) -> object:
        """Return a value that identifies the data the stage reads; ``None`` if it reads none."""
        return None

    def seed_in(self, root: int) -> int | None:  # noqa: ARG002 - for overriding stages
        """Return the seed of the stage in a stream of seed ``root``; ``None`` if it uses none."""
        return None

    @property
    def draws_seed(self) -> bool:
        """Whether the seed was generated randomly: part of the state, not of the fingerprint."""
        return False

    @property
    def path(self) -> str:
        """The names of the stage and of its inputs. Seeds are derived from this path."""
        above = ",".join(stage.path for stage in self.inputs)
        return f"{above}>{self.name}" if above else self.name

    @property
    def share(self) -> tuple[int, int]:
        """The share of the items of its input that it yields, and the number of shares."""
        return 0, 1

    @property
    def described(self) -> str:
        """The stage in messages."""
        return self.name

    @property
    def contents(self) -> str:
        """The data that the stage reads, as a sentence; empty if there is nothing to say."""
        return ""

    def datasets(self) -> Sequence[Any]:
        """Return descriptions of the datasets that a file names for this stage alone.

        They have the attributes of `MetadatasetLeaf`.
        """
        return ()

    def dataset_sources(self) -> Sequence[tuple[Any, Any]]:
        """Return the datasets, joined ones apart, each with the `CrudeSource` that reads it."""
        return ()

    def options(self) -> dict[str, Any]:
        """Return the arguments of the stage by name, without those in ``left_out``."""
        names = (field.name for field in fields(self))
        left_out = self.left_out | {"upstream", "sources", "code_seen"}
        left_out |= {name for name in self.added_later if not getattr(self, name)}
        return {name: getattr(self, name) for name in names if name not in left_out}

    def ordered(self) -> "Iterator[Stage]":
        """Yield the stage and all its inputs, sources first."""
        for stage in self.inputs:
            yield from stage.ordered()
        yield self

    def endless(self) -> "Stage | None":
        """Return the stage that makes this one infinite; ``None`` if it ends."""
        if self.finitude is Finitude.FINITE:
            return None
        endings = (stage.endless() for stage in self.inputs if stage.finitude >= self.finitude)
        return next((ending for ending in endings if ending is not None), self)


@dataclass(eq=False)
class SourceStage(Stage):
    """A stage without inputs."""

    ends: ClassVar[Finitude] = Finitude.FINITE

    @property
    @override
    def finitude(self) -> Finitude:
        return self.ends


@dataclass(eq=False)
class UnaryStage(Stage):
    """A stage with one input."""

    upstream: Stage

    @property
    @override
    def inputs(self) -> tuple[Stage, ...]:
        return (self.upstream,)

    @property
    @override
    def finitude(self) -> Finitude:
        return self.upstream.finitude

    @property
    def source(self) -> Cursor:
        """The cursor of the input."""
        return self.opened[0]


@dataclass(eq=False)
class CombinedStage(Stage):
    """A stage with several inputs."""

    sources: tuple[Stage, ...]

    @property
    @override
    def inputs(self) -> tuple[Stage, ...]:
        return self.sources

    @property
    @override
    def finitude(self) -> Finitude:
        """The finitude of a stage that reads every input to its end."""
        return max((source.finitude for source in self.sources), default=Finitude.FINITE)

    @cached_property
    def pseudo_infinite(self) -> list[bool]:
        """For each input, whether it is pseudo-infinite."""
        return [source.finitude is Finitude.PSEUDO_INFINITE for source in self.sources]
