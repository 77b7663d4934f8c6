"""PartFiles: the lines of ``part-000``, ``part-001``, ... as records, shuffled and in batches.

@data_register("data.mini", columns={"values": list[float]})
class MiniReader(PartFiles):
    def parse(self, line):
        return {"values": parse_numbers(line, 2)}
"""

import os
import secrets
from dataclasses import dataclass, field, fields
from typing import Any, Final

from typing_extensions import override

from dagster_dataops.errors import OperatorOptionError
from dagster_dataops.operators.operator import init_parameters
from dagster_dataops.operators.reader_base import Readable
from dagster_dataops.operators.signature import options_of
from dagster_dataops.operators.type_checks import check_types
from dagster_dataops.readers.part_files.column_batches import Batches
from dagster_dataops.readers.part_files.part_lines import PartLines
from dagster_dataops.readers.part_files.part_names import Parts
from dagster_dataops.readers.part_files.row_shuffle import RowShuffle
from dagster_dataops.readers.reader import own_values
from dagster_dataops.readers.record_parsing import LineParsing, parsed
from dagster_dataops.streams.core.stage import Stage
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder

_LEAST: Final = {
    "data_part_num": 1,
    "part_name_suffix_length": -1,
    "batch_size": 1,
    "seed": -1,
    "shuffle_buffer_size": 1,
    "epochs": 1,
    "shard_index": 0,
    "num_shards": 1,
    "prefetch": 0,
    "num_parallel_calls": 1,
}
_SEED_BITS: Final = 63
_AHEAD: Final = 4  # batches, as OneFlow has them


@dataclass(eq=False)
class PartFiles(Readable):
    """Reads part files in order, line by line; the end of a file ends its last line.

    Subclasses say in ``parse`` what the record of a line is; by default it is ``{"text": line}``.
    Nothing is opened before the first record is asked for.

    Attributes:
        data_dir: The folder.
        data_part_num: How many parts there are: 0 to one less. All must be there; of further ones
            a warning tells.
        part_name_prefix: What their names begin with.
        part_name_suffix_length: The least number of digits of their names, filled up with zeros:
            3 for ``part-000``, -1 for ``part-0``.
        batch_size: How many rows a record holds, as lists by column; ``None`` for a record a row.
        random_shuffle: Whether rows come in random order, before they are put into batches.
        shuffle_after_epoch: Whether files are in another order in each epoch but the first. All
            shards know that order.
        seed: Of both; -1 draws one, which is ``seed_in_use``, and part of the stream's state.
        shuffle_buffer_size: Rows are shuffled within windows of so many.
        name: Its name, as of its asset; that of the class if ``None``.
        epochs: How often everything is read; for ever if ``None``.
        drop_last: Whether the last batch of an epoch is dropped if it is short.
        wrap: Whether batches go on into the next epoch instead.
        shard_index: Which shard of the files to read.
        num_shards: How many shards there are; each has neighbouring files.
        with_place: Whether records get the columns ``file`` and ``line``.
        skip_blank_lines: Whether lines of white space are passed over.
        prefetch: How many records a thread reads ahead, 0 for none. By default 4 batches, and no
            single rows: handing over one costs more than to read it.
        num_parallel_calls: How many lines are parsed at once, in threads; the order stays.
        seed_in_use: The seed, given or drawn.
    """

    data_dir: str | os.PathLike[str]
    data_part_num: int
    part_name_prefix: str = "part-"
    part_name_suffix_length: int = -1
    batch_size: int | None = None
    random_shuffle: bool = False
    shuffle_after_epoch: bool = False
    seed: int = -1
    shuffle_buffer_size: int = 1024
    name: str | None = None  # type: ignore[assignment]
    epochs: int | None = 1
    drop_last: bool = False
    wrap: bool = False
    shard_index: int = 0
    num_shards: int = 1
    with_place: bool = False
    skip_blank_lines: bool = False
    prefetch: int | None = None
    num_parallel_calls: int = 1
    seed_in_use: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        who = self._qualified()
        check_types(who, tuple(options_of(init_parameters(PartFiles).values(), ())), vars(self))
        for option, least in _LEAST.items():
            value = getattr(self, option)
            if value is not None and value < least:
                raise OperatorOptionError(who, option, f"must be at least {least}; got {value}")
        self._check_together(who)
        self.seed_in_use = secrets.randbits(_SEED_BITS) if self.seed == -1 else self.seed
        self.name = self.name or type(self).__name__

    def _qualified(self) -> str:
        invocation = getattr(self, "__dataops__", None)
        return type(self).__name__ if invocation is None else invocation.spec.qualified_name

    def _check_together(self, who: str) -> None:
        """Refuse what is possible alone, and not beside the other options."""
        shards, parts = self.num_shards, self.data_part_num
        faults = {
            "num_shards": shards > parts and f"is {shards}, of {parts} parts; none may be empty",
            "shard_index": self.shard_index >= shards and f"must be below num_shards, {shards}",
            "wrap": self.wrap and self.drop_last and "and drop_last exclude one another",
            "seed": self.seed >= 1 << 64 and "must be below 2^64",
        }
        for option in ("wrap", "drop_last"):
            if getattr(self, option) and self.batch_size is None:
                faults[option] = "is about batches, and needs a batch_size"
        for option, fault in faults.items():
            if fault:
                raise OperatorOptionError(who, option, fault)

    def parse(self, line: str) -> dict[str, Any]:
        """Return the record of a line; ``ValueError`` is told with its file and number."""
        return {"text": line}

    @override
    def column_types(self) -> dict[str, Any] | None:
        """Return the types of the columns of its records; in batches these are lists."""
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
        """Return the stream of its records: lines, shuffled, parsed, in batches, read ahead."""
        rows = DataPipelineBuilder(self._rows())
        if self.batch_size is not None:
            size, epochs = self.batch_size, self.epochs
            batches = Batches(rows.stage, size, epochs, self.drop_last, self.wrap)
            rows = DataPipelineBuilder(batches)
        elif self.epochs != 1:
            rows = rows.repeat(self.epochs)
        ahead = _AHEAD * (self.batch_size is not None) if self.prefetch is None else self.prefetch
        return rows.prefetch(ahead) if ahead else rows

    def _rows(self) -> Stage:
        folder, drawn = os.fspath(self.data_dir), self.seed == -1
        parts = Parts(
            folder, self.data_part_num, self.part_name_prefix, self.part_name_suffix_length
        )
        lines: Stage = PartLines(
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
        known = frozenset(one.name for one in fields(PartFiles))
        values = own_values(self, known)
        parsing = LineParsing(self.parse, folder, values, with_place=self.with_place)
        return parsed(lines, parsing, self.num_parallel_calls)
