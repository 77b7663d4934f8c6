"""`Stage`, a node of a stream definition, and `Cursor`, an open stage with a position.

Stages are immutable and hold no position, so one stage can be part of two streams. Reading runs
through nested generators. Everything that a generator keeps between two items is stored in its
cursor, so a state can be taken between any two items.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from typing_extensions import override

from dagster_dataops.streams.core.finitude import Finitude
from dagster_dataops.streams.core.item_failures import FailureHandler

if TYPE_CHECKING:
    from dagster_dataops.streams.core.random_access import RandomAccess, ShardSlice

State: TypeAlias = Any
"""The position of a cursor: a small JSON value that is never changed after it was returned."""


class Cursor(ABC):
    """An open stage with a reading position."""

    @abstractmethod
    def items(self) -> Iterator[Any]:
        """Yield the items from the current position on.

        Call it once after opening and once after each `restore` or `restart`.
        """

    @abstractmethod
    def state(self) -> State:
        """Return the position after the last yielded item. Called often, so it must be fast."""

    @abstractmethod
    def restore(self, state: State) -> None:
        """Go to a position. The time this takes must not depend on the position."""

    @abstractmethod
    def restart(self, *, reset_rng: bool = False) -> None:
        """Go to the start of the next epoch, or of the first one with ``reset_rng``.

        Implementations start from the position that `state` returns. Upstream stages may have been
        read ahead and may already be in a later epoch. How far is not deterministic (threads,
        restored states), so it must not affect the order.
        """


@dataclass(frozen=True, eq=False)
class ReadContext:
    """The values that all cursors of a stream share: the seed and the failure handling."""

    seed: int
    failures: FailureHandler


@dataclass(frozen=True, eq=False)
class Stage(ABC):
    """A node of a stream definition, together with its inputs."""

    name: ClassVar[str]

    @property
    def inputs(self) -> "tuple[Stage, ...]":
        """The stages that this stage reads."""
        return ()

    @property
    @abstractmethod
    def finitude(self) -> Finitude:
        """Whether the stage ends by itself."""

    @abstractmethod
    def open(self, context: ReadContext) -> Cursor:
        """Return a cursor at the start. Reading begins when its first item is requested."""

    def access(self, context: ReadContext) -> "RandomAccess | None":  # noqa: ARG002 - for overriding stages
        """Return random access to the items; ``None`` if they can only be read in order."""
        return None

    def open_part(self, context: ReadContext, part: "ShardSlice") -> Cursor | None:  # noqa: ARG002
        """Return a cursor that reads only the items of ``part``; ``None`` if not supported."""
        return None

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
        above = ",".join(one.path for one in self.inputs)
        return f"{above}>{self.name}" if above else self.name

    def options(self) -> dict[str, Any]:
        """Return the arguments of the stage by name, without its inputs."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name not in {"upstream", "sources"}
        }

    def ordered(self) -> "Iterator[Stage]":
        """Yield the stage and all its inputs, sources first."""
        for one in self.inputs:
            yield from one.ordered()
        yield self

    def endless(self) -> "Stage | None":
        """Return the stage that makes this one infinite; ``None`` if it ends."""
        if self.finitude is Finitude.FINITE:
            return None
        found = (one.endless() for one in self.inputs if one.finitude >= self.finitude)
        return next((one for one in found if one is not None), self)


@dataclass(frozen=True, eq=False)
class SourceStage(Stage):
    """A stage without inputs."""

    ends: ClassVar[Finitude] = Finitude.FINITE

    @property
    @override
    def finitude(self) -> Finitude:
        return self.ends


@dataclass(frozen=True, eq=False)
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


@dataclass(frozen=True, eq=False)
class CombinedStage(Stage):
    """A stage with several inputs."""

    sources: tuple[Stage, ...]

    @property
    @override
    def inputs(self) -> tuple[Stage, ...]:
        return self.sources


class UnaryCursor(Cursor):
    """A cursor whose position is the position of its input."""

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
