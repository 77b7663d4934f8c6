"""``crude`` and ``read_tar``: streams of samples that were not decoded yet."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any, Final, Literal, TypeAlias

from dagster_dataops.errors import InputError, StreamArgumentError, StreamDefinitionError
from dagster_dataops.foundation.override import override
from dagster_dataops.streams.core.sequences import fresh
from dagster_dataops.streams.core.stage import Stage
from dagster_dataops.streams.core.stage_tree import distinct_stages, with_inputs
from dagster_dataops.streams.data_pipeline import DataPipeline, DataPipelineBuilder
from dagster_dataops.streams.factories import block_bytes
from dagster_dataops.streams.files.file_sets import FileSet, GivenPaths
from dagster_dataops.streams.files.remote import is_url
from dagster_dataops.streams.operations import Operations
from dagster_dataops.streams.stages.concatenating import ConcatStage
from dagster_dataops.streams.stages.mapping import Map
from dagster_dataops.streams.stages.prefetching import Prefetch
from dagster_dataops.streams.stages.repeating import Repeat
from dagster_dataops.streams.stages.round_robin import RoundRobinStage
from dagster_dataops.streams.stages.sampling import SampleStage
from dagster_dataops.streams.stages.shuffling import Shuffle
from dagster_dataops.streams.stages.taking import Shard, Skip, Take
from dagster_dataops.training.cooking.blending import Blend, BlendEpochized, Leaf, RowRange
from dagster_dataops.training.cooking.cook_stage import Cook, crude_sources
from dagster_dataops.training.cooking.cookers import Cookers, listed_cookers
from dagster_dataops.training.cooking.crude_lines import CrudeFolder, CrudeLines
from dagster_dataops.training.cooking.crude_sources import CrudeSource, SourceLabels
from dagster_dataops.training.cooking.crude_tars import BLOCK_BYTES, TarSamples
from dagster_dataops.training.decoding.sample_decoder import Decoder
from dagster_dataops.training.filestores.energon.energon_layout import (
    ShardedDataset,
    exists,
    is_prepared,
    prepared_dataset,
    sharded_dataset,
)
from dagster_dataops.training.filestores.file_references import with_file_references
from dagster_dataops.training.filestores.folder_store import FolderStore
from dagster_dataops.training.filestores.store import FileStore
from dagster_dataops.training.filestores.store_opening import absolute
from dagster_dataops.training.filestores.stores_of_samples import absolute_aux
from dagster_dataops.training.filestores.tar_store import TarStore
from dagster_dataops.training.filestores.tars.shard_scan import TarShard

Duplicates: TypeAlias = Literal["error", "first", "last"]
Aux: TypeAlias = Mapping[str, str | os.PathLike[str] | FileStore]

_YAML_SUFFIXES: Final = (".yaml", ".yml")
_METADATASETS: Final = "dagster_dataops.training.cooking.metadataset.metadataset_streams"
DUPLICATES: Final = ("error", "first", "last")
_CHOOSING: Final = (  # stages that choose samples by position alone
    *(ConcatStage, Prefetch, Repeat, RoundRobinStage, SampleStage, Shuffle, Shard),
    *(Skip, Take, Blend, BlendEpochized, Leaf, RowRange),
)


class _OfCrudeSources:
    """The crude sources of a stream."""

    stage: Stage

    @property
    def sources(self) -> list[CrudeSource]:
        """The sources whose samples are not cooked yet, and have bytes."""
        return _with_bytes(self.stage)

    @property
    def is_crude(self) -> bool:
        """Whether the items are samples with bytes, which cannot be written as records."""
        return bool(self.sources)

    @property
    def name(self) -> str:
        """The name of the stream as an asset."""
        crude_ones = self.sources
        source = crude_ones or [
            member for member in self.stage.ordered() if isinstance(member, CrudeSource)
        ]
        place = source[0].place.rstrip("/").rpartition("/")[2].partition(".")[0]
        return f"{place}_index" if crude_ones else place


def _with_bytes(stage: Stage) -> list[CrudeSource]:
    if isinstance(stage, Map) and with_file_references in stage.functions:
        return []
    if isinstance(stage, (Cook, CrudeSource)):
        return crude_sources(stage)
    return [source for source_stage in stage.inputs for source in _with_bytes(source_stage)]


class CrudeStream(_OfCrudeSources, DataPipelineBuilder):
    """A stream of crude samples; every operation of streams returns a new one.

    A sample is a dict: its parts as bytes by suffix, and ``__key__``, ``__restore_key__``,
    ``__shard__``, ``__sources__`` and ``__subflavors__``.

    Args:
        stage: The last stage.
        digests: Whether the index has the digest of each part.
    """

    def __init__(self, stage: Stage, *, digests: bool = False) -> None:
        super().__init__(stage)
        self._digests = digests

    @override
    def extended(self, stage: Stage) -> "CrudeStream":
        return CrudeStream(stage, digests=self._digests)

    def cook(
        self, cookers: Cookers = (), cache_pool: Any = None, *, decoder: Decoder = "auto"
    ) -> "CrudeStream":
        """Make a record of each sample.

        The first cooker whose subflavors the dataset has is chosen now, and its parameters are
        checked; nothing is read. A dataset that declares its ``sample_type`` needs no cooker.

        Args:
            cookers: Cookers or functions, in order.
            cache_pool: The cache pool for cookers that need one.
            decoder: Makes values of the bytes of parts and of files of stores, such as a
                `SampleDecoder`; ``None`` for bytes. ``auto``: bytes for cookers, values for
                datasets that declare their ``sample_type``.

        Raises:
            CookerError: No cooker fits, or its parameters do not.
        """
        return self.then(Cook(self.stage, listed_cookers(cookers), cache_pool, decoder))

    @override
    def _finished(self) -> "type[CrudePipeline]":
        return CrudePipeline

    def index(self) -> "IndexStream":
        """Return the stream of the lines of the index in place of the samples.

        A line has the places of the parts of a sample: ``key``, ``dataset``, ``shard``, ``index``,
        ``at`` and ``parts`` (offset and size by name). A crude source is published in this form.

        Raises:
            StreamDefinitionError: A stage needs the samples themselves.
        """
        return IndexStream(_with_rows(self.stage, digests=self._digests), self.name)

    @override
    def as_written(self) -> Operations:
        return self.index() if self.is_crude else self


class CrudePipeline(_OfCrudeSources, DataPipeline):
    """A complete stream of crude samples, or of records that were cooked in it."""

    @override
    def as_written(self) -> Operations:
        if not self.is_crude:
            return self
        return DataPipeline(
            _with_rows(self.stage, digests=False),
            on_error=self.on_error,
            max_errors=self._max_errors,
            quarantine=self._path,
            seed=self.seed,
        )


class IndexStream(DataPipelineBuilder):
    """The lines of the index of a crude stream."""

    def __init__(self, stage: Stage, name: str) -> None:
        super().__init__(stage)
        self.name = name

    @override
    def extended(self, stage: Stage) -> "IndexStream":
        return IndexStream(stage, self.name)


def _with_rows(stage: Stage, *, digests: bool) -> Stage:
    indexed: dict[Stage, Stage] = {}
    for member in distinct_stages(stage):
        if isinstance(member, CrudeSource):
            indexed[member] = member.index_source(digests=digests)
        elif isinstance(member, _CHOOSING):
            indexed[member] = with_inputs(member, indexed)
        else:
            reason = (
                "the source is crude: only its index can be written, as samples hold bytes; "
                f"cook it first: crude(...).cook(cookers), then {member.name}"
            )
            raise StreamDefinitionError(member.name, reason)
    return indexed[stage]


def crude(  # noqa: PLR0913 - the options of a dataset
    path: str | os.PathLike[str],
    *,
    split: str | None = "train",
    subflavors: Mapping[str, Any] | None = None,
    aux: Aux | None = None,
    duplicates: Duplicates = "error",
    digests: bool = False,
    block_size: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    dataset_config: str = "dataset.yaml",
    split_config: str | None = None,
    seed: int | None = None,
) -> CrudeStream:
    """Return the crude samples of a dataset: dicts with the bytes of each part by suffix.

    Adjacent files of a tar archive with the same name up to the first dot are one sample. Nothing
    is copied. When the samples are first read, an index is made from the headers of the shards,
    unless Energon has prepared one; it is kept in the cache folder.

    The ``sample_loader`` and ``part_filter`` of a ``dataset.yaml`` name Python files beside it.
    `CrudeStream.cook` runs their code: read such a dataset only if you trust it.

    Args:
        path: A folder of tar shards, prepared by Energon or not; a pattern such as
            ``shards/*.tar``; one tar file; a jsonl file, whose lines are the part ``json``; or a
            folder of files. Folders and patterns can be URLs. The YAML file of a metadataset is
            read as `metadataset` reads it; only ``split`` and ``seed`` apply to it. Compressed
            shards, such as ``.tar.gz``, ``.tgz`` or ``.tar.zst``, are for reading in order: to read
            one sample, a shard is decompressed up to it.
        split: The part of the split of a prepared dataset; ``None`` for all shards.
        subflavors: Subflavors, which add to those of the dataset and replace them.
        aux: Auxiliary stores by name: paths, URLs or opened stores. A cooker has a parameter for
            each.
        duplicates: Which of two samples with one key to keep, ``first`` or ``last``; ``error``
            refuses the dataset.
        digests: Whether the index has the digest of each part; indexing then reads all bytes.
        block_size: The number of bytes to read at once.
        storage_options: Arguments of fsspec's file systems, for example credentials.
        dataset_config: The file in ``.nv-meta`` with the subflavors.
        split_config: The file in ``.nv-meta`` with the split; ``None`` for that which the file
            ``dataset_config`` names as its ``split_config``, or ``split.yaml``.
        seed: The seed of the draws of a metadataset.

    Raises:
        InputError: There is no such dataset, or a file of it is invalid.
        MetadatasetError: The YAML file is not a valid metadataset.
        StreamDefinitionError: An argument is invalid, or there is no such part of the split.
    """
    location, options = os.fspath(path), dict(storage_options or {})
    if duplicates not in DUPLICATES:
        reason = f"duplicates is {duplicates!r}; it must be one of {', '.join(DUPLICATES)}"
        raise StreamDefinitionError("crude", reason)
    place = absolute(location)
    if place.lower().endswith(_YAML_SUFFIXES):
        return _of_metadataset(
            place, split or "train", seed, {"aux": aux, "subflavors": subflavors}
        )
    if location.startswith("filesystem://"):
        place = absolute(location.removeprefix("filesystem://"))
    wild = any(sign in place for sign in "*?[")
    if not wild and not exists(place, options):
        raise InputError(place, "there is no such file or folder")
    labels = SourceLabels(dict(subflavors or {}), absolute_aux(aux))
    data: ShardedDataset | None
    if place.endswith(".jsonl") and not is_url(place):
        return CrudeStream(CrudeLines(labels, place), digests=digests)
    if not wild and is_prepared(place, options):
        data = prepared_dataset(
            place, split, options, dataset_config=dataset_config, split_config=split_config
        )
    else:
        data = sharded_dataset(place, options)
    if data is None:
        return CrudeStream(CrudeFolder(labels, FolderStore(place, options)), digests=digests)
    size = BLOCK_BYTES if block_size is None else block_bytes("crude", block_size)
    return CrudeStream(_tar_samples(data, labels, duplicates, size), digests=digests)


def _tar_samples(
    data: ShardedDataset, labels: SourceLabels, duplicates: Duplicates, block_size: int
) -> TarSamples:
    """Return the source of a dataset; if it declares its samples, only with the parts they need."""
    declared = data.declared
    subflavors = fresh({**data.subflavors, **labels.subflavors})
    labels = replace(labels, subflavors=subflavors, declared=declared)
    if declared is not None and declared.parts is not None:
        data = replace(data, parts=declared.parts)
    return TarSamples(labels, TarStore(data, duplicates), checked=True, block_size=block_size)


def _of_metadataset(
    place: str, split: str, seed: int | None, others: Mapping[str, object]
) -> CrudeStream:
    option = next((name for name, value in others.items() if value), None)
    if option is not None:
        reason = f"{option} of the datasets of a metadataset belongs to its YAML file, {place}"
        raise StreamDefinitionError("crude", reason)
    module = import_module(_METADATASETS)  # it imports this module
    stream: CrudeStream = module.metadataset(place, split=split, seed=seed)
    return stream


def read_tar(
    path: GivenPaths,
    *,
    subflavors: Mapping[str, Any] | None = None,
    parts: Iterable[str] | None = None,
    block_size: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> CrudeStream:
    """Read tar files from start to end: adjacent files with one key are a sample.

    Unlike `crude`, it makes no index: it does not look for keys that occur in two files, and
    reads in order only.

    Args:
        path: A file, a list of files, a pattern or a folder; each can be a URL. The compression
            is chosen by the suffix, such as ``.tar.gz``.
        subflavors: Subflavors of the samples.
        parts: The parts to keep; ``None`` for all.
        block_size: The number of bytes to read at once.
        storage_options: Arguments of fsspec's file systems, for example credentials.

    Raises:
        StreamArgumentError: A path is neither a text nor a ``pathlib.Path``.
        StreamSourceError: A pattern or folder has no files.
    """
    files = FileSet.of("read_tar", path, storage_options=storage_options)
    if isinstance(parts, str):
        raise StreamArgumentError("read_tar", f"parts is {parts!r}; it must be a list of texts")
    folder = absolute(os.path.dirname(files.paths[0]))  # noqa: PTH120 - also URLs
    shards = []
    for file in files.locations():
        location = replace(file, path=absolute(file.path))
        inner = location.path.removeprefix(f"{folder}/")
        shards.append(TarShard(inner, location))
    kept = None if parts is None else frozenset(parts)
    data = ShardedDataset(folder, tuple(shards), {}, kept, frozenset(), files.storage_options)
    size = BLOCK_BYTES if block_size is None else block_bytes("read_tar", block_size)
    labels = SourceLabels(fresh(dict(subflavors or {})))
    return CrudeStream(TarSamples(labels, TarStore(data), checked=False, block_size=size))
