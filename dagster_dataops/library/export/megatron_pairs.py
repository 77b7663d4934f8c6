"""``export.Megatron``: pairs of ``.bin`` and ``.idx`` files for Megatron-LM and NeMo."""

import shutil
import struct
from array import array
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import accumulate
from pathlib import Path, PurePath
from tempfile import TemporaryFile
from typing import IO, Any, Final, NamedTuple, Self

from dagster_dataops.datasets.exporters.exporter import ExportRecords, Place, UnfitValueError
from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.export.number_arrays import (
    IntegerType,
    end_bytes,
    id_bytes,
    item_bytes,
    little,
    number_bytes,
    shown,
)
from dagster_dataops.library.export.tables import PathLike, export
from dagster_dataops.operators.options.ranges import PositiveInt
from dagster_dataops.records import NOT_TRAINED, Record

_MAGIC: Final = b"MMIDIDX\0\0"
_VERSION: Final = 1
_TYPE_CODES: Final = {"uint8": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint16": 8}
_COPIED: Final = 1 << 17  # numbers of an index at once
_BUFFER_BYTES: Final = 1 << 20


class _Document(NamedTuple):
    """A document: the bytes of its ids, the lengths of its sequences, the bytes of its mask."""

    ids: bytes
    lengths: list[int]
    mask: bytes


class Megatron(export):
    """Write token ids as pairs of ``.bin`` and ``.idx`` files for Megatron-LM and NeMo.

    ``path``, such as ``"corpus/train"``, names the pair, ``train.bin`` and ``train.idx``, in a
    folder of its own, which is replaced whole. With ``shard_bytes`` there are several,
    ``train_00000`` and so on: the ``.bin`` of a pair ends before it would exceed that size.

    Reads ``input_key="input_ids"``, a list of integers; missing and ``null`` are empty. Each record
    is a document. It is one sequence, or several if ``lengths_key`` names the column of their
    lengths, such as ``seq_lengths`` of ``tokens.Pack``. ``drop_empty=True`` leaves out empty
    documents; otherwise they are kept. ``end_id=None`` is put behind each document.

    ``dtype="int32"`` may also be ``uint16``, which holds ids below 65,536, ``int64``, ``int16``,
    ``uint8`` or ``int8``. An id that it cannot hold fails the export, with file and line.

    The format has no labels. ``label_key="labels"`` writes a second pair, ``train_loss_mask``, with
    a 1 for each trained token and a 0 for each label -100, as ``uint8``.

    Args:
        path: Path of the files without their endings, relative to the root of the results unless
            absolute.
        input_key: Column of the ids.
        dtype: Type of the ids.
        end_id: Id behind each document; ``None`` for none.
        lengths_key: Column of the lengths of its sequences; ``None`` for one.
        label_key: Column of the labels; ``None`` for no loss mask.
        drop_empty: Whether documents without ids are left out.
        shard_bytes: Most bytes of a ``.bin`` file; ``None`` for one pair.
    """

    format = "megatron"
    place: Place = "pattern"

    def __init__(
        self,
        path: PathLike,
        input_key: str = "input_ids",
        dtype: IntegerType = "int32",
        *,
        end_id: int | None = None,
        lengths_key: str | None = None,
        label_key: str | None = None,
        drop_empty: bool = False,
        shard_bytes: PositiveInt | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        prefix = PurePath(path)
        if str(prefix.parent) in {"", "."} or prefix.suffix in {".bin", ".idx"}:
            msg = (
                f"path is {str(path)!r}; it must name a folder of its own and the start of "
                "the names in it, without an ending, as in 'corpus/train'"
            )
            raise DefinitionError(msg)
        if "{partition}" in prefix.name:
            msg = f"path is {str(path)!r}; write {{partition}} as a folder, before the name"
            raise DefinitionError(msg)
        self._name, self._column, self._type = prefix.name, input_key, dtype
        self._lengths_key, self._label_key = lengths_key, label_key
        self._drop_empty, self._bytes = drop_empty, shard_bytes
        self._end = end_bytes(end_id, dtype)
        self._item = item_bytes(dtype)

    def write(self, records: ExportRecords, place: Path) -> None:
        documents = self._documents(records)
        document = next(documents, None)
        number = 0
        while document is not None or not number:
            name = self._name if self._bytes is None else f"{self._name}_{number:05d}"
            number += 1
            with ExitStack() as stack:
                pair = stack.enter_context(_Pair(place / name, self._type))
                mask = self._label_key and stack.enter_context(
                    _Pair(place / f"{name}_loss_mask", "uint8")
                )
                while document is not None and self._fits(pair, document):
                    pair.add(document.ids, document.lengths)
                    if mask:
                        mask.add(document.mask, document.lengths)
                    document = next(documents, None)

    def _fits(self, pair: "_Pair", document: _Document) -> bool:
        """Return whether a document belongs to a pair; one that is too large has its own."""
        return self._bytes is None or not pair.size or pair.size + len(document.ids) <= self._bytes

    def _documents(self, records: ExportRecords) -> Iterator[_Document]:
        for index, record in enumerate(records):
            ids = id_bytes(index, self._column, record.get(self._column), self._type)
            if not ids and self._drop_empty:
                continue
            count = len(ids) // self._item
            lengths = self._lengths(index, record, count)
            mask = self._mask(index, record, count)
            if self._end:
                lengths[-1] += 1
                mask += b"\x01" if self._label_key else b""
            yield _Document(ids + self._end, lengths, mask)

    def _lengths(self, index: int, record: Record, count: int) -> list[int]:
        """Return the lengths of the sequences of a document.

        Raises:
            UnfitValueError: They are no list of lengths, or their sum is not the number of ids.
        """
        key = self._lengths_key
        if key is None:
            return [count]
        lengths: Any = record.get(key)
        valid = isinstance(lengths, list) and all(
            type(length) is int and length >= 0 for length in lengths
        )
        if not valid or not lengths or sum(lengths) != count:
            problem = f"it holds {shown(lengths)}, and {self._column!r} has {count:,} ids"
            remedy = (
                f"Fill {key!r} with the lengths of the sequences, whose sum is that of the ids."
            )
            raise UnfitValueError(index, key, problem, remedy)
        return list(lengths)

    def _mask(self, index: int, record: Record, count: int) -> bytes:
        """Return the loss mask of a document; nothing if there are no labels.

        Raises:
            UnfitValueError: There is not one label for each id.
        """
        key = self._label_key
        if key is None:
            return b""
        labels: Any = record.get(key)
        labels = [] if labels is None else labels
        size = f"{len(labels):,} labels" if isinstance(labels, list) else "no list"
        try:
            if isinstance(labels, list) and len(labels) == count:
                return bytes(map(NOT_TRAINED.__ne__, labels))
        except TypeError:
            size = "values that are no integers"
        problem = f"it holds {size}, and {self._column!r} has {count:,} ids"
        raise UnfitValueError(index, key, problem, "Give each id one label; -100 is not trained.")


class _Pair:
    """The two files of a dataset, written as a context manager.

    Args:
        prefix: Their path without the endings.
        kind: Type of the ids.

    Attributes:
        size: Bytes of the ids so far.
    """

    def __init__(self, prefix: Path, kind: str) -> None:
        self._index = prefix.with_name(f"{prefix.name}.idx")
        self._kind, self.size = kind, 0
        self._documents = self._sequences = 0
        self._stack = ExitStack()
        data = prefix.with_name(f"{prefix.name}.bin")
        self._data = self._stack.enter_context(data.open("xb", buffering=_BUFFER_BYTES))
        self._lengths, self._counts = (self._temporary(prefix.parent) for _ in range(2))

    def _temporary(self, folder: Path) -> IO[bytes]:
        """Return a file without a name in the draft of the export."""
        return self._stack.enter_context(TemporaryFile(dir=folder))

    def add(self, ids: bytes, lengths: list[int]) -> None:
        """Add a document with the lengths of its sequences."""
        self.size += self._data.write(ids)
        self._lengths.write(number_bytes(lengths, "int32"))
        self._counts.write(number_bytes([len(lengths)], "int32"))
        self._sequences += len(lengths)
        self._documents += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        with self._stack:
            if kind is None:
                self._write_index()

    def _write_index(self) -> None:
        """Write the index: a header, then lengths, places in bytes, and ends of documents."""
        counts = (self._sequences, self._documents + 1)
        with self._index.open("xb", buffering=_BUFFER_BYTES) as file:
            file.write(_MAGIC + struct.pack("<QB", _VERSION, _TYPE_CODES[self._kind]))
            file.write(struct.pack("<QQ", *counts))
            self._lengths.seek(0)
            shutil.copyfileobj(self._lengths, file)
            size = item_bytes(self._kind)
            _write_sums(file, self._lengths, size, self._sequences)
            _write_sums(file, self._counts, 1, self._documents + 1)


def _write_sums(file: IO[bytes], numbers: IO[bytes], size: int, most: int) -> None:
    """Write the running sums of numbers, which begin with 0, each multiplied by ``size``.

    Args:
        file: The file that is written.
        numbers: A file of 32-bit numbers.
        size: What each number is multiplied by.
        most: Number of sums; the last numbers may have none.
    """
    numbers.seek(0)
    total = 0
    written = 0
    while written < most:
        block = little(array("i", numbers.read(4 * _COPIED)))
        sums = list(accumulate((number * size for number in block), initial=total))
        file.write(number_bytes(sums[: len(sums) - 1] if block else sums, "int64"))
        written += len(block) or 1
        total = sums[-1]
