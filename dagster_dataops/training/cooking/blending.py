"""``blend`` and ``blend_epochized``: mix datasets by weight, or each a number of times.

Unlike ``sample`` they read no item ahead, so that a resumed stream reads nothing twice. The order
depends on the seed alone: draw i is the i-th number of the seed.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, islice, pairwise
from random import Random
from typing import Any, ClassVar, Final

from dagster_dataops.errors import DataPipelineError, StreamDefinitionError
from dagster_dataops.foundation.override import override
from dagster_dataops.records import RESTORE_KEY
from dagster_dataops.streams.core.finitude import Finitude
from dagster_dataops.streams.core.random_access import (
    MISSING,
    RandomAccess,
    ShardSlice,
    changed_item,
)
from dagster_dataops.streams.core.seeds import derive_seed, seeded_random
from dagster_dataops.streams.core.stage import Cursor, ReadContext, Stage, UnaryStage
from dagster_dataops.streams.core.stage_tree import distinct_stages, with_inputs
from dagster_dataops.streams.stages.random_order import RandomCursor
from dagster_dataops.streams.stages.repeating import Repeat
from dagster_dataops.streams.stages.sampling import DrawingStage
from dagster_dataops.streams.stages.taking import Take
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
    takes_unread: ClassVar[bool] = True
    saved: ClassVar[tuple[str, ...]] = ("given",)
    about: Any
    entry: str | None = None

    @override
    def options(self) -> dict[str, Any]:
        return {}

    @override
    def begin(self, context: ReadContext) -> None:
        self._mark = partial(changed_item, self.marked) if context.unread else self.marked

    @override
    def reset(self) -> None:
        self.given = 0

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        passed_on = self.given
        super().restart(reset_rng=reset_rng)
        self.given = passed_on

    @override
    def datasets(self) -> Sequence[Any]:
        return (self.about,)

    @override
    def dataset_sources(self) -> Sequence[tuple[Any, Any]]:
        rows = next(
            stage for stage in self.ordered() if isinstance(stage, (CrudeSource, IndexRows))
        )
        sources = (rows.source if isinstance(rows, IndexRows) else rows).parts
        return list(zip(self.about.datasets, sources, strict=True))

    @override
    def leaves(self) -> list[dict[str, Any]]:
        return [{**self.about.facts(), "samples": self.given}]

    @override
    def items(self) -> Iterator[Any]:
        samples = self.source.items()
        for sample in samples if self.entry is None else map(self._mark, samples):
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
    takes_unread: ClassVar[bool] = True
    saved: ClassVar[tuple[str, ...]] = ("passed", "failed")
    start: int
    end: int

    @override
    def begin(self, context: ReadContext) -> None:
        self._unread = context.unread
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
        with self._access.opened(unread=self._unread) as items:
            while self.passed < self.end:
                self.passed += 1
                item = items.item(self.passed - 1)
                if item is not MISSING:
                    yield item


@dataclass(eq=False)
class ShuffledRuns(UnaryStage):
    """Yield the samples of a source in runs, which are shuffled anew in each epoch.

    A run has consecutive samples of one shard. ``parallel`` runs are read at once: each draw
    chooses one of them. The state is the seed, the epoch and the number of read samples.

    Attributes:
        longest: The largest number of samples of a run; ``None`` for whole shards.
        parallel: The number of runs that are read at once.
        start: The first sample of the source to read.
        end: The first sample behind; ``None`` for the end of the source.
    """

    name: ClassVar[str] = "shuffled_runs"
    keeps_step: ClassVar[bool] = True
    takes_unread: ClassVar[bool] = True
    upstream: CrudeSource
    longest: int | None
    parallel: int
    start: int = 0
    end: int | None = None

    @override
    def open(self, context: ReadContext) -> Cursor:
        access = self.upstream.access(context)
        if access is None:
            reason = (
                f"max_samples_per_sequence reads by number, which {self.upstream.place} does not "
                "allow: its shards are remote or compressed; use shuffle_buffer_size"
            )
            raise StreamDefinitionError(self.name, reason)
        seed = derive_seed(context.seed, self.path)
        return _RunOrderCursor(access, seed, self, unread=context.unread)

    @override
    def items(self) -> Iterator[Any]:
        raise NotImplementedError  # the cursor that `open` returns yields them

    def runs(self, size: int) -> list[range]:
        """Return the runs of a source of ``size`` samples, in their order there."""
        end = size if self.end is None else self.end
        bounds = [bound for bound in self.upstream.bounds() if self.start < bound < end]
        pieces = []
        for first, last in pairwise([self.start, *bounds, end]):
            step = self.longest or max(1, last - first)
            pieces += [range(at, min(at + step, last)) for at in range(first, last, step)]
        return pieces


class _RunOrderCursor(RandomCursor):
    def __init__(
        self, access: RandomAccess, seed: int, stage: ShuffledRuns, *, unread: bool
    ) -> None:
        super().__init__(access, seed, ShardSlice(), unread=unread)
        self._stage = stage

    @override
    def places(self, size: int) -> range:
        end = size if self._stage.end is None else self._stage.end
        return range(end - self._stage.start)

    @override
    def order(self, size: int) -> "RunOrder":
        seeds = partial(seeded_random, self._seed, self._epoch)
        return RunOrder(self._stage.runs(size), self._stage.parallel, seeds)


class RunOrder:
    """The order of samples in shuffled runs, of which ``parallel`` are read at once.

    ``seeded`` returns the random generator of a name.
    """

    def __init__(self, runs: list[range], parallel: int, seeded: Callable[..., Random]) -> None:
        shuffled = list(runs)
        seeded("runs").shuffle(shuffled)
        starts = range(0, len(shuffled), parallel)
        self._groups = [shuffled[at : at + parallel] for at in starts]
        sizes = (sum(map(len, group)) for group in self._groups)
        self._firsts = list(accumulate(sizes, initial=0))
        self._seeded = seeded
        self._at, self._numbers = -1, [0]

    def values_at(self, places: range) -> list[int]:
        """Return the numbers of the samples at some places of the order."""
        return [self._value(place) for place in places]

    def _value(self, place: int) -> int:
        at = bisect_right(self._firsts, place) - 1
        if at != self._at:
            self._at, self._numbers = at, self._drawn(at)
        return self._numbers[place - self._firsts[at]]

    def _drawn(self, at: int) -> list[int]:
        """Return the numbers of a group of runs: each draw chooses one that has samples left."""
        runs = [iter(run) for run in self._groups[at]]
        draws = [number for number, run in enumerate(self._groups[at]) for _ in run]
        self._seeded("group", at).shuffle(draws)
        return [next(runs[number]) for number in draws]


@dataclass(eq=False)
class MixingStage(DrawingStage):
    """A stage that draws the dataset of each item. The seed and the number of draws are saved.

    Draws are numbered across epochs.

    Attributes:
        titles: The names of the datasets in errors.
    """

    saved: ClassVar[tuple[str, ...]] = ("_seed", "drawn")
    titles: tuple[str, ...]
    takes_unread: ClassVar[bool] = True
    seed: int | None

    @override
    def options(self) -> dict[str, Any]:
        options = super().options()
        return {name: value for name, value in options.items() if name not in {"titles", "place"}}

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
        iterators = [stage.items() for stage in self.opened]
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

    @override
    def reset(self) -> None:
        self._counts = [0] * len(self.totals)

    @property
    def taken(self) -> list[int]:
        """The number of read items of each dataset."""
        return list(self._counts)

    @taken.setter
    def taken(self, counts: list[int]) -> None:
        self._counts = list(counts)

    @override
    def items(self) -> Iterator[Any]:
        iterators = [stage.items() for stage in self.opened]
        counts, totals = self._counts, self.totals
        remaining = [total - done for total, done in zip(totals, counts, strict=True)]
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
                counts[at], left, remaining[at] = totals[at], left - remaining[at], 0
            else:
                counts[at] += 1
                remaining[at] -= 1
                left -= 1
                yield item
            if not left:
                return


def epoch_size(stage: Stage) -> int:
    """Return the number of samples of one epoch of a stream of datasets; indices are made.

    A blend by weight has those of all its datasets.

    Raises:
        StreamSourceError: A dataset cannot be read.
    """
    if isinstance(stage, CrudeSource):
        return stage.size()
    if isinstance(stage, (RowRange, ShuffledRuns)) and stage.end is not None:
        return stage.end - stage.start
    if isinstance(stage, BlendEpochized):
        return sum(stage.totals)
    size = sum(map(epoch_size, stage.inputs))
    if isinstance(stage, Take):
        count = stage.num_examples
        return count if isinstance(stage.upstream, Repeat) else min(count, size)
    return size


def with_shuffled_runs(stage: Stage, longest: int | None, parallel: int) -> Stage:
    """Return a stream of datasets whose samples are read as `ShuffledRuns` read them."""
    shuffled: dict[Stage, Stage] = {}
    for member in distinct_stages(stage):
        if isinstance(member, RowRange) and isinstance(member.upstream, CrudeSource):
            shuffled[member] = ShuffledRuns(
                member.upstream, longest, parallel, member.start, member.end
            )
        elif isinstance(member, CrudeSource):
            shuffled[member] = ShuffledRuns(member, longest, parallel)
        else:
            shuffled[member] = with_inputs(member, shuffled)
    return shuffled[stage]
