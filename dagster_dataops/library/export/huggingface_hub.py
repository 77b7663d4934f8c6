"""``export.HuggingFaceHub``: push Parquet shards and a dataset card to the Hub."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from dagster_dataops.datasets.exporters.exporter import ExportRecords, Place
from dagster_dataops.datasets.exporters.packages import require
from dagster_dataops.datasets.exporters.parquet_table import row_groups
from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.export.dataset_card import Card, steps_to
from dagster_dataops.library.export.huggingface_features import Features
from dagster_dataops.library.export.tables import PathLike, export
from dagster_dataops.operators.options.ranges import PositiveInt
from dagster_dataops.readers.huggingface.hub_conventions import HUB_NAME

_GROUP_ROWS: Final = 100_000
_GROUP_BYTES: Final = 64 << 20
_NOTE: Final = "commit.json"


class HuggingFaceHub(export):
    """Write Parquet shards, and push them with a dataset card to the Hub of Hugging Face.

    ``folder`` gets the shards, ``data/train-00000-of-00003.parquet`` and so on, and
    ``commit.json``, which names the commit. ``repo``, such as ``"org/name"``, is the dataset on the
    Hub. A missing one is created, private unless ``private=False``. ``split="train"`` names the
    split. ``features`` and ``shard_bytes=500_000_000`` are as in ``export.HuggingFace``.

    All files are in one commit, which also removes the earlier shards of the split; other files of
    the dataset stay. The push can be repeated at any time, after a kill or an outage: what the Hub
    has is not sent again, and a commit that would change nothing is not made. If another commit
    comes first, or a call fails for a moment, the state of the Hub is read again. The token is that
    of the environment, ``HF_TOKEN``, and the Hub that of ``HF_ENDPOINT``; neither is part of a
    result.

    The card has the split, its size, ``license`` and ``languages`` as YAML, and the steps that made
    the records: operators with numbers of records, options (never secrets, and of absolute paths
    the last name), digests of options and code, drops by reason, the sources, and the checks that
    have run over these results. The rest of an existing card stays as it is. A card whose
    configuration has a ``data_dir`` would hide the files, and is refused. Needs the extra ``hub``.

    Args:
        folder: Folder that is written, relative to the root of the results unless absolute.
        repo: Name of the dataset on the Hub.
        split: Name of the split.
        revision: Branch of the dataset.
        private: Whether a dataset that the export creates is private.
        features: Features by column: names of classes, ``json``, ``image``, ``audio``, ``video``,
            ``pdf``, or Arrow types.
        shard_bytes: Bytes of Arrow memory after which a shard ends.
        license: Licence for the card, such as ``cc-by-4.0``; ``None`` leaves it as it is.
        languages: Codes of languages for the card; ``None`` leaves them as they are.
    """

    format = "huggingface_hub"
    place: Place = "folder"

    def __init__(
        self,
        folder: PathLike,  # noqa: ARG002 - taken by the engine
        repo: str,
        split: str = "train",
        revision: str = "main",
        *,
        private: bool = True,
        features: Mapping[str, str | Sequence[str]] | None = None,
        shard_bytes: PositiveInt = 500_000_000,
        license: str | None = None,  # noqa: A002 - the word of the card
        languages: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        for package in ("huggingface_hub", "pyarrow"):
            require(package, "export.HuggingFaceHub", "hub")
        if not HUB_NAME.fullmatch(repo):
            msg = f"repo is {repo!r}; it must be the name of a dataset, as in 'org/name'"
            raise DefinitionError(msg)
        if not (split.isidentifier() and split.isascii()):
            msg = f"split is {split!r}; it must be a plain identifier such as 'train'"
            raise DefinitionError(msg)
        self._repo, self._split, self._revision = repo, split, revision
        self._private, self._bytes = private, shard_bytes
        self._license, self._languages = license, languages
        self._features = Features(features)

    def write(self, records: ExportRecords, place: Path) -> None:
        from dagster_dataops.datasets.exporters.arrow_types import write_batches
        from dagster_dataops.library.export.hub_push import Change, HubDataset

        folder = place / "data"

        def written(schema: Any, batches: Iterator[Any]) -> list[Path]:
            described = self._features.described(schema)
            return self._shards(described, self._features.applied(described, batches), folder)

        folder.mkdir()
        shards = write_batches(records, self._features.schema, written)
        pattern = re.compile(rf"data/{self._split}-\d+-of-\d+\.parquet")
        steps = steps_to(records.location)
        card = Card(self._split, records.rows, steps, self._license, self._languages)
        change = Change(
            {f"data/{path.name}": path for path in shards},
            lambda path: pattern.fullmatch(path) is not None,
            card.written,
            f"Replace the split {self._split} by {records.rows:,} records",
        )
        pushed = HubDataset(self._repo, self._revision, private=self._private).push(change)
        facts = {"repo": self._repo, "revision": self._revision, "commit": pushed.commit}
        (place / _NOTE).write_bytes(orjson.dumps(facts, option=orjson.OPT_INDENT_2))

    def _shards(self, schema: Any, batches: Iterator[Any], folder: Path) -> list[Path]:
        """Write the batches to files; return their paths, which have number and count."""
        from pyarrow import parquet

        for path in folder.iterdir():
            path.unlink()
        paths: list[Path] = []
        groups = row_groups(batches, _GROUP_ROWS, min(self._bytes, _GROUP_BYTES))
        group = next(groups, None)
        while group is not None or not paths:
            paths.append(folder / f"{len(paths)}.parquet")
            written = 0
            with parquet.ParquetWriter(paths[-1], schema, compression="zstd") as writer:
                while group is not None and (not written or written + group.nbytes <= self._bytes):
                    writer.write_table(group, row_group_size=group.num_rows or None)
                    written += max(group.nbytes, 1)
                    group = next(groups, None)
        names = [f"{self._split}-{at:05d}-of-{len(paths):05d}.parquet" for at in range(len(paths))]
        return [path.rename(folder / name) for path, name in zip(paths, names, strict=True)]
