"""`PartFiles`: read ``part-000``, ``part-001``, ... line by line, shuffled and in batches.

@data_register("data.mini", columns={"values": list[float]})
class MiniReader(PartFiles):
    def parse(self, line):
        return {"values": parse_numbers(line, 2)}
"""

import os
import secrets
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, fields
from itertools import islice
from typing import Annotated, Any, ClassVar, Final

from annotated_types import Ge

from dagster_dataops.errors import DataPipelineError, OperatorOptionError
from dagster_dataops.foundation.override import override
from dagster_dataops.operators.definition.operator import init_parameters
from dagster_dataops.operators.definition.reader_base import Readable
from dagster_dataops.operators.options.ranges import AtLeastZero, PositiveInt
from dagster_dataops.operators.options.signature import options_of
from dagster_dataops.operators.options.type_checks import check_types
from dagster_dataops.readers.part_files.part_lines import PartLines
from dagster_dataops.readers.part_files.part_names import PartNames
from dagster_dataops.readers.reader import reader_attributes
from dagster_dataops.readers.record_parsing import LineParser, parse_stage
from dagster_dataops.streams.core.stage import Stage
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder
from dagster_dataops.streams.stages.repeating import EpochStage
from dagster_dataops.streams.stages.shuffling import Shuffle


@dataclass(eq=False)
class BatchStage(EpochStage):
    """Group ``batch_size`` rows into each record. No rows are held between two batches.

    Attributes:
        batch_size: The number of rows per batch.
        drop_last: Whether to drop an incomplete last batch of an epoch.
        wrap: Whether batches continue into the next epoch, so that all are full. The very last
            one is filled with rows of the epoch that would follow.
    """

    name: ClassVar[str] = "batch"
    batch_size: int
    drop_last: bool
    wrap: bool

    @override
    def items(self) -> Iterator[Any]:
        rest: list[Any] = []
        while self.epochs is None or self._epoch < self.epochs:
            rest = yield from self._full_batches(rest)
            if rest and not self.wrap and not self.drop_last:
                self._has_yielded = True
                yield columns_of(rest)
            rest = rest if self.wrap else []
            if not (self._has_yielded or rest):  # no rows, or no full batch: no batch will follow
                return
            if self._epoch + 1 == self.epochs and not rest:
                return
            self._epoch, self._has_yielded = self._epoch + 1, False
            self.source.restart()
        if rest:
            yield columns_of(self._fill_batch(rest))

    def _full_batches(self, rows: list[Any]) -> Generator[Any, None, list[Any]]:
        """Yield full batches, the first beginning with ``rows``; return the remaining rows."""
        size, items = self.batch_size, self.source.items()
        while len(rows := [*rows, *islice(items, size - len(rows))]) == size:
            self._has_yielded = True
            yield columns_of(rows)
            rows = []
        return rows

    def _fill_batch(self, rows: list[Any]) -> list[Any]:
        """Return a full batch, filled with rows of further epochs."""
        size = self.batch_size
        while True:
            rows += islice(self.source.items(), size - len(rows))
            if len(rows) == size:
                return rows
            self.source.restart()


def columns_of(rows: list[Any]) -> dict[str, list[Any]]:
    """Return rows as one record of columns."""
    names = rows[0].keys()
    for row in rows:
        if row.keys() != names:
            msg = f"a batch needs rows with equal columns; found {list(names)} and {list(row)}"
            raise DataPipelineError(msg)
    return {name: [row[name] for row in rows] for name in names}


_SEED_BITS: Final = 63
_AHEAD: Final = 4  # batches, OneFlow's default


