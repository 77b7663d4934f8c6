"""Functions that start a stream: read sequences, iterators and files."""

import copy
import os
import pickle
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

from dagster_dataops.errors import DataPipelineError, StreamArgumentError, StreamDefinitionError
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.streams.core.finitude import Finitude
from dagster_dataops.streams.core.sequences import SequenceSource
from dagster_dataops.streams.core.stage import ReadContext, SourceStage, State
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder
from dagster_dataops.streams.files.blocks import BLOCK_BYTES, LEAST_BLOCK_BYTES
from dagster_dataops.streams.files.file_sets import INFER, FileSet, GivenPaths
from dagster_dataops.streams.files.file_stages import Origin
from dagster_dataops.streams.files.jsonl import JsonLines
from dagster_dataops.streams.files.listing import FileList


@dataclass(eq=False)
class IteratorSource(SourceStage):
    """Yield the items of an iterator; ``reset_fn`` returns it to its start.

    An iterator with ``state_dict`` and ``load_state_dict`` is restored by these. For any other
    iterator the items are counted, and restoring reads that many again.
    """

    name: ClassVar[str] = "read_iterator"
    saved: ClassVar[tuple[str, ...]] = ("_number", "position")
    iterator: Iterator[Any]
    reset_fn: Callable[[Iterator[Any]], Iterator[Any]]
    infinite: bool

    @property
    @override
    def finitude(self) -> Finitude:
        return Finitude.INFINITE if self.infinite else Finitude.FINITE

    @override
    def options(self) -> dict[str, Any]:
        return {
            "iterator": type(self.iterator).__qualname__,
            "reset_fn": self.reset_fn,
            "infinite": self.infinite,
        }

    @override
    def begin(self, context: ReadContext) -> None:
        self._open: Any = None

    @override
    def reset(self) -> None:
        self._number = 0
        self._position: State = None

    @property
    def position(self) -> State:
        """The position of an iterator that has one of its own."""
        if self._open is None:
            return self._position
        has_state = hasattr(self._open, "load_state_dict")
        return copy.deepcopy(self._open.state_dict()) if has_state else None

    @position.setter
    def position(self, position: State) -> None:
        self._open, self._position = None, position

    @override
    def items(self) -> Iterator[Any]:
        if self._open is None:
            self._open = self.reset_fn(_private_copy(self.iterator))
            self._restore_position()
        for item in self._open:
            self._number += 1
            yield item

    def _restore_position(self) -> None:
        if self._position is not None:
            self._open.load_state_dict(self._position)
            return
        passed = sum(1 for _ in islice(self._open, self._number))
        if passed < self._number:
            count = counted(passed, "items")
            msg = f"the iterator ends after {count}, but the state is at item {self._number}"
            raise DataPipelineError(msg)

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        if self._open is not None:
            self._open = self.reset_fn(self._open)
        super().restart(reset_rng=reset_rng)


def _private_copy(iterator: Any) -> Any:
    """Return a copy, so that two streams of one iterator do not share its position."""
    try:
        return copy.deepcopy(iterator)
    except Exception:  # noqa: BLE001 - generators and many other iterators cannot be copied
        return iterator


def read_sequence(seq: SequenceOf[Any]) -> DataPipelineBuilder:
    """Read a list or tuple. Its items are copied.

    Raises:
        StreamArgumentError: ``seq`` is neither.

    Example:
        >>> list(read_sequence([{"text": "a"}, {"text": "b"}]))
        [{'text': 'a'}, {'text': 'b'}]
    """
    if not isinstance(seq, (list, tuple)):
        reason = f"seq is a {type(seq).__name__}; it must be a list or tuple"
        raise StreamArgumentError("read_sequence", reason)
    return DataPipelineBuilder(SequenceSource.of(seq))


