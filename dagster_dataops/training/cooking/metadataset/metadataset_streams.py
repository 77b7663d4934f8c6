"""``metadataset``: the stream of a split of a metadataset, and the datasets that it reads."""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from dagster_dataops.errors import CookerError
from dagster_dataops.foundation.hashing.values import digest
from dagster_dataops.foundation.override import override
from dagster_dataops.streams.core.arguments import check_seed
from dagster_dataops.streams.core.stage import Stage
from dagster_dataops.training.cooking.cookers import (
    Cooker,
    Cookers,
    chosen_cooker,
    listed_cookers,
)
from dagster_dataops.training.cooking.crude_streams import CrudeStream
from dagster_dataops.training.cooking.metadataset.metadataset_leaves import (
    MetadatasetLeaf,
    with_leaves,
)
from dagster_dataops.training.cooking.metadataset.metadataset_plan import datasets_in, plan
from dagster_dataops.training.cooking.metadataset.metadataset_stages import (
    built_stages,
    store_address,
)
from dagster_dataops.training.decoding.sample_decoder import Decoder

_EVALUATION: Final = ("val", "test")


class Metadataset(CrudeStream):
    """The samples of a split of a metadataset, or the records that cookers made of them.

    Args:
        stage: The last stage.
        title: The name of the metadataset.
        leaves: See `leaves`.
    """

    def __init__(self, stage: Stage, title: str, leaves: tuple[MetadatasetLeaf, ...]) -> None:
        super().__init__(stage)
        self._title, self._leaves = title, leaves

    @property
    def leaves(self) -> tuple[MetadatasetLeaf, ...]:
        """The datasets that are read, in the order of the files."""
        return self._leaves

    @property
    @override
    def name(self) -> str:
        return f"{self._title}_index" if self.is_crude else self._title

    @override
    def extended(self, stage: Stage) -> "Metadataset":
        return Metadataset(stage, self._title, self._leaves)

    @override
    def cook(
        self, cookers: Cookers = (), cache_pool: Any = None, *, decoder: Decoder = "auto"
    ) -> "Metadataset":
        offered = listed_cookers(cookers)
        self._check_distinct()
        leaves = tuple(
            replace(leaf, cooker=leaf.sample_type or _cooker_of(leaf, offered))
            for leaf in self._leaves
        )
        stage = with_leaves(self.stage, {leaf.name: leaf for leaf in leaves})
        cooked = CrudeStream(stage).cook(offered, cache_pool, decoder=decoder)
        return Metadataset(cooked.stage, self._title, leaves)

    def _check_distinct(self) -> None:
        """Check that datasets with other stores have another path or other subflavors."""
        known: dict[tuple[str, str], MetadatasetLeaf] = {}
        for leaf in self._leaves:
            first = known.setdefault((leaf.path, digest(leaf.subflavors)), leaf)
            if first.aux != leaf.aux:
                reason = (
                    f"{first.title} and {leaf.title} have other auxiliary stores, but the same "
                    "subflavors; give one of them another subflavor"
                )
                raise CookerError(reason)


def _cooker_of(leaf: MetadatasetLeaf, offered: tuple[Cooker, ...]) -> str:
    return chosen_cooker(offered, leaf.subflavors, leaf.aux, leaf.title).name


def metadataset(
    path: str | os.PathLike[str] | Mapping[str, Any],
    *,
    split: str = "train",
    cookers: Cookers | None = None,
    seed: int | None = None,
    training: bool | None = None,
    cache_pool: Any = None,
) -> Metadataset:
    """Return the stream of a split of a metadataset, which is a YAML file of datasets.

    A ``blend`` never ends; `take` ends it. Its order depends only on the seed, and its position has
    a fixed size. Files that are missing, and misspelt keys, are errors here, which name file, line
    and key.

    Args:
        path: The path or URL of the YAML file, or its content as a dict.
        split: The split.
        cookers: Cookers or functions, as for `CrudeStream.cook`; ``None`` for crude samples.
        seed: The seed of all draws; ``None`` to derive it from the seed of the stream.
        training: Whether weights and repetitions count. Otherwise every dataset is read once, in
            the order of the file. By default only the splits ``val`` and ``test`` are read so.
        cache_pool: The cache pool for cookers that need one.

    Raises:
        MetadatasetError: The file is not a valid metadataset, or names files that do not exist.
        CookerError: No cooker fits a dataset, or its parameters do not.
    """
    check_seed("metadataset", seed)
    is_training = split not in _EVALUATION if training is None else training
    planned = plan(path, split, training=is_training)
    folder = "" if isinstance(path, Mapping) else os.path.dirname(path)  # noqa: PTH120 - URLs
    stage, leaves = built_stages(planned, seed, folder)
    title = "metadataset" if isinstance(path, Mapping) else os.fspath(path).rpartition("/")[2]
    stream = Metadataset(stage, title.partition(".")[0], leaves)
    return stream if cookers is None else stream.cook(cookers, cache_pool)


def traverse_metadataset(
    path: str | os.PathLike[str] | Mapping[str, Any], *, split_part: str = "train"
) -> list[MetadatasetLeaf]:
    """Return the datasets of a split of a metadataset, with those of nested files, in order.

    Only YAML files are read, so datasets and stores need not exist. ``subflavors`` are those of the
    YAML files, without those of the datasets themselves. Joined datasets are listed one by one.

    Args:
        path: The path or URL of the YAML file, or its content as a dict.
        split_part: The split.

    Raises:
        MetadatasetError: A file is not a valid metadataset, or has no such split.

    Example:
        >>> [leaf.path for leaf in traverse_metadataset("mix.yaml")]
        ['/data/captions', '/data/web']
    """
    planned = plan(path, split_part, training=False)
    return [
        MetadatasetLeaf(
            name=dataset.reference.path,
            path=dataset.path,
            split_part=dataset.split_part,
            subflavors=dict(dataset.subflavors),
            aux={name: store_address(node, dataset.base) for name, node in dataset.aux.items()},
            file=dataset.place.file,
            line=dataset.place.line,
            is_asset=dataset.reference.is_asset,
        )
        for dataset in datasets_in(planned)
    ]
