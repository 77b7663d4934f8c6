"""`CrudeFile`: a file of a crude sample, or of an auxiliary store, that a record was made of."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.parts import function_of_part
from dagster_dataops.records import RESTORE_KEY, SOURCES, compact_copy

_PACK: Final = "pack"
_OF_ROW: Final = ("dataset", "shard", "key", "parts")


@dataclass(frozen=True)
class CrudeFile:
    """A file that a record was made of.

    Attributes:
        dataset: The path or URL of the dataset or the auxiliary store.
        shard: The shard, relative to the dataset; of a folder, the folder.
        name: The name of the file.
        first: The first byte of its content in the shard; ``None`` if it is not in a tar shard, or
            not known.
        end: The byte behind the last one; ``None`` as for ``first``.
    """

    dataset: str
    shard: str
    name: str
    first: int | None = None
    end: int | None = None

    @override
    def __str__(self) -> str:
        """Return dataset, shard, name and bytes."""
        place = f"{self.dataset}  {self.shard}  " if self.shard != self.dataset else self.dataset
        if self.first is None or self.end is None:
            return f"{place.rstrip()}  {self.name}"
        return f"{place.rstrip()}  {self.name}  bytes {self.first:,} to {self.end:,}"


def crude_files(lines: Iterable[str | None]) -> tuple[CrudeFile, ...]:
    """Return the files that the records in lines were made of, each once.

    Args:
        lines: Lines of an index, which know the bytes, and of records with ``__sources__``, whose
            bytes are looked up in the index of the store. A pack is left out: its sources
            are those of all its samples.
    """
    origins: dict[tuple[str, str, str], CrudeFile] = {}
    for line in lines:
        record = record_in(line)
        for file in () if _is_pack(record) else _files_of(record):
            key = file.dataset, file.shard, file.name
            if key not in origins or origins[key].first is None:
                origins[key] = file
    files = list(origins.values())
    return tuple(_located(files) if any(file.first is None for file in files) else files)


def record_in(line: str | None) -> Mapping[str, Any]:
    """Return the record in a line; an empty one if there is none."""
    if line is None or not ('"parts"' in line or SOURCES in line or RESTORE_KEY in line):
        return {}
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return {}
    return record if isinstance(record, dict) else {}


def packed_keys(line: str | None) -> set[bytes]:
    """Return the restore keys of the records in a pack; none if the line is no pack."""
    record = record_in(line)
    keys = record[RESTORE_KEY][1:] if _is_pack(record) else ()
    return {compact_copy(orjson.dumps(key)) for key in keys if isinstance(key, list)}


def _is_pack(record: Mapping[str, Any]) -> bool:
    key = record.get(RESTORE_KEY)
    return isinstance(key, list) and bool(key) and key[0] == _PACK


def restore_key_of(line: str | None) -> bytes:
    """Return the restore key of a record."""
    return orjson.dumps(record_in(line).get(RESTORE_KEY))


def _files_of(record: Mapping[str, Any]) -> Iterator[CrudeFile]:
    for row in record.get("joined") or ():
        if isinstance(row, dict):
            yield from _files_of(row)
    if all(name in record for name in _OF_ROW):
        yield from _of_row(record)
    sources = record.get(SOURCES)
    for source in sources if isinstance(sources, list) else ():
        if isinstance(source, dict):
            dataset, shard = str(source.get("dataset_path")), str(source.get("shard_name"))
            for name in source.get("file_names") or ():
                yield CrudeFile(dataset, shard, str(name))


def _of_row(row: Mapping[str, Any]) -> Iterator[CrudeFile]:
    """Yield the files of a line of an index."""
    dataset, shard, key = str(row["dataset"]), str(row["shard"]), str(row["key"])
    parts = row["parts"]
    for part, place in parts.items() if isinstance(parts, dict) else ():
        if isinstance(place, list):
            yield CrudeFile(dataset, shard, f"{key}.{part}", *_bytes(place))
        else:  # of a folder: the name of the file
            yield CrudeFile(dataset, shard, str(place))


def _bytes(place: list[int]) -> tuple[int | None, int | None]:
    """Return the bytes of a part; not known if only ``tarfile`` reads the shard."""
    first, size = place
    return (first, first + size) if size >= 0 else (None, None)


def _located(files: Iterable[CrudeFile]) -> Iterator[CrudeFile]:
    """Yield files with their bytes in the shard, if their store is there and has them there."""
    asked = [file for file in files if file.first is None]
    places = function_of_part("bytes_of_files")(
        (file.dataset, file.shard, file.name) for file in asked
    )
    known = {
        id(file): place for file, place in zip(asked, places, strict=True) if place is not None
    }
    for file in files:
        first, end = _bytes(known[id(file)]) if id(file) in known else (file.first, file.end)
        yield replace(file, first=first, end=end)
