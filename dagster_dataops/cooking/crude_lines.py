"""Crude samples of jsonl files and of folders: sources that are read by number."""

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from dagster_dataops.cooking.crude_sources import CrudeSource, IndexRows, Row
from dagster_dataops.errors import StreamSourceError, UnknownSampleError
from dagster_dataops.filestores.folder_store import FolderStore
from dagster_dataops.filestores.jsonl_store import JsonlStore
from dagster_dataops.filestores.sample_names import split_name
from dagster_dataops.filestores.source_info import SOURCES, SourceInfo
from dagster_dataops.filestores.store import FileStore
from dagster_dataops.streams.core.item_failures import FailureCounter
from dagster_dataops.streams.core.random_access import MISSING, IndexedItems, RandomAccess
from dagster_dataops.streams.core.sequences import fresh
from dagster_dataops.streams.core.stage import ReadContext, SourceStage
from dagster_dataops.streams.files.locations import Location


@dataclass(eq=False)
class NumberedSamples(CrudeSource):
    """A source whose samples are read by number. The state is the next number."""

    saved: ClassVar[tuple[str, ...]] = ("_next", "failed")

    @abstractmethod
    def rows(self) -> list[Row]:
        """Return a line of an index for each sample."""

    @property
    @abstractmethod
    def shard(self) -> str:
        """The name of the file or folder in places of samples."""

    @override
    def reset(self) -> None:
        self._next = 0

    @override
    def items(self) -> Iterator[Any]:
        store, rows = self.store(), self.rows()
        while self._next < len(rows):
            row = rows[self._next]
            self._next += 1
            try:
                sample = self.sample(store, row)
            except StreamSourceError as error:
                self.counter.settle(row, error)
            else:
                yield sample

    def sample(self, store: FileStore, row: Row) -> dict[str, Any]:
        """Return the sample of a line of the index."""
        names = list(row["parts"].values())
        source = SourceInfo.of(self.place, row["index"], self.shard, names)
        return {
            "__key__": row["key"],
            "__restore_key__": [self.place, self.shard, row["key"]],
            "__shard__": self.shard,
            SOURCES: [source],
            "__subflavors__": fresh(dict(self.labels.subflavors)),
            **{part: store.get(name) for part, name in row["parts"].items()},
        }

    def row(self, key: str, number: int, parts: dict[str, str]) -> Row:
        """Return a line of the index."""
        row: Row = {
            "key": key,
            "dataset": self.place,
            "shard": self.shard,
            "index": number,
            "parts": parts,
        }
        if self.labels.subflavors:
            row["subflavors"] = dict(self.labels.subflavors)
        if self.labels.aux:
            row["aux"] = CrudeSource.options(self)["aux"]
        return row

    @override
    def access(self, context: ReadContext) -> RandomAccess | None:
        return _NumberedAccess(self, context.failures.counter(self.name))

    @override
    def sample_of_key(self, shard: str, key: str) -> dict[str, Any]:
        row = next((one for one in self.rows() if one["key"] == key), None)
        if row is None:
            raise UnknownSampleError(self.place, key, "the dataset has changed")
        return self.sample(self.store(), row)

    @override
    def index_source(self, *, digests: bool) -> SourceStage:
        return NumberedRows(self)


@dataclass(eq=False)
class NumberedRows(IndexRows):
    """Yield a line of an index for each sample. The state is the next number."""

    name: ClassVar[str] = "index_files"
    saved: ClassVar[tuple[str, ...]] = ("_next",)
    source: NumberedSamples

    @override
    def reset(self) -> None:
        self._next = 0

    @override
    def items(self) -> Iterator[Any]:
        rows = self.source.rows()
        while self._next < len(rows):
            self._next += 1
            yield fresh(rows[self._next - 1])


class _NumberedAccess(RandomAccess):
    def __init__(self, source: NumberedSamples, counter: FailureCounter) -> None:
        super().__init__(counter)
        self._source = source

    @override
    @contextmanager
    def opened(self) -> Iterator[IndexedItems]:
        yield _NumberedItems(self._source, self.counter)


class _NumberedItems(IndexedItems):
    def __init__(self, source: NumberedSamples, counter: FailureCounter) -> None:
        self._source, self._counter = source, counter
        self._store, self._rows = source.store(), source.rows()
        self.size = len(self._rows)

    @override
    def item(self, number: int) -> Any:
        try:
            return self._source.sample(self._store, self._rows[number])
        except StreamSourceError as error:
            self._counter.settle(self._rows[number], error)
        return MISSING


@dataclass(eq=False)
class CrudeLines(NumberedSamples):
    """Yield the lines of a jsonl file as samples with the part ``json``; keys are line numbers.

    Attributes:
        file: The path of the file.
    """

    name: ClassVar[str] = "read_crude_lines"
    file: str

    @property
    @override
    def place(self) -> str:
        return self.file

    @property
    @override
    def form(self) -> str:
        return "the lines of a file"

    @property
    @override
    def shard(self) -> str:
        return self.file.rpartition("/")[2]

    @override
    def identity(self) -> object:
        return Location(self.file).identity()

    @override
    def store(self) -> FileStore:
        return JsonlStore(self.file)

    @override
    def rows(self) -> list[Row]:
        count = len(JsonlStore(self.file))
        return [self.row(str(at), at, {"json": f"{at}.json"}) for at in range(count)]


@dataclass(eq=False)
class CrudeFolder(NumberedSamples):
    """Yield the files of a folder, grouped to samples by name; keys are sorted.

    Attributes:
        files: The folder as a store.
    """

    name: ClassVar[str] = "read_crude_folder"
    files: FolderStore

    @property
    @override
    def place(self) -> str:
        return self.files.path

    @property
    @override
    def form(self) -> str:
        return "files of a folder, grouped by name"

    @property
    @override
    def shard(self) -> str:
        return "."

    @override
    def identity(self) -> object:
        return self.files.version()

    @override
    def store(self) -> FileStore:
        return self.files

    @override
    def rows(self) -> list[Row]:
        found: dict[str, dict[str, str]] = {}
        for name in self.files.names():
            divided = split_name(name)
            if divided is not None and not name.startswith((".", "_")):
                found.setdefault(divided[0], {})[divided[1]] = name
        keys = sorted(found)
        return [self.row(key, number, found[key]) for number, key in enumerate(keys)]