@dataclass(eq=False)
class PartFiles(Readable):
    """Reads part files in order, line by line; the end of a file ends its last line.

    Subclasses override ``parse``, which returns the record of a line; the default is
    ``{"text": line}``. Files are opened when the first record is requested.

    Attributes:
        data_dir: The folder.
        data_part_num: The number of parts, counted from 0. All must exist; further ones are
            reported in a warning.
        part_name_prefix: The file name before the number.
        part_name_suffix_length: The minimum number of digits, padded with zeros: 3 for
            ``part-000``, -1 for ``part-0``.
        batch_size: The number of rows per record, as lists by column; ``None`` for one row per
            record.
        random_shuffle: Whether to shuffle rows, before they are grouped into batches.
        shuffle_after_epoch: Whether to shuffle the files in each epoch after the first. The order
            is the same for all shards.
        seed: The seed of both; -1 generates one, stored in ``seed_in_use`` and in states.
        shuffle_buffer_size: The number of rows in each shuffled window.
        name: The name of the reader and its asset; the name of the class if ``None``.
        epochs: The number of epochs; without end if ``None``.
        drop_last: Whether to drop an incomplete last batch of an epoch.
        wrap: Whether batches continue into the next epoch instead.
        shard_index: The index of the shard of files to read.
        num_shards: The number of shards; each has consecutive files.
        with_place: Whether to add the columns ``file`` and ``line``.
        skip_blank_lines: Whether to skip lines of white space.
        prefetch: The number of records to read ahead in a thread; 0 for none. By default 4
            batches, but no single rows: handing over a row costs more than reading it.
        num_parallel_calls: The number of threads that parse lines; the order is kept.
        seed_in_use: The given or generated seed.
    """

    items_of_parts: ClassVar[type[PartLines]] = PartLines
    item_parser: ClassVar[type[LineParser]] = LineParser

    data_dir: str | os.PathLike[str]
    data_part_num: PositiveInt
    part_name_prefix: str = "part-"
    part_name_suffix_length: Annotated[int, Ge(-1)] = -1
    batch_size: PositiveInt | None = None
    random_shuffle: bool = False
    shuffle_after_epoch: bool = False
    seed: Annotated[int, Ge(-1)] = -1
    shuffle_buffer_size: PositiveInt = 1024
    name: str | None = None  # type: ignore[assignment]
    epochs: PositiveInt | None = 1
    drop_last: bool = False
    wrap: bool = False
    shard_index: AtLeastZero = 0
    num_shards: PositiveInt = 1
    with_place: bool = False
    skip_blank_lines: bool = False
    prefetch: AtLeastZero | None = None
    num_parallel_calls: PositiveInt = 1
    seed_in_use: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        operator = self._qualified_name()
        check_types(
            operator, tuple(options_of(init_parameters(PartFiles).values(), ())), vars(self)
        )
        self._check_combinations(operator)
        self.seed_in_use = secrets.randbits(_SEED_BITS) if self.seed == -1 else self.seed
        self.name = self.name or type(self).__name__

    def _qualified_name(self) -> str:
        invocation = getattr(self, "__dataops__", None)
        return type(self).__name__ if invocation is None else invocation.spec.qualified_name

    def _check_combinations(self, operator: str) -> None:
        """Raise an error for options that contradict each other."""
        shards, parts = self.num_shards, self.data_part_num
        faults = {
            "num_shards": shards > parts and f"is {shards}, more than the number of parts, {parts}",
            "shard_index": self.shard_index >= shards and f"must be below num_shards, {shards}",
            "wrap": self.wrap and self.drop_last and "cannot be combined with drop_last",
            "seed": self.seed >= 1 << 64 and "must be below 2^64",
        }
        for option in ("wrap", "drop_last"):
            if getattr(self, option) and self.batch_size is None:
                faults[option] = "applies to batches and needs a batch_size"
        for option, fault in faults.items():
            if fault:
                raise OperatorOptionError(operator, option, fault)

    def parse(self, line: Any) -> dict[str, Any]:
        """Return the record of a line. A ``ValueError`` is reported with file and line number."""
        return {"text": line}

    @override
    def column_types(self) -> dict[str, Any] | None:
        """Return the column types of the records; in batches, columns are lists."""
        types = super().column_types()
        if types is None:
            return None
        if self.with_place:
            types |= {"file": str, "line": int}
        if self.batch_size is None:
            return types
        return {column: list[kind] for column, kind in types.items()}  # type: ignore[valid-type]

    @override
    def stream(self) -> DataPipelineBuilder:
        """Return the stream of records: lines, shuffled, parsed, batched and prefetched."""
        rows = DataPipelineBuilder(self._rows())
        if self.batch_size is not None:
            batches = BatchStage(
                rows.stage, self.epochs, self.batch_size, self.drop_last, self.wrap
            )
            rows = DataPipelineBuilder(batches)
        elif self.epochs != 1:
            rows = rows.repeat(self.epochs)
        ahead = _AHEAD * (self.batch_size is not None) if self.prefetch is None else self.prefetch
        return rows.prefetch(ahead) if ahead else rows

    def _rows(self) -> Stage:
        folder, drawn = os.fspath(self.data_dir), self.seed == -1
        parts = PartNames(
            folder, self.data_part_num, self.part_name_prefix, self.part_name_suffix_length
        )
        lines: Stage = self.items_of_parts(
            parts,
            self.shard_index,
            self.num_shards,
            shuffled=self.shuffle_after_epoch,
            seed=self.seed_in_use,
            drawn=drawn,
            skip_blank_lines=self.skip_blank_lines,
        )
        if self.random_shuffle:
            lines = RowShuffle(lines, self.shuffle_buffer_size, self.seed_in_use, drawn)
        known = frozenset(entry.name for entry in fields(PartFiles))
        values = reader_attributes(self, known)
        parsing = self.item_parser(self.parse, values, folder=folder, with_place=self.with_place)
        return parse_stage(lines, parsing, self.num_parallel_calls)


@dataclass(eq=False)
class RowShuffle(Shuffle):
    """`Shuffle` with a possibly random seed, which a restored state replaces."""

    drawn: bool

    @property
    @override
    def draws_seed(self) -> bool:
        return self.drawn

    @override
    def options(self) -> dict[str, Any]:
        seed = None if self.drawn else self.seed
        return {"shuffle_window": self.shuffle_window, "seed": seed}
