"""Crude samples of jsonl files and of folders: sources that are read by number."""

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from dagster_dataops.errors import StreamSourceError, UnknownSampleError
from dagster_dataops.foundation.override import override
from dagster_dataops.streams.core.item_failures import FailureCounter
from dagster_dataops.streams.core.random_access import MISSING, IndexedItems, RandomAccess
from dagster_dataops.streams.core.sequences import fresh
from dagster_dataops.streams.core.stage import ReadContext, SourceStage
from dagster_dataops.streams.files.locations import Location
from dagster_dataops.training.cooking.crude_sources import Row, RowsByNumber, SourceByNumber
from dagster_dataops.training.filestores.folder_store import FolderStore
from dagster_dataops.training.filestores.jsonl_store import JsonlStore
from dagster_dataops.training.filestores.sample_names import split_name
from dagster_dataops.training.filestores.source_info import new_sample
from dagster_dataops.training.filestores.store import FileStore


class NumberedFiles(NamedTuple):
    """The files of samples, by the number of the sample.

    ``at`` returns the key of a sample, and the names of its files by part; ``find`` the number of a
    key, and ``None`` if there is no such sample.
    """

    store: FileStore
    size: int
    at: Callable[[int], tuple[str, Mapping[str, str]]]
    find: Callable[[str], int | None]


@dataclass(eq=False)
class NumberedSamples(SourceByNumber):
    """A source whose samples are the files of a store, by number."""

    @abstractmethod
    def numbered(self) -> NumberedFiles:
        """Return the samples by number."""

    @property
    @abstractmethod
    def shard(self) -> str:
        """The name of the file or folder in places of samples."""

    @override
    def samples(self) -> AbstractContextManager[IndexedItems]:
        return self._opened(self.counter)

    def _opened(self, counter: FailureCounter) -> AbstractContextManager[IndexedItems]:
        return nullcontext(_NumberedItems(self, counter))

    def sample(self, files: NumberedFiles, number: int) -> dict[str, Any]:
        """Return a sample by its number."""
        key, parts = files.at(number)
        subflavors = fresh(dict(self.labels.subflavors))
        names = list(parts.values())
        sample = new_sample(self.place, self.shard, key, number, names, subflavors)
        return sample | {part: files.store.get(name) for part, name in parts.items()}

    @override
    def rows(self, first: int) -> Iterator[Row]:
        files = self.numbered()
        return (self.row(files, number) for number in range(first, files.size))

    def row(self, files: NumberedFiles, number: int) -> Row:
        """Return a line of the index."""
        key, parts = files.at(number)
        row = {
            "key": key,
            "dataset": self.place,
            "shard": self.shard,
            "index": number,
            "parts": dict(parts),
        }
        return {**row, **fresh(self.labels.of_rows())}

    @override
    def access(self, context: ReadContext) -> RandomAccess | None:
        return RandomAccess(context.failures.counter(self.name), self._opened)

    @override
    def sample_of_key(self, shard: str, key: str) -> dict[str, Any]:
        files = self.numbered()
        number = files.find(key)
        if number is None:
            raise UnknownSampleError(self.place, key, "the dataset has changed")
        return self.sample(files, number)

    @override
    def index_source(self, *, digests: bool) -> SourceStage:
        return NumberedRows(self)


@dataclass(eq=False)
class NumberedRows(RowsByNumber):
    """Yield a line of an index for each sample of files."""

    name: ClassVar[str] = "index_files"


class _NumberedItems(IndexedItems):
    def __init__(self, source: NumberedSamples, counter: FailureCounter) -> None:
        self._source, self._counter = source, counter
        self._files = source.numbered()
        self.size = self._files.size

    @override
    def item(self, number: int) -> Any:
        try:
            return self._source.sample(self._files, number)
        except StreamSourceError as error:
            self._counter.handle(self._source.row(self._files, number), error)
        return MISSING


@dataclass(eq=False)
class CrudeLines(NumberedSamples):
    """Yield the lines of a jsonl file as samples with the part ``json``; keys are line numbers."""

    name: ClassVar[str] = "read_crude_lines"
    form: ClassVar[str] = "the lines of a file"
    file: str

    @property
    @override
    def place(self) -> str:
        return self.file

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
    def numbered(self) -> NumberedFiles:
        store = JsonlStore(self.file)
        count = len(store)

        def find(key: str) -> int | None:
            number = int(key) if key.isascii() and key.isdigit() else count
            return number if number < count and key == str(number) else None

        return NumberedFiles(store, count, lambda at: (str(at), {"json": f"{at}.json"}), find)


@dataclass(eq=False)
class CrudeFolder(NumberedSamples):
    """Yield the files of a folder, grouped to samples by name; keys are sorted."""

    name: ClassVar[str] = "read_crude_folder"
    form: ClassVar[str] = "files of a folder, grouped by name"
    shard: ClassVar[str] = "."
    files: FolderStore

    @property
    @override
    def place(self) -> str:
        return self.files.path

    @override
    def identity(self) -> object:
        return self.files.version()

    @override
    def store(self) -> FileStore:
        return self.files

    @override
    def numbered(self) -> NumberedFiles:
        groups: dict[str, dict[str, str]] = {}
        for name in self.files.names():
            divided = split_name(name)
            if divided is not None and not name.startswith((".", "_")):
                groups.setdefault(divided[0], {})[divided[1]] = name
        keys = sorted(groups)

        def find(key: str) -> int | None:
            return bisect_left(keys, key) if key in groups else None

        return NumberedFiles(self.files, len(keys), lambda at: (keys[at], groups[keys[at]]), find)
