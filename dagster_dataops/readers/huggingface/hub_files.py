"""Read the Parquet files of a dataset on the Hub of Hugging Face, at one revision."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, ClassVar, Final, NamedTuple

import pyarrow as pa
from fsspec.utils import glob_translate
from huggingface_hub import HfApi, constants
from huggingface_hub.errors import RevisionNotFoundError
from huggingface_hub.hf_api import RepoFile

from dagster_dataops.errors import StreamSourceError
from dagster_dataops.foundation.override import override
from dagster_dataops.readers.arrow.arrow_columns import RecordColumns
from dagster_dataops.readers.arrow.arrow_files import ParquetCursor, ParquetFiles
from dagster_dataops.readers.huggingface.hub_conventions import split_files
from dagster_dataops.readers.huggingface.hub_errors import DENIED, shown, status_of
from dagster_dataops.readers.huggingface.media_columns import media_columns
from dagster_dataops.streams.files.file_stages import FileCursor
from dagster_dataops.streams.files.listing import natural_key
from dagster_dataops.streams.files.locations import Location

_CONVERSION: Final = "revision='refs/convert/parquet' often has them"
_OTHER_NAMES: Final = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test", "testing", "eval", "evaluation"),
}
"""Names in paths for splits, as `datasets` reads them."""


class HubFile(NamedTuple):
    """A file of a dataset: its path, its size, and the digest of its content."""

    path: str
    size: int
    digest: str


class _Snapshot(NamedTuple):
    """A commit, and the files of a split in it."""

    sha: str
    files: list[HubFile]


@dataclass(frozen=True)
class HubSplit:
    """The files of a split. They are looked up once, at the first use; copies keep the result.

    Attributes:
        repo: Name of the dataset, such as ``org/name``.
        revision: Branch, tag or commit.
        split: Name of the split.
        config: Name of the configuration; ``None`` for the only one.
    """

    repo: str
    revision: str
    split: str
    config: str | None

    @property
    def paths(self) -> tuple[str, ...]:
        """The address of the dataset."""
        return (f"hf://datasets/{self.repo}",)

    def locations(self) -> list[Location]:
        """Return the files, in natural order.

        Raises:
            StreamSourceError: The dataset cannot be read, or has no such files.
        """
        sha, files = self._snapshot
        address = f"hf://datasets/{self.repo}@{sha}"
        options = {"endpoint": constants.ENDPOINT}
        return [Location(f"{address}/{file.path}", None, options) for file in files]

    def identity(self) -> object:
        """Return the commit, and the files with their digests."""
        sha, files = self._snapshot
        return [self.repo, sha, [list(file) for file in files]]

    @cached_property
    def _snapshot(self) -> _Snapshot:
        api = HfApi()
        try:
            info = api.dataset_info(self.repo, revision=self.revision)
            tree = api.list_repo_tree(
                self.repo, recursive=True, revision=info.sha, repo_type="dataset"
            )
            known = {entry.path: _file_of(entry) for entry in tree if isinstance(entry, RepoFile)}
        except Exception as error:
            raise self._unreachable(error) from error
        if not any(map(_is_parquet, known)):
            raise self._missing(f"has no Parquet files at {self.revision}; {_CONVERSION}")
        card: Any = info.card_data
        configs = card.to_dict().get("configs") if card else None
        config = self._configuration(configs) if configs else {}
        return _Snapshot(str(info.sha), [known[path] for path in self._chosen(config, list(known))])

    def _configuration(self, configs: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """Return the configuration of the card that is read."""
        by_name = {str(config.get("config_name", "default")): config for config in configs}
        default = [name for name, config in by_name.items() if config.get("default")] or ["default"]
        name = self.config or (default[0] if default[0] in by_name else None)
        if name is None and len(by_name) == 1:
            (name,) = by_name
        if name not in by_name:
            raise self._missing(f"has the configurations {_listed(by_name)}; give config one")
        return by_name[name]

    def _chosen(self, config: Mapping[str, Any], paths: list[str]) -> list[str]:
        """Return the paths of the Parquet files of the split, by the card or else by their names.

        Args:
            config: The configuration of the card; empty if it has none.
            paths: All files of the dataset.
        """
        folder = PurePosixPath(config.get("data_dir") or "")
        inside = [path for path in map(PurePosixPath, paths) if path.is_relative_to(folder)]
        names = sorted((str(path.relative_to(folder)) for path in inside), key=natural_key)
        patterns = self._patterns(config)
        if patterns is not None:
            chosen = self._matching(patterns, names)
        else:
            named = self.config if not folder.parts else None
            chosen = self._by_name([name for name in names if _is_parquet(name)], named)
        if not chosen:
            parquet = sorted(filter(_is_parquet, paths), key=natural_key)
            raise self._missing(f"has no Parquet files of the split; it has {_listed(parquet)}")
        return [str(folder / name) for name in chosen]

    def _patterns(self, config: Mapping[str, Any]) -> list[str] | None:
        """Return the patterns of the files of the split; ``None`` if the card has none."""
        entries = split_files(config.get("data_files"))
        if not entries:
            return None
        known = {str(entry["split"]): entry["path"] for entry in entries}
        if self.split not in known:
            raise self._missing(f"has the splits {_listed(known)}")
        patterns = known[self.split]
        return [patterns] if isinstance(patterns, str) else list(patterns)

    def _matching(self, patterns: Iterable[str], names: Sequence[str]) -> list[str]:
        """Return the Parquet files that match a pattern, in the order of the patterns."""
        chosen: dict[str, None] = {}
        for pattern in patterns:
            match = re.compile(glob_translate(pattern)).fullmatch
            matching = [name for name in names if match(name)]
            parquet = [name for name in matching if _is_parquet(name)]
            if matching and not parquet:
                files = f"{pattern!r}, which are no Parquet files ({_listed(matching)})"
                raise self._missing(f"has the split in {files}; {_CONVERSION}")
            chosen |= dict.fromkeys(parquet)
        return list(chosen)

    def _by_name(self, paths: list[str], config: str | None) -> list[str]:
        """Return the paths whose folders or names have the name of the split.

        Without any split in any path all files are those of the split ``train``.
        """
        if config is not None:
            paths = [path for path in paths if config in path.split("/")]
        named = [path for path in paths if _names(path, self.split)]
        if named or self.split != "train":
            return named
        return (
            paths if not any(_names(path, name) for path in paths for name in _OTHER_NAMES) else []
        )

    def _unreachable(self, error: Exception) -> StreamSourceError:
        """Return the error of a failed call, with its remedy."""
        if isinstance(error, RevisionNotFoundError):
            reason = f"has no revision {self.revision!r}"
        elif status_of(error) in DENIED:
            reason = (
                "is private, gated or missing, and no folder here: check the name, accept the "
                "terms of the dataset on the Hub, and set HF_TOKEN to a token that may read it"
            )
        else:
            reason = f"cannot be listed: {shown(error)}; check the network"
        return self._missing(reason)

    def _missing(self, reason: str) -> StreamSourceError:
        where = f"{self.repo}, split {self.split}"
        config = "" if self.config is None else f", config {self.config}"
        return StreamSourceError(f"hf://datasets/{where}{config}", reason)


def _file_of(entry: RepoFile) -> HubFile:
    digest = entry.lfs.sha256 if entry.lfs else entry.blob_id
    return HubFile(entry.path, entry.size, digest)


def _is_parquet(path: str) -> bool:
    return path.endswith(".parquet")


def _names(path: str, split: str) -> bool:
    """Return whether a part of a path has the name of a split, as a word of its own."""
    return any(
        re.search(rf"(?<![a-zA-Z0-9]){re.escape(name)}(?![a-zA-Z0-9])", path)
        for name in _OTHER_NAMES.get(split, (split,))
    )


def _listed(names: Iterable[str]) -> str:
    known = list(names)
    return ", ".join(known[:8]) + (", ..." if len(known) > 8 else "")


class _HubCursor(ParquetCursor):
    """Read row groups; parse texts of the type JSON, and convert media to files."""

    @override
    def columns(self, schema: pa.Schema) -> RecordColumns:
        stage = self.stage
        return RecordColumns(
            self.location.path,
            schema,
            stage.columns,
            stage.missing,
            parse_json=True,
            conversions=media_columns(schema),
        )


@dataclass(eq=False)
class HubRows(ParquetFiles):
    """Yield the rows of the Parquet files of a split."""

    name: ClassVar[str] = "read_huggingface"
    file_cursor: ClassVar[type[FileCursor]] = _HubCursor