def read_iterator(
    iterator: Iterator[Any],
    reset_fn: Callable[[Iterator[Any]], Iterator[Any]],
    infinite: bool,
    skip_pickling_check: bool = False,
) -> DataPipelineBuilder:
    """Read an iterator.

    Args:
        iterator: If it has ``state_dict`` and ``load_state_dict``, these restore a position.
            Otherwise restoring reads the items before the position again.
        reset_fn: Given the iterator, returns one at the start. Also called before the first item.
        infinite: Whether the iterator never ends.
        skip_pickling_check: Whether to accept an iterator that cannot be pickled.

    Raises:
        StreamArgumentError: The iterator cannot be pickled, so it cannot be sent to a process.

    Example:
        >>> def squares():
        ...     return (number * number for number in range(4))
        >>> stream = read_iterator(squares(), lambda _: squares(), False, skip_pickling_check=True)
        >>> list(stream.and_return())
        [0, 1, 4, 9]
    """
    if not skip_pickling_check:
        try:
            pickle.dumps(iterator)
        except Exception as error:
            reason = f"the iterator cannot be pickled ({error}); skip_pickling_check=True allows it"
            raise StreamArgumentError("read_iterator", reason) from error
    return DataPipelineBuilder(IteratorSource(iterator, reset_fn, infinite))


def list_files(
    path: str | os.PathLike[str],
    pattern: str | None = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> DataPipelineBuilder:
    """List the files below a folder as texts, in natural order: ``part2`` before ``part10``.

    Args:
        path: The folder: a path, or a URL for fsspec. A file is listed alone.
        pattern: The files to keep, for example ``*.jsonl``. It is matched against the whole path,
            and ``*`` also matches slashes.
        storage_options: Arguments of fsspec's file system, for example credentials.

    Example:
        >>> folder = Path(tempfile.mkdtemp())
        >>> for name in ("part10.txt", "part2.txt", "notes.md"):
        ...     _ = (folder / name).write_text("")
        >>> [Path(path).name for path in list_files(folder, "*.txt")]
        ['part2.txt', 'part10.txt']
    """
    return DataPipelineBuilder(FileList(os.fspath(path), pattern, dict(storage_options or {})))


def read_jsonl(  # noqa: PLR0913 - the options of files
    path: GivenPaths,
    *,
    block_size: int | None = None,
    file_key: str | None = None,
    line_key: str | None = None,
    hive: bool = True,
    compression: str | None = INFER,
    storage_options: Mapping[str, Any] | None = None,
) -> DataPipelineBuilder:
    r"""Read the records of jsonl files; blank lines are skipped.

    Resuming is immediate for uncompressed local files and for URLs whose server supports ranges.
    Compressed files are decompressed again up to the position, but not parsed.

    Args:
        path: A file, a list of files, a pattern such as ``part-*.jsonl``, or a folder. A folder
            means all files below it, without files and folders whose names start with ``.``
            or ``_``. Patterns and folders use natural order: ``part2`` before ``part10``. Each can
            be a URL for fsspec, such as ``s3://…`` or ``zip://*.jsonl::https://…/all.zip``.
        block_size: The number of bytes to read at once, at least 1024.
        file_key: The key under which each record holds its file path; ``None`` for no such key.
        line_key: The key under which each record holds its line number, counted from 1; ``None``
            for no such key.
        hive: Whether folders such as ``lang=de``, below the given folder or in the pattern, are
            columns of the records. Integers in all folders become numbers. A column that a record
            has itself stays as it is.
        compression: ``gzip``, ``bz2``, ``xz``, ``zstd`` or ``None``; ``infer`` uses the suffix of
            each name.
        storage_options: Arguments of fsspec's file systems, for example credentials. They are not
            stored in states.

    Example:
        >>> path = Path(tempfile.mkdtemp(), "docs.jsonl")
        >>> _ = path.write_text('{"text": "a"}\n{"text": "b"}\n')
        >>> list(read_jsonl(path, line_key="line"))
        [{'text': 'a', 'line': 1}, {'text': 'b', 'line': 2}]
    """
    files = FileSet.of("read_jsonl", path, compression, storage_options, hive=hive)
    size = block_bytes("read_jsonl", block_size)
    return DataPipelineBuilder(JsonLines(files, size, Origin(file_key, line_key)))


def block_bytes(stage: str, size: int | None) -> int:
    """Return the given block size, or the default."""
    if size is not None and size < LEAST_BLOCK_BYTES:
        reason = f"block_size is {size}; it must be at least {LEAST_BLOCK_BYTES} bytes"
        raise StreamDefinitionError(stage, reason)
    return size or BLOCK_BYTES
