"""Stage, what a stream is made of, and Cursor, a stage that is being read.

Stages are immutable and hold no position: one stage in two streams is two cursors. Reading goes
through generators one in another; what they hold between two items is an attribute of their
cursor, so that a state can be taken whenever they rest.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from typing_extensions import override

from dagster_dataops.streams.core.finitude import Finitude
from dagster_dataops.streams.core.item_failures import Failures

if TYPE_CHECKING:
    from dagster_dataops.streams.core.random_access import Access, Part

State: TypeAlias = Any
"""The position of a cursor: JSON, small, never changed once it was given out."""


class Cursor(ABC):
    """A stage that is being read."""

    @abstractmethod
    def items(self) -> Iterator[Any]:
        """Yield the items from here on; asked for once after each of the methods below."""

    @abstractmethod
    def state(self) -> State:
        """Return the position behind the last item that was yielded. Called often: be quick."""

    @abstractmethod
    def restore(self, state: State) -> None:
        """Go to a position, in a time that does not depend on how far it is."""

    @abstractmethod
    def restart(self, *, reset_rng: bool = False) -> None:
        """Go back to the start of the next epoch; with ``reset_rng`` to that of the first.

        It goes from the position that `state` tells. What was read ahead of it may have begun an
        epoch of its own; how far that went, a thread or a state that was loaded decides, and no
        order may depend on it.
        """


@dataclass(frozen=True, eq=False)
class Opening:
    """What cursors share: the seed of the stream, and what becomes of its failures."""

    seed: int
    failures: Failures


@dataclass(frozen=True, eq=False)
class Stage(ABC):
    """One step of a stream, with all that lead to it."""

    name: ClassVar[str]

    @property
    def inputs(self) -> "tuple[Stage, ...]":
        """The stages that it reads."""
        return ()

    @property
    @abstractmethod
    def finitude(self) -> Finitude:
        """Whether it ends."""

    @abstractmethod
    def open(self, opening: Opening) -> Cursor:
        """Return a cursor at the start. Nothing is read before its first item is asked for."""

    def access(self, opening: Opening) -> "Access | None":  # noqa: ARG002 - for those that have
        """Return a way to its items by number; ``None`` where they come one after another only."""
        return None

    def open_part(self, opening: Opening, part: "Part") -> Cursor | None:  # noqa: ARG002
        """Return a cursor over a part of it that leaves the rest unread; ``None`` if it cannot."""
        return None

    def identity(self) -> object:
        """Return what tells the content it reads from other content; ``None`` if it reads none."""
        return None

    def seed_in(self, root: int) -> int | None:  # noqa: ARG002 - of the stages that draw
        """Return the seed that it uses in a stream of seed ``root``; ``None`` if it draws none."""
        return None

    @property
    def draws_seed(self) -> bool:
        """Whether its seed was drawn at random: no part of what it is, but of its state."""
        return False

    @property
    def path(self) -> str:
        """Name it by what it does and what it reads; its randomness belongs to that name."""
        above = ",".join(one.path for one in self.inputs)
        return f"{above}>{self.name}" if above else self.name

    def options(self) -> dict[str, Any]:
        """Return its arguments by name, less the stages that it reads."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name not in {"upstream", "sources"}
        }

    def ordered(self) -> "Iterator[Stage]":
        """Yield all stages that it consists of, sources first."""
        for one in self.inputs:
            yield from one.ordered()
        yield self

    def endless(self) -> "Stage | None":
        """Return the stage that makes it never end; ``None`` if it does."""
        if self.finitude is Finitude.FINITE:
            return None
        found = (one.endless() for one in self.inputs if one.finitude >= self.finitude)
        return next((one for one in found if one is not None), self)


@dataclass(frozen=True, eq=False)
class Source(Stage):
    """A stage that reads no other."""

    ends: ClassVar[Finitude] = Finitude.FINITE

    @property
    @override
    def finitude(self) -> Finitude:
        return self.ends


@dataclass(frozen=True, eq=False)
class Step(Stage):
    """A stage that reads one other."""

    upstream: Stage

    @property
    @override
    def inputs(self) -> tuple[Stage, ...]:
        return (self.upstream,)

    @property
    @override
    def finitude(self) -> Finitude:
        return self.upstream.finitude


@dataclass(frozen=True, eq=False)
class Combination(Stage):
    """A stage that reads several others."""

    sources: tuple[Stage, ...]

    @property
    @override
    def inputs(self) -> tuple[Stage, ...]:
        return self.sources


class StepCursor(Cursor):
    """A cursor that holds nothing of its own: it stands where what it reads stands."""

    def __init__(self, upstream: Cursor) -> None:
        self.upstream = upstream

    @override
    def state(self) -> State:
        return self.upstream.state()

    @override
    def restore(self, state: State) -> None:
        self.upstream.restore(state)

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        self.upstream.restart(reset_rng=reset_rng)
