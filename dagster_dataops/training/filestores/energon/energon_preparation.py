"""``prepare_energon``: write the files of ``energon prepare`` beside tar shards."""

import contextlib
import os
import shutil
import sqlite3
import tarfile
import uuid
from array import array
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from pathlib import Path
from typing import IO, Any, Final

import orjson

from dagster_dataops.errors import (
    ConfigurationError,
    DuplicateKeyError,
    InputError,
    StreamSourceError,
)
from dagster_dataops.foundation.hashing.values import digest
from dagster_dataops.streams.files.remote import is_url
from dagster_dataops.training.filestores.energon.energon_layout import (
    META,
    ShardedDataset,
    sharded_dataset,
)
from dagster_dataops.training.filestores.energon.media_metadata import MEDIA, media_facts
from dagster_dataops.training.filestores.energon.media_table import MediaFacts, write_media_table
from dagster_dataops.training.filestores.tars.shard_scan import (
    END,
    KEY,
    START,
    ScannedShard,
    TarShard,
    scan,
)

_DRAFT: Final = f"{META}.draft"
_LAYOUT: Final = "7.4.1"  # the version of Energon whose files these are
_TABLES: Final = """
    PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
    CREATE TABLE samples (tar_file_id INTEGER NOT NULL, sample_key TEXT NOT NULL UNIQUE,
        sample_index INTEGER NOT NULL, byte_offset INTEGER, byte_size INTEGER);
    CREATE TABLE sample_parts (tar_file_id INTEGER, sample_index INTEGER, part_name TEXT,
        content_byte_offset INTEGER, content_byte_size INTEGER);
"""
_INDICES: Final = """
    CREATE INDEX idx_samples_by_tar_and_idx ON samples(tar_file_id, sample_index);
    CREATE INDEX idx_sample_parts_seq
        ON sample_parts(tar_file_id, sample_index, content_byte_offset);
    CREATE INDEX idx_sample_parts_full ON sample_parts(tar_file_id, sample_index, part_name,
        content_byte_offset, content_byte_size);
"""


def prepare_energon(
    folder: str | os.PathLike[str],
    *,
    split: Mapping[str, float] | None = None,
    subflavors: Mapping[str, Any] | None = None,
    exclude: Sequence[str] = (),
    overwrite: bool = False,
    media_metadata: bool = False,
) -> dict[str, int]:
    """Prepare tar shards for Megatron-Energon, as ``energon prepare`` does it for crude data.

    The folder ``.nv-meta`` gets ``.info.json``, ``dataset.yaml``, ``split.yaml``, ``index.sqlite``
    and ``index.uuid``; ``.tar.idx`` is written beside each shard. Only headers of the shards are
    read, and the shards are not changed. ``.nv-meta`` is written last, and atomically: after a
    crash the folder is as it was before, or not prepared.

    Args:
        folder: The local folder with the shards, in natural order of their names.
        split: The share of the shards of each part, such as ``{"train": 8, "val": 1, "test": 1}``;
            each part has consecutive shards. By default all are ``train``.
        subflavors: The subflavors of all samples.
        exclude: Names of shards, and ``shard.tar/key`` of samples, to leave out.
        overwrite: Whether to replace an earlier ``.nv-meta``.
        media_metadata: Whether to read images, audio and video, by their suffixes, and to write
            their sizes and durations for `FileStore.get_media_metadata`. A warning names each file
            that cannot be decoded. FFmpeg decodes audio and video in this process, so a file that
            crashes FFmpeg ends it. The ``.nv-meta`` of a folder without tar shards has these alone.

    Returns:
        The number of samples of each shard, by its name in the folder.

    Raises:
        ConfigurationError: A share is negative, or all are zero.
        DuplicateKeyError: A key occurs twice.
        InputError: The folder has no shards, or is prepared already.
        MissingExtraError: Pillow or PyAV is missing, with ``media_metadata``.
        StreamSourceError: A shard is torn, or cannot be read.
    """
    place = os.path.abspath(folder)  # noqa: PTH100 - links stay
    if is_url(os.fspath(folder)) or not Path(place).is_dir():
        raise InputError(os.fspath(folder), "is not a local folder")
    if Path(place, META).exists() and not overwrite:
        raise InputError(place, f"has {META} already; overwrite=True replaces it")
    shares = _checked(split or {"train": 1, "val": 0, "test": 0})
    data = sharded_dataset(place, {})
    if data is None and not media_metadata:
        raise InputError(place, "has no tar files")
    draft = Path(place, _DRAFT)
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    counts: dict[str, int] = {}
    shards = data.shards if data else ()
    try:
        if data:
            counts = _write_files(draft, data, subflavors or data.subflavors, shares, exclude)
        if media_metadata:
            media = _media_of_shards(shards) if data else _media_of_folder(place)
            write_media_table(draft / "index.sqlite", media)
        shutil.rmtree(Path(place, META), ignore_errors=True)
        for number, shard in enumerate(shards):
            Path(draft, f"{number}.idx").replace(f"{shard.location.path}.idx")
        draft.replace(Path(place, META))
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return counts


