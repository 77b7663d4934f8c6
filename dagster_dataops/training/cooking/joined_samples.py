"""`JoinedSamples`: a source that makes one sample of those of equal key in several datasets."""

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, cached_property, partial
from importlib import import_module
from inspect import signature
from typing import Any, ClassVar, Final, Literal, TypeAlias, TypeVar

import orjson

from dagster_dataops.errors import CookerError, MetadatasetError, UnknownSampleError
from dagster_dataops.foundation.override import override
from dagster_dataops.records import RESTORE_KEY, SOURCES
from dagster_dataops.streams.core.item_failures import FailureCounter, FailureHandler
from dagster_dataops.streams.core.random_access import MISSING, IndexedItems, RandomAccess
from dagster_dataops.streams.core.sequences import fresh
from dagster_dataops.streams.core.stage import ReadContext, SourceStage
from dagster_dataops.training.cooking.crude_sources import (
    CrudeSource,
    Row,
    RowsByNumber,
    SourceByNumber,
)
from dagster_dataops.training.cooking.typed_samples import TypedSamples
from dagster_dataops.training.filestores.store import FileStore

NonMatch: TypeAlias = Literal["error", "skip", "none"]
T = TypeVar("T")
_ABSENT: Final = -1
_ENERGON: Final = "megatron.energon"  # its classes of samples are those of this package
_OWN_MODULE: Final = "dagster_dataops"


@dataclass(frozen=True)
class Joiner:
    """The function that makes one sample of several; it is imported when it is first used.

    Attributes:
        module: The module of the function.
        name: The name of the function, or of a class: its method ``from_joined`` is called, or the
            class itself if it has none.
        names: The names of the datasets, which are those of its parameters; ``None`` to pass the
            samples by position.
    """

    module: str
    name: str
    names: tuple[str, ...] | None = None

    @property
    def function(self) -> Callable[..., Any]:
        """The function, which is imported when it is first used."""
        return _imported(self.module, self.name)

    def check(self, count: int) -> None:
        """Check that the function can be imported and takes ``count`` samples, by these names."""
        self._called(signature(self.function).bind, [None] * count)

    def __call__(self, samples: Sequence[Mapping[str, Any] | None]) -> dict[str, Any]:
        """Return one sample of several; ``None`` is one that is missing."""
        joined = self._called(self.function, samples)
        if not isinstance(joined, dict):
            kind = type(joined).__name__
            msg = f"joiner {self.name} returned a {kind}; return a sample (a dict or a Sample)"
            raise TypeError(msg)
        return joined

    def _called(self, function: Callable[..., Any], samples: Sequence[Any]) -> Any:
        if self.names is None:
            return function(*samples)
        return function(**dict(zip(self.names, samples, strict=True)))


@cache
def _imported(module: str, name: str) -> Callable[..., Any]:
    entry = getattr(import_module(_OWN_MODULE if module == _ENERGON else module), name)
    joiner: Callable[..., Any] = getattr(entry, "from_joined", entry)
    return joiner


def joined_sample(
    joiner: Joiner,
    place: str,
    subflavors: Mapping[str, Any],
    samples: Sequence[dict[str, Any] | None],
) -> dict[str, Any]:
    """Return the sample that a joiner makes, with the keys of the first one, which is there.

    Raises:
        TypeError: The joiner returned something that is not a dict.
    """
    first = samples[0] or {}
    _, shard, key = first[RESTORE_KEY][:3]
    sources = [source for sample in samples for source in (sample or {}).get(SOURCES, ())]
    joined = joiner(samples)
    known = [source for source in joined.get(SOURCES) or () if source not in sources]
    joined.update(
        {
            "__key__": joined.get("__key__", first["__key__"]),
            RESTORE_KEY: [place, shard, key],
            "__shard__": shard,
            SOURCES: [*sources, *known],
            "__subflavors__": fresh(dict(subflavors)),
        }
    )
    return joined


