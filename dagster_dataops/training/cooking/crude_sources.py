"""`CrudeSource`: stages that yield crude samples."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, TypeAlias

from dagster_dataops.foundation.override import override
from dagster_dataops.streams.core.item_failures import FailureHandler
from dagster_dataops.streams.core.random_access import MISSING, IndexedItems, RandomAccess
from dagster_dataops.streams.core.stage import ReadContext, SourceStage
from dagster_dataops.training.filestores.energon.declared_samples import DeclaredSamples
from dagster_dataops.training.filestores.store import FileStore

DECLARED: Final = "declared"  # in a line of an index

Row: TypeAlias = dict[str, Any]
"""A line of an index: where the parts of one sample lie."""


@dataclass(frozen=True)
class SourceLabels:
    """Facts about all samples of a dataset.

    Attributes:
        subflavors: The subflavors.
        aux: The auxiliary stores by name: paths, URLs or opened stores.
        declared: How the dataset says that samples are made of it; ``None`` if it is crude.
    """

    subflavors: Mapping[str, Any] = field(default_factory=dict)
    aux: Mapping[str, str | FileStore] = field(default_factory=dict)
    declared: DeclaredSamples | None = None

    def plain(self) -> dict[str, Any]:
        """Return the labels as JSON."""
        aux = {
            name: store.get_path() if isinstance(store, FileStore) else store
            for name, store in self.aux.items()
        }
        plain = {"subflavors": dict(self.subflavors), "aux": aux}
        return plain if self.declared is None else plain | {DECLARED: self.declared.plain()}

    def of_rows(self) -> Row:
        """Return the part of an index's line that all samples share."""
        return {name: store for name, store in self.plain().items() if store}


@dataclass(eq=False)
class CrudeSource(SourceStage):
    """A source of crude samples."""

    labels: SourceLabels

    @property
    @abstractmethod
    def place(self) -> str:
        """The path or URL of the dataset."""

    @property
    @abstractmethod
    def form(self) -> str:
        """How the samples are stored, such as ``3 tar shards``."""

    @property
    @override
    def contents(self) -> str:
        subflavors = ", ".join(f"{name}={value}" for name, value in self.labels.subflavors.items())
        more = [f"with {subflavors}"] if subflavors else []
        more += [f"with files of {', '.join(self.labels.aux)}"] if self.labels.aux else []
        return f"Crude samples of {self.place}: {', '.join([self.form, *more])}."

    @property
    def is_typed(self) -> bool:
        """Whether the dataset declares its type of samples, so that no cooker makes them."""
        return self.sample_type is not None

    @property
    def sample_type(self) -> str | None:
        """The class of the samples that the dataset declares; ``None`` if it is crude."""
        declared = self.parts[0].labels.declared
        return None if declared is None else declared.name

    @property
    def parts(self) -> "tuple[CrudeSource, ...]":
        """The sources that are joined, or else this one."""
        return (self,)

    @property
    def shard_names(self) -> Sequence[str]:
        """The names of the shards, in their order; none without shards."""
        return ()

    def size(self) -> int:
        """Return the number of samples; the index is made if there is none.

        Raises:
            StreamSourceError: The source cannot be read.
        """
        context = ReadContext(0, FailureHandler())
        access = self.access(context)
        if access is not None:
            with access.opened() as items:
                return items.size
        return sum(1 for _ in self.index_source(digests=False).open(context).items())

    def bounds(self) -> Sequence[int]:
        """Return the numbers of the samples with which shards begin; none without shards."""
        return ()

    @abstractmethod
    def store(self) -> FileStore:
        """Return the files of the dataset by name."""

    @abstractmethod
    def sample_of_key(self, shard: str, key: str) -> dict[str, Any]:
        """Return one sample.

        Raises:
            UnknownSampleError: There is none.
        """

    @abstractmethod
    def index_source(self, *, digests: bool) -> SourceStage:
        """Return a stage that yields a `Row` for each sample, in the same order."""

    @override
    def options(self) -> dict[str, Any]:
        return self.labels.plain()


@dataclass(eq=False)
class IndexRows(SourceStage):
    """A stage that yields a line of an index for each sample of a source."""

    source: CrudeSource

    @override
    def options(self) -> dict[str, Any]:
        return self.source.options()

    @override
    def identity(self) -> object:
        return self.source.identity()

    @property
    @override
    def contents(self) -> str:
        return (
            f"A line for each sample of {self.source.place} ({self.source.form}): its key, its "
            "shard, and the bytes of its parts there."
        )


@dataclass(eq=False)
class SourceByNumber(CrudeSource):
    """A source whose samples are read by number. The state is the next number."""

    saved: ClassVar[tuple[str, ...]] = ("_next", "failed")
    takes_unread: ClassVar[bool] = True
    _unread = False

    @override
    def begin(self, context: ReadContext) -> None:
        self._unread = context.unread

    @abstractmethod
    def samples(self) -> AbstractContextManager[IndexedItems]:
        """Open the samples of an open source."""

    @abstractmethod
    def rows(self, first: int) -> Iterator[Row]:
        """Yield the lines of the index from that of a number on."""

    @override
    def reset(self) -> None:
        self._next = 0

    @override
    def items(self) -> Iterator[Any]:
        access = RandomAccess(self.counter, lambda _: self.samples())
        with access.opened(unread=self._unread) as samples:
            while self._next < samples.size:
                self._next += 1
                sample = samples.item(self._next - 1)
                if sample is not MISSING:
                    yield sample


@dataclass(eq=False)
class RowsByNumber(IndexRows):
    """Yield a line of an index for each sample. The state is the next number."""

    saved: ClassVar[tuple[str, ...]] = ("_next",)
    source: SourceByNumber

    @override
    def reset(self) -> None:
        self._next = 0

    @override
    def items(self) -> Iterator[Any]:
        for row in self.source.rows(self._next):
            self._next = row["index"] + 1
            yield row