def _write_files(
    draft: Path,
    data: ShardedDataset,
    subflavors: Mapping[str, Any],
    shares: Mapping[str, Fraction],
    exclude: Sequence[str],
) -> dict[str, int]:
    """Write the files of tar shards, and return the number of samples of each."""
    counts, identity = _indexed(draft / "index.sqlite", data.shards, data.path)
    parts = {"exclude": list(exclude), "split_parts": _divided(list(counts), shares)}
    info = {"energon_version": _LAYOUT, "shard_counts": counts}
    _write_yaml(draft / "dataset.yaml", _configuration(subflavors))
    _write_yaml(draft / "split.yaml", parts)
    Path(draft, ".info.json").write_bytes(orjson.dumps(info, option=orjson.OPT_INDENT_2))
    Path(draft, "index.uuid").write_text(identity)
    return counts


def _media_of_shards(shards: Sequence[TarShard]) -> Iterator[tuple[str, MediaFacts]]:
    for shard in shards:
        with tarfile.open(shard.location.path) as file:
            for member in file:
                content = file.extractfile(member) if member.isfile() else None
                facts = None if content is None else _facts(member.name, content)
                if facts is not None:
                    yield member.name, facts


def _media_of_folder(place: str) -> Iterator[tuple[str, MediaFacts]]:
    for path in sorted(Path(place).rglob("*")):
        name = path.relative_to(place).as_posix()
        if path.is_file() and not name.startswith("."):
            with path.open("rb") as content:
                if (facts := _facts(name, content)) is not None:
                    yield name, facts


def _facts(name: str, content: IO[bytes]) -> MediaFacts | None:
    """Return the facts of a file, which is read only if its suffix is that of a medium."""
    if name.rpartition(".")[2].lower() not in MEDIA:
        return None
    return media_facts(name, content.read())


def _checked(split: Mapping[str, float]) -> dict[str, Fraction]:
    shares = {name: Fraction(str(share)) for name, share in split.items()}
    if min(shares.values()) < 0 or not sum(shares.values()):
        raise ConfigurationError("split", dict(split), "shares of at least 0, not all of them 0")
    return shares


def _divided(names: list[str], shares: Mapping[str, Fraction]) -> dict[str, list[str]]:
    """Return consecutive names for each share."""
    total = sum(shares.values())
    ends = [
        round(len(names) * sofar / total)
        for sofar in accumulate(shares.values(), initial=Fraction())
    ]
    runs = [names[start:end] for start, end in pairwise(ends)]
    return dict(zip(shares, runs, strict=True))


def _configuration(subflavors: Mapping[str, Any]) -> dict[str, Any]:
    configuration: dict[str, Any] = {
        "__module__": "megatron.energon",
        "__class__": "CrudeWebdataset",
    }
    return {**configuration, "subflavors": dict(subflavors)} if subflavors else configuration


def _write_yaml(path: Path, content: Mapping[str, Any]) -> None:
    import yaml

    path.write_text(yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True))


def _indexed(path: Path, shards: Sequence[TarShard], dataset: str) -> tuple[dict[str, int], str]:
    """Write the indices; return the numbers of samples by shard, and an identity of all places."""
    counts: dict[str, int] = {}
    identity = ""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(_TABLES)
        for number, shard in enumerate(shards):
            scanned = _scanned(shard, dataset)
            _add(connection, dataset, shards, number, scanned)
            ends = [sample[END] for sample in scanned.samples[-1:]] or [0]
            starts = array("Q", [*(sample[START] for sample in scanned.samples), *ends])
            path.with_name(f"{number}.idx").write_bytes(starts.tobytes())
            counts[shard.name] = len(scanned.samples)
            identity = digest([identity, shard.name, scanned.rows()])
        connection.executescript(_INDICES)
        connection.commit()
    return counts, str(uuid.uuid5(uuid.NAMESPACE_OID, identity))


def _scanned(shard: TarShard, dataset: str) -> ScannedShard:
    scanned = scan(shard, dataset, "error")
    if scanned.error:
        raise StreamSourceError(*scanned.error)
    if not scanned.is_common:
        reason = "has members that are no plain files; write it again, without links and gaps"
        raise InputError(shard.location.path, reason)
    return scanned


def _add(
    connection: sqlite3.Connection,
    dataset: str,
    shards: Sequence[TarShard],
    number: int,
    scanned: ScannedShard,
) -> None:
    samples = [
        (number, sample[KEY], at, sample[START], sample[END] - sample[START])
        for at, sample in enumerate(scanned.samples)
    ]
    try:
        connection.executemany("INSERT INTO samples VALUES (?, ?, ?, ?, ?)", samples)
    except sqlite3.IntegrityError:
        key, first = _twice(connection, samples, number)
        raise DuplicateKeyError(dataset, key, shards[first].name, shards[number].name) from None
    connection.executemany(
        "INSERT INTO sample_parts VALUES (?, ?, ?, ?, ?)", _parts(number, scanned)
    )


def _parts(number: int, scanned: ScannedShard) -> Iterator[tuple[int, int, str, int, int]]:
    for at, (_, _, parts) in enumerate(scanned.rows()):
        for name, (offset, size) in parts.items():
            yield number, at, name, offset, size


def _twice(
    connection: sqlite3.Connection, samples: Sequence[tuple[int, str, int, int, int]], number: int
) -> tuple[str, int]:
    """Return the first key that occurs twice, and the number of the shard that has it already."""
    seen: set[str] = set()
    for _, key, *_ in samples:
        query = "SELECT tar_file_id FROM samples WHERE sample_key = ? AND tar_file_id < ?"
        known = connection.execute(query, (key, number)).fetchone()
        if known is not None:
            return key, known[0]
        if key in seen:
            return key, number
        seen.add(key)
    raise AssertionError(number)
