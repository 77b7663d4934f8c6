"""`built_stages`: the stages that read the datasets of a metadataset."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count
from pathlib import Path

from dagster_dataops.checkpoints.folder.manifest import load_result
from dagster_dataops.configuration import config
from dagster_dataops.errors import DataOpsError, InputError, StreamDefinitionError
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.streams.core.item_failures import FailureHandler
from dagster_dataops.streams.core.seeds import derive_seed
from dagster_dataops.streams.core.stage import ReadContext, Stage
from dagster_dataops.streams.core.stage_tree import datasets_of
from dagster_dataops.streams.files.remote import is_url
from dagster_dataops.streams.stages.concatenating import ConcatStage
from dagster_dataops.streams.stages.repeating import Repeat
from dagster_dataops.streams.stages.taking import Take
from dagster_dataops.training.cooking.blending import Blend, BlendEpochized, Leaf, RowRange
from dagster_dataops.training.cooking.crude_sources import CrudeSource, SourceLabels
from dagster_dataops.training.cooking.crude_streams import crude as crude_dataset
from dagster_dataops.training.cooking.crude_tars import TarSamples
from dagster_dataops.training.cooking.joined_samples import JoinedSamples, JoinTable
from dagster_dataops.training.cooking.metadataset.metadataset_leaves import (
    MetadatasetLeaf,
    with_entries,
    with_leaves,
)
from dagster_dataops.training.cooking.metadataset.metadataset_nodes import YamlNode
from dagster_dataops.training.cooking.metadataset.metadataset_plan import (
    YAML_SUFFIXES,
    Planned,
    PlannedDataset,
    PlannedJoin,
    PlannedMixture,
)
from dagster_dataops.training.filestores.store_opening import absolute_store, file_store


@dataclass(frozen=True, kw_only=True)
class _Wanted:
    """The share, or the repetitions, of a dataset in the mixtures around it."""

    weight: float | None = None
    repetitions: float | None = None
    is_counted: bool = False


def built_stages(
    planned: Planned, seed: int | None, folder: str
) -> tuple[Stage, tuple[MetadatasetLeaf, ...]]:
    """Return the stage that reads a metadataset, and the datasets in the order of the files.

    Args:
        planned: The metadataset.
        seed: The seed of all draws; ``None`` to derive it from the stream.
        folder: The folder that names of datasets are relative to.

    Raises:
        MetadatasetError: A dataset or a store cannot be opened, or datasets cannot be joined.
    """
    builder = _Builder(seed, folder)
    stage, _ = builder.built(planned, _Wanted())
    return builder.described(stage)


class _Builder:
    """Builds the stages of a metadataset; see `built_stages`."""

    def __init__(self, seed: int | None, folder: str) -> None:
        self._leaves: list[MetadatasetLeaf] = []
        self._wanted: dict[str, float] = {}
        self._seed, self._folder = seed, os.path.abspath(folder)  # noqa: PTH100 - links stay
        self._mixtures = count()
        self._names: Counter[str] = Counter()
        self._opened_stores: set[str] = set()

    def built(self, planned: Planned, wanted: _Wanted) -> tuple[Stage, int]:
        """Return the stage of a dataset or mixture, and the number of its samples if counted."""
        if isinstance(planned, PlannedDataset):
            return self._dataset(planned, wanted)
        if isinstance(planned, PlannedJoin):
            return self._joined(planned, wanted)
        match planned.kind:
            case "blend":
                return self._blend(planned, wanted), 0
            case "blend_epochized":
                return self._epochized(planned)
        inside = replace(wanted, weight=None)
        parts = [self.built(part, inside) for part in planned.parts]
        return ConcatStage(tuple(stage for stage, _ in parts)), sum(size for _, size in parts)

    def _blend(self, planned: PlannedMixture, wanted: _Wanted) -> Stage:
        seed = self._next_seed()
        parts = [
            (self.built(part, _Wanted(weight=share * (wanted.weight or 1.0)))[0], share)
            for part, share in flattened(planned, 1.0)
        ]
        stages, shares = zip(*parts, strict=True)
        place = f"{planned.place.file}, line {planned.place.line}"
        return Blend(stages, tuple(map(_title, stages)), seed, shares, place)

    def _epochized(self, planned: PlannedMixture) -> tuple[Stage, int]:
        seed = self._next_seed()
        stages, totals = [], []
        for part, amount in zip(planned.parts, planned.amounts, strict=True):
            stage, size = self.built(part, _Wanted(repetitions=amount, is_counted=True))
            total = int(Fraction(str(amount)) * size)
            stages.append(_repeated(stage, size, total))
            totals.append(total)
        for stage, total in zip(stages, totals, strict=True):
            self._want(stage, total / sum(totals) if total else 0.0)
        titles = tuple(map(_title, stages))
        return BlendEpochized(tuple(stages), titles, seed, tuple(totals)), sum(totals)

    def _want(self, stage: Stage, share: float) -> None:
        """Note the wanted share of a stage that reads a single dataset."""
        datasets = datasets_of(stage)
        if len(datasets) == 1:
            self._wanted[datasets[0].name] = share

    def described(self, stage: Stage) -> tuple[Stage, tuple[MetadatasetLeaf, ...]]:
        """Return a stage whose datasets have their wanted shares, and these datasets."""
        leaves = tuple(
            replace(leaf, wanted=self._wanted.get(leaf.name, leaf.weight)) for leaf in self._leaves
        )
        named = with_leaves(stage, {leaf.name: leaf for leaf in leaves})
        return with_entries(named), leaves

    def _next_seed(self) -> int | None:
        number = next(self._mixtures)
        if self._seed is None or not number:
            return self._seed
        return derive_seed(self._seed, "mixture", number)

    def _dataset(self, planned: PlannedDataset, wanted: _Wanted) -> tuple[Stage, int]:
        return self._ranged(self._opened(planned), planned, wanted)

    def _joined(self, planned: PlannedJoin, wanted: _Wanted) -> tuple[Stage, int]:
        join, whole = planned.join, planned.whole
        _check_joiner(planned)
        parts = tuple(self._opened(part, {}) for part in planned.parts.values())
        for part, source in zip(planned.parts.values(), parts, strict=True):
            if source.access(ReadContext(0, FailureHandler())) is None:
                raise part.place.error(_not_joined(source))
        labels = SourceLabels(parts[0].labels.subflavors, self._stores(whole))
        place = join.place.file, join.place.line, join.place.key
        table = JoinTable(parts, tuple(join.nonmatch.values()), place)
        source = JoinedSamples(labels, table, join.joiner)
        joined = tuple(
            self._described(self._name(part), part, stage_, _Wanted())
            for part, stage_ in zip(planned.parts.values(), parts, strict=True)
        )
        return self._ranged(source, whole, wanted, joined)

    def _ranged(
        self,
        source: CrudeSource,
        planned: PlannedDataset,
        wanted: _Wanted,
        joined: tuple[MetadatasetLeaf, ...] = (),
    ) -> tuple[Stage, int]:
        """Return the stage of the samples of a source that are read, and their number."""
        rows = None
        if planned.subsets or wanted.is_counted:
            rows = planned.rows(source.size())
        stage: Stage = source
        if rows is not None and planned.subsets:
            stage = RowRange(source, rows.start, rows.stop)
        name = " + ".join(part.name for part in joined) if joined else self._name(planned)
        about = self._described(name, planned, source, wanted)
        path = source.place if joined else about.path
        about = replace(about, rows=rows, path=path, joined=joined)
        self._leaves.append(about)
        return Leaf(stage, about), len(rows or ())

    def _described(
        self, name: str, planned: PlannedDataset, source: CrudeSource, wanted: _Wanted
    ) -> MetadatasetLeaf:
        return MetadatasetLeaf(
            name=name,
            path=planned.path,
            split_part=planned.split_part,
            weight=wanted.weight,
            repetitions=wanted.repetitions,
            subflavors=source.labels.subflavors,
            aux={name: str(address) for name, address in source.labels.aux.items()},
            file=planned.place.file,
            line=planned.place.line,
            is_asset=planned.reference.is_asset,
            contents=source.contents,
            sample_type=source.sample_type,
        )

    def _name(self, planned: PlannedDataset) -> str:
        name = planned.path
        if not planned.reference.is_asset and not is_url(name):
            name = os.path.relpath(name, self._folder)
        self._names[name] += 1
        return name if self._names[name] == 1 else f"{name}#{self._names[name]}"

    def _stores(self, planned: PlannedDataset) -> dict[str, str]:
        return {name: self._store(text, planned.base) for name, text in planned.aux.items()}

    def _opened(
        self, planned: PlannedDataset, stores: Mapping[str, str] | None = None
    ) -> CrudeSource:
        stores = self._stores(planned) if stores is None else stores
        path = _result_file(planned) if planned.reference.is_asset else planned.path
        try:
            stream = crude_dataset(
                path,
                split=planned.split_part,
                subflavors=planned.subflavors,
                aux=stores,
                dataset_config=planned.reference.dataset_config or "dataset.yaml",
                split_config=planned.reference.split_config,
            )
        except DataOpsError as error:
            raise _cause(planned, error).error(str(error)) from error
        (source,) = stream.sources
        return source

    def _store(self, node: YamlNode, base: str) -> str:
        """Return the address of an auxiliary store, after it was opened once."""
        address = store_address(node, base)
        if address not in self._opened_stores:
            try:
                file_store(address)
            except DataOpsError as error:
                raise node.error(str(error)) from error
            self._opened_stores.add(address)
        return address


def store_address(node: YamlNode, base: str) -> str:
    """Return the absolute address of an auxiliary store, which is not opened."""
    text = node.text()
    if text.lower().endswith(YAML_SUFFIXES):
        raise node.error("an auxiliary store is a dataset or a folder, not a metadataset")
    try:
        return absolute_store(text, base)
    except InputError as error:
        raise node.error(str(error)) from error


def _check_joiner(planned: PlannedJoin) -> None:
    """Check that the joiner of a join can be imported and called."""
    joiner, count = planned.join.joiner, len(planned.parts)
    try:
        joiner.check(count)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        place = planned.join.place.entries()["joiner"]
        reason = f"{joiner.module}.{joiner.name} cannot join {counted(count, 'datasets')}: {error}"
        raise place.error(reason) from error


def flattened(planned: PlannedMixture, share: float) -> Iterator[tuple[Planned, float]]:
    """Yield the parts of a blend with their shares, and those of blends in it."""
    total = sum(planned.amounts)
    for part, amount in zip(planned.parts, planned.amounts, strict=True):
        part_share = share * amount / total
        if isinstance(part, PlannedMixture) and part.kind == "blend":
            yield from flattened(part, part_share)
        else:
            yield part, part_share


def _repeated(stage: Stage, size: int, total: int) -> Stage:
    if total == size:
        return stage
    if total < size:
        return Take(stage, total)
    return Take(Repeat(stage, None, reset_rng=False), total)


def _title(stage: Stage) -> str:
    return " and ".join(leaf.title for leaf in datasets_of(stage))


def _cause(planned: PlannedDataset, error: DataOpsError) -> YamlNode:
    """Return the value for which a dataset cannot be opened."""
    if isinstance(error, StreamDefinitionError):
        return planned.reference.choices.get("split_part", planned.place)
    file = error.source if isinstance(error, InputError) else ""
    configurations = (
        planned.reference.choices.get(name) for name in ("dataset_config", "split_config")
    )
    named = (
        configuration
        for configuration in configurations
        if configuration and file.endswith(f"/{configuration.text()}")
    )
    return next(named, planned.place)


def _result_file(planned: PlannedDataset) -> str:
    """Return the file of an asset's result."""
    *parents, name = planned.path.split("/")
    folder = Path(config.data_process_path, *parents, name)
    try:
        return str(load_result(folder).path)
    except DataOpsError as error:
        raise planned.place.error(str(error)) from error


def _not_joined(source: CrudeSource) -> str:
    """Return the reason why a dataset whose samples cannot be read by number is not joined."""
    shards = source.data.shards if isinstance(source, TarSamples) else ()
    path = next(
        (shard.location.path for shard in shards if not shard.location.is_plain), source.place
    )
    return (
        "cannot be joined: samples are joined by number, which needs local tar shards that are not "
        f"compressed, and {path} is none; copy the dataset to a local folder, decompress its "
        "shards, and write that folder here"
    )
