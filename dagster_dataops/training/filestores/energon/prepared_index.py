"""``prepared_index``: an index of the places that ``energon prepare`` wrote, without a scan."""

import contextlib
import sqlite3
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from dagster_dataops.errors import DuplicateKeyError
from dagster_dataops.training.filestores.energon.energon_layout import (
    META,
    ShardedDataset,
    prepared_counts,
)
from dagster_dataops.training.filestores.tars.shard_scan import ScannedShard, TarShard
from dagster_dataops.training.filestores.tars.tar_index import TarIndex

_PARTS = """
    SELECT sample_index, part_name, content_byte_offset, content_byte_size FROM sample_parts
    WHERE tar_file_id = ? ORDER BY sample_index, content_byte_offset
"""
_SAMPLES = """
    SELECT sample_index, sample_key, byte_offset, byte_offset + byte_size FROM samples
    WHERE tar_file_id = ? ORDER BY sample_index
"""


def prepared_index(dataset: ShardedDataset) -> TarIndex | None:
    """Return the index of a local dataset that Energon prepared; ``None`` if it is not complete."""
    path = Path(dataset.path) / META / "index.sqlite"
    if not (path.is_file() and all(shard.location.is_plain for shard in dataset.shards)):
        return None
    numbers = {name: number for number, name in enumerate(prepared_counts(dataset))}
    if not all(shard.name in numbers for shard in dataset.shards):
        return None
    return TarIndex(
        dataset.path,
        dataset.shards,
        scanner=partial(_placed, path.absolute(), numbers, dataset.path),
        written=path.stat().st_ctime_ns,
    )


def _placed(path: Path, numbers: dict[str, int], dataset: str, shard: TarShard) -> ScannedShard:
    """Return the samples of a shard by their entries in ``index.sqlite``."""
    shapes: dict[tuple[str, ...], int] = {}
    number = (numbers[shard.name],)
    with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)) as file:
        samples = {at: [*values, 0] for at, *values in file.execute(_SAMPLES, number)}
        for at, parts in groupby(file.execute(_PARTS, number), itemgetter(0)):
            sample, names = samples[at], []
            for _, name, *place in parts:
                if name in names:
                    raise DuplicateKeyError(dataset, f"{sample[0]}.{name}", shard.name, shard.name)
                names.append(name)
                sample += place
            sample[3] = shapes.setdefault(tuple(names), len(shapes))
    return ScannedShard(list(samples.values()), [list(shape) for shape in shapes], [])
