"""Resolve a split of a metadataset: follow nested files down to the datasets.

Only YAML files are read; the datasets are not opened.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import yaml

from dagster_dataops.cooking.metadataset.metadataset_grammar import (
    Entry,
    Join,
    Kind,
    Mixture,
    Reference,
    Subset,
    splits_of,
)
from dagster_dataops.cooking.metadataset.metadataset_nodes import YamlNode, parse
from dagster_dataops.errors import InputError, MetadatasetError
from dagster_dataops.filestores.energon_layout import read_text
from dagster_dataops.filestores.store_opening import absolute
from dagster_dataops.operators.options.signature import nearest

YAML_SUFFIXES: Final = (".yaml", ".yml")
GIVEN: Final = "<metadataset>"  # the file in messages if a dict was given


@dataclass(frozen=True, kw_only=True)
class PlannedDataset:
    """A dataset of a metadataset, with the settings of all files that lead to it.

    Attributes:
        place: The place of its path in the innermost YAML file.
        path: Its absolute path or URL; the key of the asset if ``is_asset``.
        base: The folder or URL that the paths of its auxiliary stores are relative to.
        split_part: The split to read.
        subflavors: The tags of its samples, without those of the dataset itself.
        aux: The texts of its auxiliary stores by name.
        subsets: The ranges of samples to read, each within the one before.
        weight: The product of its weights, each divided by their sum; ``None`` outside a blend.
        repetitions: The product of its repetitions; ``None`` outside ``blend_epochized``.
        is_asset: See `Reference`.
        dataset_config: See `Reference`.
        split_config: See `Reference`.
        shuffle_over_epochs_multiplier: The product over all files; ``None`` for no shuffling.
        choices: See `Reference`.
    """

    place: YamlNode = field(repr=False)
    path: str
    base: str
    split_part: str
    subflavors: Mapping[str, Any]
    aux: Mapping[str, YamlNode]
    subsets: tuple[Subset, ...]
    weight: float | None = None
    repetitions: float | None = None
    is_asset: bool = False
    dataset_config: str | None = None
    split_config: str | None = None
    shuffle_over_epochs_multiplier: int | None = 1
    choices: Mapping[str, YamlNode] = field(default_factory=dict, repr=False)

    def rows(self, count: int) -> range:
        """Return the numbers of the samples to read, if the dataset has ``count``.

        Raises:
            MetadatasetError: A range ends behind the last sample.
        """
        rows = range(count)
        for subset in self.subsets:
            end = subset.end.of(len(rows))
            if end > len(rows):
                reason = f"the range ends at sample {end:,}, and {self.path} has {len(rows):,}"
                raise subset.place.error(reason)
            rows = rows[subset.start.of(len(rows)) : end]
        return rows


@dataclass(frozen=True, kw_only=True)
class PlannedMixture:
    """Datasets that are combined.

    Attributes:
        place: Its place in the YAML.
        kind: How they are combined.
        parts: The datasets and mixtures.
        amounts: The weight or the repetitions of each.
    """

    place: YamlNode = field(repr=False)
    kind: Kind
    parts: tuple["Planned", ...]
    amounts: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class PlannedJoin:
    """Datasets that are joined by key.

    Attributes:
        join: The grammar's node.
        parts: The datasets by name.
        whole: What is common to the joined samples: subsets, the stores of all datasets, and the
            entries of the first dataset.
    """

    join: Join = field(repr=False)
    parts: Mapping[str, PlannedDataset]
    whole: PlannedDataset


Planned: TypeAlias = PlannedDataset | PlannedMixture | PlannedJoin


def endless(planned: Planned) -> "PlannedMixture | None":
    """Return the blend that makes a plan endless; ``None`` if it ends."""
    if not isinstance(planned, PlannedMixture):
        return None
    if planned.kind == "blend":
        return planned
    return next(filter(None, map(endless, planned.parts)), None)


def plan(
    source: str | os.PathLike[str] | Mapping[str, Any], split: str, *, training: bool
) -> Planned:
    """Resolve a split of a metadataset.

    Args:
        source: The path or URL of a YAML file, or its content.
        split: The split.
        training: Whether weights and repetitions count. Otherwise every dataset is read once, in
            the order of the file.

    Raises:
        MetadatasetError: A file is not a valid metadataset, or has no such split.
    """
    return _Resolver(training=training).file(source, split, None)


@dataclass(frozen=True)
class _Outer:
    """Settings of the files and lists around an entry."""

    split: str
    base: str
    subflavors: Mapping[str, Any]
    subsets: tuple[Subset, ...] = ()
    multiplier: int | None = 1
    trail: tuple[str, ...] = ()


class _Resolver:
    """Follows the entries of a metadataset.

    Args:
        training: See `plan`.
    """

    def __init__(self, *, training: bool) -> None:
        self._training = training

    def file(
        self,
        source: str | os.PathLike[str] | Mapping[str, Any],
        split: str,
        outer: _Outer | None,
        place: YamlNode | None = None,
    ) -> Planned:
        """Resolve a split of a file."""
        document, base = _document(source, place)
        splits = splits_of(document)
        if split not in splits:
            near = nearest(split, list(splits))
            hint = f"did you mean {near!r}?" if near else f"its splits: {', '.join(splits)}"
            where = document if place is None else place
            raise where.error(f"{document.file} has no split {split!r}; {hint}")
        trail = (*(outer.trail if outer else ()), document.file)
        outer = outer or _Outer(split, base, {})
        return self._entry(splits[split], replace(outer, split=split, base=base, trail=trail))

    def _entry(self, entry: Entry, outer: _Outer) -> Planned:
        if isinstance(entry, Mixture):
            return self._mixture(entry, outer)
        if isinstance(entry, Join):
            return self._join(entry, outer)
        if not entry.is_asset and entry.path.lower().endswith(YAML_SUFFIXES):
            return self._nested(entry, outer)
        return _dataset(entry, outer)

    def _nested(self, entry: Reference, outer: _Outer) -> Planned:
        path = located(entry.place, entry.path, outer.base)
        if path in outer.trail:
            raise entry.place.error(f"{path} contains itself")
        for name, store in entry.aux.items():
            reason = f"the auxiliary store {name!r} belongs to the dataset in {path}, not to the"
            raise store.error(f"{reason} metadataset")
        if entry.subset is not None and entry.subset.is_absolute:
            reason = "numbers of samples select from a leaf dataset only; use shares, such as 20%"
            raise entry.subset.place.error(reason)
        inside = replace(
            outer,
            subflavors={**entry.subflavors, **outer.subflavors},
            subsets=(*_given(entry.subset), *outer.subsets),
            multiplier=_multiplied(entry.shuffle_over_epochs_multiplier, outer.multiplier),
        )
        return self.file(path, entry.split_part or outer.split, inside, entry.place)

    def _mixture(self, entry: Mixture, outer: _Outer) -> Planned:
        if entry.subset is not None and entry.subset.is_absolute:
            reason = "numbers of samples select from a leaf dataset only; use shares, such as 20%"
            raise entry.subset.place.error(reason)
        inside = replace(outer, subsets=(*_given(entry.subset), *outer.subsets))
        parts = tuple(self._entry(part, inside) for part in entry.parts)
        kind: Kind = entry.kind if self._training else "concat"
        if kind != "blend":
            self._check_ends(kind, parts)
        return PlannedMixture(place=entry.place, kind=kind, parts=parts, amounts=entry.amounts)

    def _check_ends(self, kind: Kind, parts: tuple[Planned, ...]) -> None:
        blend = next(filter(None, map(endless, parts)), None)
        if blend is not None:
            raise blend.place.error(
                f"cannot mix blend with {kind}: a blend never ends; write blend_epochized or "
                "concat here, too"
            )

    def _join(self, entry: Join, outer: _Outer) -> PlannedJoin:
        inside = replace(
            outer,
            split=entry.split_part or outer.split,
            subflavors={**entry.subflavors, **outer.subflavors},
        )
        parts = {name: self._leaf(part, inside) for name, part in entry.parts.items()}
        primary = next(iter(parts.values()))
        subsets = (*_given(entry.subset), *outer.subsets)
        whole = replace(primary, place=entry.place, subsets=subsets, aux=_all_stores(parts))
        return PlannedJoin(join=entry, parts=parts, whole=whole)

    def _leaf(self, part: Reference, outer: _Outer) -> PlannedDataset:
        if part.path.lower().endswith(YAML_SUFFIXES):
            raise part.place.error("joins datasets, not metadatasets")
        return _dataset(part, replace(outer, subsets=()))


def _dataset(entry: Reference, outer: _Outer) -> PlannedDataset:
    return PlannedDataset(
        place=entry.place,
        path=entry.path if entry.is_asset else located(entry.place, entry.path, outer.base),
        base=outer.base,
        split_part=entry.split_part or outer.split,
        subflavors={**entry.subflavors, **outer.subflavors},
        aux=entry.aux,
        subsets=(*_given(entry.subset), *outer.subsets),
        is_asset=entry.is_asset,
        dataset_config=entry.dataset_config,
        split_config=entry.split_config,
        shuffle_over_epochs_multiplier=_multiplied(
            entry.shuffle_over_epochs_multiplier, outer.multiplier
        ),
        choices=entry.choices,
    )


def _all_stores(parts: Mapping[str, PlannedDataset]) -> dict[str, YamlNode]:
    found: dict[str, YamlNode] = {}
    for part in parts.values():
        for name, store in part.aux.items():
            if name in found:
                raise store.error(f"another of the joined datasets has a store {name!r}, too")
            found[name] = store
    return found


def _given(subset: Subset | None) -> tuple[Subset, ...]:
    return () if subset is None else (subset,)


def _multiplied(first: int | None, second: int | None) -> int | None:
    if first is None or second is None:
        return None
    return -1 if -1 in (first, second) else first * second


def located(place: YamlNode, text: str, base: str) -> str:
    """Return the absolute path or URL of a text in a file.

    Raises:
        MetadatasetError: The scheme of the URL is unknown.
    """
    try:
        return absolute(text, base)
    except InputError as error:
        raise place.error(str(error)) from error


def _document(
    source: str | os.PathLike[str] | Mapping[str, Any], place: YamlNode | None
) -> tuple[YamlNode, str]:
    """Return the parsed file, and its folder or URL."""
    if isinstance(source, Mapping):
        text = yaml.safe_dump(dict(source), sort_keys=False)
        return parse(text, GIVEN), str(Path.cwd())
    path = os.fspath(source)
    try:
        path = absolute(path)
        text = read_text(path, {})
    except (InputError, UnicodeDecodeError) as error:
        if place is not None:
            raise place.error(str(error)) from error
        raise MetadatasetError(path, 1, "", str(error)) from error
    return parse(text, path), path.rpartition("/")[0]