class JoinTable:
    """The samples of several datasets that are joined, found when they are first needed.

    Args:
        parts: The datasets. The first one determines keys and order.
        nonmatch: The handling of a key that is missing, for each dataset: an error, to leave the
            key out (``skip``), or to pass ``None`` to the joiner.
        named_in: The file, the line and the key of the join, for messages.
    """

    def __init__(
        self,
        parts: tuple[CrudeSource, ...],
        nonmatch: tuple[NonMatch, ...],
        named_in: tuple[str, int, str],
    ) -> None:
        self.parts, self.nonmatch, self._named_in = parts, nonmatch, named_in

    @override
    def __reduce__(self) -> Any:
        return JoinTable, (self.parts, self.nonmatch, self._named_in)

    @cached_property
    def numbers(self) -> list["array[int]"]:
        """The numbers of the joined samples in each dataset; below 0 where one is missing.

        Raises:
            MetadatasetError: A key is missing in a dataset whose ``nonmatch`` is ``error``.
            StreamSourceError: A dataset cannot be read.
        """
        columns = [array("q") for _ in self.parts]
        for row in self.matches(lambda number, _: number):
            for numbers, number in zip(columns, row, strict=True):
                numbers.append(_ABSENT if number is None else number)
        return columns

    def matches(self, value: Callable[[int, Row], T]) -> Iterator[list[T | None]]:
        """Yield a value of each sample to join, from its number and its line in the index.

        Raises:
            MetadatasetError: A key is missing in a dataset whose ``nonmatch`` is ``error``.
        """
        first, *others = self.parts
        by_key = [
            {row["key"]: value(number, row) for number, row in enumerate(_rows(part))}
            for part in others
        ]
        skipped = {at for at, behaviour in enumerate(self.nonmatch[1:]) if behaviour == "skip"}
        for number, row in enumerate(_rows(first)):
            values = [known.get(row["key"]) for known in by_key]
            missing = {at for at, value in enumerate(values) if value is None}
            if missing & skipped:
                continue
            for at in sorted(missing):
                self._check_missing(at + 1, row["key"])
            yield [value(number, row), *values]

    def _check_missing(self, at: int, key: str) -> None:
        if self.nonmatch[at] == "error":
            reason = (
                f"{self.parts[at].place} has no sample {key!r}, which {self.parts[0].place} has; "
                "set its nonmatch to skip or none"
            )
            raise MetadatasetError(*self._named_in, reason)


