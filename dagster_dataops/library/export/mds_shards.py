"""``export.MDS``: shards for MosaicML streaming."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import xxhash

from dagster_dataops.datasets.exporters.exporter import ExportRecords, Place, UnfitValueError
from dagster_dataops.datasets.exporters.packages import require
from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.export.mds_encodings import Encoding, encoding_of, usual_encoding
from dagster_dataops.library.export.number_arrays import MOST_BYTES, number_bytes, with_places
from dagster_dataops.library.export.tables import PathLike, export
from dagster_dataops.operators.options.ranges import PositiveInt
from dagster_dataops.records import Record

_VERSION: Final = 2
_LEVEL: Final = 3  # of Zstandard


class MDS(export):
    """Write a folder of shards for ``streaming.StreamingDataset`` of MosaicML.

    ``columns`` maps columns to encodings: ``str``, ``int``, ``json``, ``bytes`` (from a base64
    text), ``ndarray:int32`` for a list of numbers, ``ndarray:uint16:2048`` for one of fixed length,
    and the numbers ``uint8`` to ``int64``, ``float32`` and ``float64``. Without it the columns are
    those of the first record, as ``str``, ``int``, ``float64``, and ``json`` for all else. Other
    columns are left out. A missing or null value fails the export, except in a column of ``json``;
    so does a value that does not fit, with file, line and column. ``ndarray`` holds no empty list.

    A shard ends before it would exceed ``shard_bytes``. ``compression="zstd"`` compresses each
    (extra ``zstd``). ``digests=["sha1"]`` are written to the index, for readers that check them:
    names of ``hashlib``, ``xxh64`` and other names of xxhash. Equal records give equal bytes, which
    are those of ``MDSWriter`` without compression.

    The folder is replaced whole. A folder with files that no export wrote is refused.

    Args:
        folder: Folder that is written, relative to the root of the results unless absolute.
        columns: Encodings by column; ``None`` for those of the first record.
        shard_bytes: Most bytes of a shard, less than 4 GiB.
        compression: ``zstd``; ``None`` for none.
        digests: Names of digests.
    """

    format = "mds"
    place: Place = "folder"

    def __init__(
        self,
        folder: PathLike,  # noqa: ARG002 - taken by the engine
        columns: Mapping[str, str] | None = None,
        shard_bytes: PositiveInt = 1 << 26,
        compression: Literal["zstd"] | None = None,
        digests: Sequence[str] = ("sha1",),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if shard_bytes > MOST_BYTES:
            msg = f"shard_bytes is {shard_bytes:,}; the format has places for {MOST_BYTES:,} bytes"
            raise DefinitionError(msg)
        if compression is not None:
            require("zstandard", "writing Zstandard files", "zstd")
        self._digests = {name: _digest_of(name) for name in sorted(set(digests))}
        self._bytes, self._compression = shard_bytes, compression
        self._columns = None if columns is None else _encodings(columns)

    def write(self, records: ExportRecords, place: Path) -> None:
        columns = self._columns
        if columns is None:
            first = records.sample(1)
            columns = {
                name: encoding_of(name, usual_encoding(value))
                for name, value in sorted(first[0].items() if first else ())
            }
        shards = _Shards(columns, self._bytes, self._compression, self._digests)
        described = [
            shards.written(place, number, samples)
            for number, samples in enumerate(shards.divided(records))
        ]
        index = {"version": _VERSION, "shards": described}
        (place / "index.json").write_text(json.dumps(index, sort_keys=True))


class _Shards(NamedTuple):
    """Write shards of columns, with a largest size, a compression and digests."""

    columns: Mapping[str, Encoding]
    most: int
    compression: str | None
    digests: Mapping[str, Callable[[bytes], str]]

    @property
    def config(self) -> dict[str, Any]:
        """The description that each shard begins with."""
        return {
            "column_encodings": [encoding.name for encoding in self.columns.values()],
            "column_names": list(self.columns),
            "column_sizes": [encoding.size for encoding in self.columns.values()],
            "compression": self.compression,
            "format": "mds",
            "hashes": list(self.digests),
            "size_limit": self.most,
            "version": _VERSION,
        }

    def divided(self, records: ExportRecords) -> Iterator[list[bytes]]:
        """Yield the samples of each shard. One before a sample that is too large may be empty."""
        empty = 8 + len(json.dumps(self.config, sort_keys=True))
        samples: list[bytes] = []
        size = empty
        for index, record in enumerate(records):
            sample = self._sample(index, record)
            added = len(sample) + 4
            if size + added > self.most:
                yield samples
                samples, size = [], empty
            if size + added > MOST_BYTES:
                raise UnfitValueError(index, "", "it takes 4 GiB or more", "Divide the record.")
            samples.append(sample)
            size += added
        if samples:
            yield samples

    def _sample(self, index: int, record: Record) -> bytes:
        sizes: list[int] = []
        values: list[bytes] = []
        for name, encoding in self.columns.items():
            try:
                value = encoding.encode(record.get(name))
            except ValueError as error:
                remedy = f"Give columns another encoding for {name!r}, or fill the column before."
                raise UnfitValueError(index, name, str(error), remedy) from None
            if encoding.size is None:
                sizes.append(len(value))
            values.append(value)
        return b"".join([number_bytes(sizes, "uint32"), *values])

    def written(self, place: Path, number: int, samples: list[bytes]) -> dict[str, Any]:
        """Write a shard and return its description for the index."""
        config = self.config
        text = json.dumps(config, sort_keys=True).encode()
        data = with_places(samples, text)
        name = f"shard.{number:05d}.mds"
        facts = {**config, "raw_data": self._facts(name, data), "samples": len(samples)}
        if self.compression is None:
            (place / name).write_bytes(data)
            return {**facts, "zip_data": None}
        import zstandard

        packed = zstandard.ZstdCompressor(level=_LEVEL).compress(data)
        packed_name = f"{name}.{self.compression}"
        (place / packed_name).write_bytes(packed)
        return {**facts, "zip_data": self._facts(packed_name, packed)}

    def _facts(self, name: str, data: bytes) -> dict[str, Any]:
        hashes = {algorithm: digest(data) for algorithm, digest in self.digests.items()}
        return {"basename": name, "bytes": len(data), "hashes": hashes}


def _encodings(columns: Mapping[str, str]) -> dict[str, Encoding]:
    """Return the encodings by column, sorted by column."""
    mapping: object = columns
    texts = isinstance(mapping, Mapping) and all(
        isinstance(encoding, str) for encoding in mapping.values()
    )
    if not texts or not mapping:
        msg = f"columns is {columns!r}; it must map columns to encodings, as in {{'text': 'str'}}"
        raise DefinitionError(msg)
    return {name: encoding_of(name, columns[name]) for name in sorted(columns)}


def _digest_of(name: str) -> Callable[[bytes], str]:
    """Return the function of a digest."""
    if name in xxhash.algorithms_available:
        make = getattr(xxhash, name)
        return lambda data: str(make(data).hexdigest())
    if name in hashlib.algorithms_guaranteed and hashlib.new(name).digest_size:
        return partial(_hashed, name)
    msg = f"digests has {name!r}; use a name of hashlib such as 'sha1', or of xxhash as 'xxh64'"
    raise DefinitionError(msg)


def _hashed(name: str, data: bytes) -> str:
    return hashlib.new(name, data, usedforsecurity=False).hexdigest()
