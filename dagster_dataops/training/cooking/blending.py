"""``blend`` and ``blend_epochized``: mix datasets by weight, or each a number of times.

Unlike ``sample`` they read no item ahead, so that a resumed stream reads nothing twice. The order
depends on the seed alone: draw i is the i-th number of the seed.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Any, ClassVar, Final

from typing_extensions import override

from dagster_dataops.errors import DataPipelineError
from dagster_dataops.records import RESTORE_KEY
from dagster_dataops.streams.core.finitude import Finitude
from dagster_dataops.streams.core.random_access import MISSING
from dagster_dataops.streams.core.stage import ReadContext, UnaryStage
from dagster_dataops.streams.stages.sampling import DrawingStage
from dagster_dataops.training.cooking.crude_sources import CrudeSource, IndexRows

ENTRY: Final = "entry"  # in a line of an index
_END: Final = object()


@dataclass(eq=False)
class Leaf(UnaryStage):
    """Yield the samples of one dataset of a mixture, and count them over all epochs.

    Attributes:
        about: A description of the dataset, with the method ``facts``.
        entry: The text that tells this dataset from others with the same path in the restore keys
            of its samples; ``None`` if no other needs it.
    """

    name: ClassVar[str] = "leaf"
    saved: ClassVar[tuple[str, ...]] = ("given",)
    about: Any
    entry: str | None = None

    @override
    def options(self) -> dict[str, Any]:
        return {}

    @override
    def reset(self) -> None:
        self.given = 0

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        given = self.given
        super().restart(reset_rng=reset_rng)
        self.given = given

    @override
    def datasets(self) -> Sequence[Any]:
        return (self.about,)

    @override
    def dataset_sources(self) -> Sequence[tuple[Any, Any]]:
        found = next(one for one in self.ordered() if isinstance(one, (CrudeSource, IndexRows)))
        sources = (found.source if isinstance(found, IndexRows) else found).parts
        return list(zip(self.about.datasets, sources, strict=True))

    @override
    def leaves(self) -> list[dict[str, Any]]:
        return [{**self.about.facts(), "samples": self.given}]

    @override
    def items(self) -> Iterator[Any]:
        samples = self.source.items()
        for sample in samples if self.entry is None else map(self.marked, samples):
            self.given += 1
            yield sample

    def marked(self, sample: dict[str, Any]) -> dict[str, Any]:
        """Return a sample, or a line of an index, with the entry added; sources make new ones."""
        if self.entry is not None and RESTORE_KEY in sample:
            sample[RESTORE_KEY] = [*sample[RESTORE_KEY], self.entry]
        elif self.entry is not None:
            sample[ENTRY] = self.entry
        return sample


@dataclass(eq=False)
class RowRange(UnaryStage):
    """Yield the items at the places from ``start`` to ``end`` of a source.

    Items are read by number if the source allows it. Otherwise those before are skipped. The number
    of items that were passed is saved.
    """

    name: ClassVar[str] = "rows"
    saved: ClassVar[tuple[str, ...]] = ("passed", "failed")
    start: int
    end: int

    @override
    def begin(self, context: ReadContext) -> None:
        self._access = self.upstream.access(context)
        if self._access is not None:
            self._access.counter = self.counter

    @override
    def reset(self) -> None:
        self.passed = self.start if self._access is not None else 0

    @override
    def items(self) -> Iterator[Any]:
        if self._access is None:
            for item in islice(self.source.items(), self.end - self.passed):
                self.passed += 1
                if self.passed > self.start:
                    yield item
            return
        with self._access.opened() as items:
            while self.passed < self.end:
                self.passed += 1
                item = items.item(self.passed - 1)
                if item is not MISSING:
                    yield item


@dataclass(eq=False)
class MixingStage(DrawingStage):
    """A stage that draws the dataset of each item. The seed and the number of draws are saved.

    Draws are numbered across epochs.

    Attributes:
        titles: The names of the datasets in errors.
    """

    saved: ClassVar[tuple[str, ...]] = ("_seed", "drawn")
    titles: tuple[str, ...]
    seed: int | None

    @override
    def options(self) -> dict[str, Any]:
        options = super().options()
        return {name: one for name, one in options.items() if name not in {"titles", "place"}}

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        super().restart(reset_rng=reset_rng)
        self.drawn = 0 if reset_rng else self.drawn


@dataclass(eq=False)
class Blend(MixingStage):
    """Choose a dataset by weight for each item, without end; a dataset that ends starts again."""

    name: ClassVar[str] = "blend"
    weights: tuple[float, ...]
    place: str = ""  # the file and line of a metadataset, for messages

    @property
    @override
    def finitude(self) -> Finitude:
        return Finitude.INFINITE

    @property
    @override
    def described(self) -> str:
        return f"blend ({self.place})" if self.place else self.name

    @override
    def endless(self) -> "Blend":
        return self

    @override
    def items(self) -> Iterator[Any]:
        iterators = [one.items() for one in self.opened]
        *limits, total = accumulate(self.weights)
        for draw in self._draws:
            at = bisect_right(limits, draw * total)
            item = next(iterators[at], _END)
            if item is _END:
                item = self._first_again(at, iterators)
            yield item

    def _first_again(self, at: int, iterators: list[Iterator[Any]]) -> Any:
        """Start a dataset again and return its first item."""
        self.opened[at].restart()
        iterators[at] = self.opened[at].items()
        item = next(iterators[at], _END)
        if item is _END:
            msg = f"blend: {self.titles[at]} gave no sample in a whole epoch; leave it out"
            raise DataPipelineError(msg)
        return item


@dataclass(eq=False)
class BlendEpochized(MixingStage):
    """Read every dataset to its end in random order; the numbers of their items are given.

    Each draw chooses a dataset by the number of its remaining items. A dataset that ends early is
    left out from then on. The number of read items of each is saved.
    """

    name: ClassVar[str] = "blend_epochized"
    saved: ClassVar[tuple[str, ...]] = ("_seed", "drawn", "taken")
    totals: tuple[int, ...]

    @property
    @override
    def finitude(self) -> Finitude:
        return max((one.finitude for one in self.sources), default=Finitude.FINITE)

    @override
    def reset(self) -> None:
        self._taken = [0] * len(self.totals)

    @property
    def taken(self) -> list[int]:
        """The number of read items of each dataset."""
        return list(self._taken)

    @taken.setter
    def taken(self, taken: list[int]) -> None:
        self._taken = list(taken)

    @override
    def items(self) -> Iterator[Any]:
        iterators = [one.items() for one in self.opened]
        taken, totals = self._taken, self.totals
        remaining = [total - done for total, done in zip(totals, taken, strict=True)]
        left = sum(remaining)
        if not left:
            return
        for draw in self._draws:
            place, at = int(draw * left), 0
            while place >= remaining[at]:
                place -= remaining[at]
                at += 1
            item = next(iterators[at], _END)
            if item is _END:
                taken[at], left, remaining[at] = totals[at], left - remaining[at], 0
            else:
                taken[at] += 1
                remaining[at] -= 1
                left -= 1
                yield item
            if not left:
                return
