"""``export.HuggingFace``: a dataset folder for ``datasets.load_from_disk`` and ``load_dataset``."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson
import xxhash

from dagster_dataops.datasets.exporters.exporter import ExportRecords, Place
from dagster_dataops.datasets.exporters.packages import require
from dagster_dataops.datasets.exporters.parquet_table import checked_schema
from dagster_dataops.errors import DefinitionError
from dagster_dataops.foundation.hashing.file_digests import content_digest
from dagster_dataops.library.export.huggingface_features import Features
from dagster_dataops.library.export.tables import PathLike, export
from dagster_dataops.operators.options.ranges import PositiveInt

_README: Final = """---
configs:
- config_name: default
  data_files:
  - split: {split}
    path: {split}/data-*.arrow
---
"""


class HuggingFace(export):
    """Write a Hugging Face dataset folder with one split.

    ``datasets.load_from_disk(folder)`` gives a ``DatasetDict``, and ``datasets.load_dataset(folder,
    split="train")`` the split; the folder can be uploaded to the Hub. Types are inferred as in
    ``export.Parquet``, and ``schema`` is as there. ``split="train"`` names the split;
    ``shard_bytes=500_000_000`` is where a data file ends, in bytes of Arrow memory.

    ``features`` adds what the package has besides. ``{"label": ["no", "yes"]}`` is a
    ``ClassLabel``: the column has these names, or their numbers. ``{"tools": "json"}`` is ``Json``:
    the values are read as they were, where types of Arrow would add keys. Older versions of the
    package lack it; for these ``schema={"tools": "json"}`` writes texts. Types are given as in
    ``schema``, such as ``{"input_ids": "list<int32>"}``. ``image``, ``audio``, ``video`` and
    ``pdf`` are the features ``Image``, ``Audio``, ``Video`` and ``Pdf`` of columns that name files,
    ``list<image>`` that of a list of them: the export holds their bytes.

    The folder is replaced whole. A folder with files that no export wrote is refused. Needs the
    extra ``arrow``; the package ``datasets`` is only for reading.

    Args:
        folder: Folder that is written, relative to the root of the results unless absolute.
        split: Name of the split.
        schema: Arrow types by column; ``None`` infers all.
        features: Features by column: names of classes, ``json``, ``image``, ``audio``, ``video``,
            ``pdf``, or Arrow types.
        shard_bytes: Bytes of Arrow memory after which a data file ends.
    """

    format = "huggingface"
    place: Place = "folder"
    added_later = frozenset({"features"})

    def __init__(
        self,
        folder: PathLike,  # noqa: ARG002 - taken by the engine
        split: str = "train",
        schema: Mapping[str, str] | None = None,
        shard_bytes: PositiveInt = 500_000_000,
        features: Mapping[str, str | Sequence[str]] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        require("pyarrow", "export.HuggingFace", "arrow")
        if not (split.isidentifier() and split.isascii()):
            msg = f"split is {split!r}; it must be a plain identifier such as 'train'"
            raise DefinitionError(msg)
        self._features = Features(features)
        if twice := checked_schema(schema).keys() & (features or {}):
            msg = f"schema and features both have column {min(twice)!r}; give it in one of them"
            raise DefinitionError(msg)
        self._schema = checked_schema(schema) | self._features.schema
        self._split, self._bytes = split, shard_bytes

    def write(self, records: ExportRecords, place: Path) -> None:
        from dagster_dataops.datasets.exporters.arrow_types import write_batches

        folder = place / self._split

        def written(schema: Any, converted: Iterator[Any]) -> list[str]:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            if not self._features:
                return _write_shards(schema, converted, folder, self._bytes)
            described = self._features.described(schema)
            batches = self._features.applied(described, converted)
            return _write_shards(described, batches, folder, self._bytes)

        names = write_batches(records, self._schema, written)
        _write_json(folder / "dataset_info.json", {"citation": "", "description": ""})
        _write_json(folder / "state.json", _state(folder, names, self._split))
        _write_json(place / "dataset_dict.json", {"splits": [self._split]})
        (place / "README.md").write_text(_README.format(split=self._split))


def _write_shards(schema: Any, batches: Iterator[Any], folder: Path, shard_bytes: int) -> list[str]:
    """Write the batches to files and return the names of the files, which tell their number."""
    import pyarrow as pa

    paths: list[Path] = []
    batch = next(batches, None)
    while batch is not None or not paths:
        paths.append(folder / f"{len(paths)}.arrow")
        written = 0
        with pa.OSFile(str(paths[-1]), "wb") as file, pa.ipc.new_stream(file, schema) as writer:
            while batch is not None and (not written or written + batch.nbytes <= shard_bytes):
                writer.write_batch(batch)
                written += max(batch.nbytes, 1)
                batch = next(batches, None)
    names = [f"data-{at:05d}-of-{len(paths):05d}.arrow" for at in range(len(paths))]
    for path, name in zip(paths, names, strict=True):
        path.rename(folder / name)
    return names


def _state(folder: Path, names: list[str], split: str) -> dict[str, Any]:
    """Return the facts that `datasets` reads beside the data files."""
    digests = " ".join(content_digest(folder / name) for name in names)
    return {
        "_data_files": [{"filename": name} for name in names],
        "_fingerprint": xxhash.xxh3_64_hexdigest(digests.encode()),
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": split,
    }


def _write_json(path: Path, value: object) -> None:
    path.write_bytes(orjson.dumps(value, option=orjson.OPT_INDENT_2))