@dataclass(eq=False)
class JoinedSamples(SourceByNumber):
    """Yield a sample for each key of the first dataset. The state is the next number."""

    name: ClassVar[str] = "join"
    table: JoinTable
    joiner: Joiner

    @property
    @override
    def parts(self) -> tuple[CrudeSource, ...]:
        return self.table.parts

    @override
    def options(self) -> dict[str, Any]:
        joined = [part.options() for part in self.parts]
        more = {"nonmatch": self.table.nonmatch, "names": self.joiner.names}
        return {**super().options(), "joined": joined, **more, "joiner": self.joiner.function}

    @override
    def identity(self) -> object:
        return [part.identity() for part in self.parts]

    @property
    @override
    def place(self) -> str:
        return " + ".join(part.place for part in self.parts)

    @property
    @override
    def form(self) -> str:
        return f"joined by key of {' and '.join(part.form for part in self.parts)}"

    @override
    def store(self) -> FileStore:
        raise no_primary(self.place)

    @override
    def begin(self, context: ReadContext) -> None:
        super().begin(context)
        self._access = self.access(context)
        self._access.counter = self.counter

    @override
    def samples(self) -> AbstractContextManager[IndexedItems]:
        return self._access.opened()

    @override
    def rows(self, first: int) -> Iterator[Row]:
        joiner = [self.joiner.module, self.joiner.name, self.joiner.names]
        for number, rows in enumerate(self.table.matches(lambda _, row: row)):
            if number < first:
                continue
            primary = rows[0] or {}
            row = {
                "key": primary["key"],
                "dataset": self.place,
                "shard": primary["shard"],
                "index": number,
                "parts": {},
                "joined": rows,
                "joiner": joiner,
            }
            yield fresh(row | self.labels.of_rows())

    @override
    def access(self, context: ReadContext) -> RandomAccess:
        counter = context.failures.counter(self.name)
        accesses = [part.access(context) for part in self.parts]
        return RandomAccess(counter, partial(self._opened, accesses))

    @contextmanager
    def _opened(
        self, accesses: list[RandomAccess | None], counter: FailureCounter
    ) -> Iterator[IndexedItems]:
        self._makers  # noqa: B018 - a wrong declaration is not a failure of a sample
        with ExitStack() as stack:
            opened = [stack.enter_context(access.opened()) for access in accesses if access]
            yield _JoinedItems(self, opened, counter)

    @override
    def sample_of_key(self, shard: str, key: str) -> dict[str, Any]:
        samples: list[dict[str, Any] | None] = []
        for part in self.parts:
            try:
                samples.append(part.sample_of_key("" if samples else shard, key))
            except UnknownSampleError:
                if self.table.nonmatch[len(samples)] != "none":
                    raise
                samples.append(None)
        return self.joined(samples)

    @cached_property
    def _makers(self) -> list[TypedSamples | None]:
        """What makes the samples of each dataset; ``None`` for a crude one."""
        return [
            None
            if part.labels.declared is None
            else TypedSamples(part.labels.declared, "auto", part.place)
            for part in self.parts
        ]

    def joined(self, samples: Sequence[dict[str, Any] | None]) -> dict[str, Any]:
        """Return one sample of several, each first made of the type that its dataset declares."""
        parts = [
            sample if sample is None or make is None else make(sample)
            for sample, make in zip(samples, self._makers, strict=True)
        ]
        return joined_sample(self.joiner, self.place, self.labels.subflavors, parts)

    @override
    def index_source(self, *, digests: bool) -> SourceStage:
        return JoinedRows(self)


def entry_of(source: CrudeSource) -> str:
    """Return what makes the records of a dataset others: subflavors, and the joiner of a join."""
    labels = source.labels.subflavors
    text = orjson.dumps(labels, default=repr, option=orjson.OPT_SORT_KEYS).decode()
    if isinstance(source, JoinedSamples):
        return f"{text} by {source.joiner.module}.{source.joiner.name}"
    return text


def no_primary(place: str) -> CookerError:
    """Return the error of a cooker that wants the store of joined datasets."""
    reason = "the samples are joined, so there is no primary store; read the file in the joiner"
    return CookerError(f"{place}: {reason}")


def _rows(source: CrudeSource) -> Iterator[Row]:
    context = ReadContext(0, FailureHandler())
    return source.index_source(digests=False).open(context).items()


class _JoinedItems(IndexedItems):
    def __init__(
        self, source: JoinedSamples, opened: list[IndexedItems], counter: FailureCounter
    ) -> None:
        self._source, self._opened, self._counter = source, opened, counter
        self._numbers = source.table.numbers
        self.size = len(self._numbers[0])

    @override
    def item(self, number: int) -> Any:
        elements = []
        for items, numbers in zip(self._opened, self._numbers, strict=True):
            at = numbers[number]
            elements.append(None if at == _ABSENT else items.item(at))
        if any(element is MISSING for element in elements):
            return MISSING
        try:
            return self._source.joined(elements)
        except Exception as error:  # noqa: BLE001 - the user's function may raise anything
            self._counter.handle({"__key__": (elements[0] or {}).get("__key__")}, error)
        return MISSING


@dataclass(eq=False)
class JoinedRows(RowsByNumber):
    """Yield a line of an index for each joined sample."""

    name: ClassVar[str] = "index_joined"
