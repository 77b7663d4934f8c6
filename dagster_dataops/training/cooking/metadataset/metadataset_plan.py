"""Resolve a split of a metadataset: follow nested files down to the datasets.

Only YAML files are read; the datasets are not opened.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import yaml

from dagster_dataops.errors import InputError, MetadatasetError
from dagster_dataops.operators.options.signature import nearest
from dagster_dataops.training.cooking.metadataset.metadataset_grammar import (
    Entry,
    Join,
    Kind,
    Mixture,
    Reference,
    Subset,
    splits_of,
)
from dagster_dataops.training.cooking.metadataset.metadataset_nodes import YamlNode, parse
from dagster_dataops.training.filestores.energon.energon_layout import read_text
from dagster_dataops.training.filestores.store_opening import absolute

YAML_SUFFIXES: Final = (".yaml", ".yml")
GIVEN: Final = "<metadataset>"  # the file in messages if a dict was given


@dataclass(frozen=True, kw_only=True)
class PlannedDataset:
    """A dataset of a metadataset, with the settings of all files that lead to it.

    Attributes:
        reference: Its node of the innermost YAML file; the first one of a join.
        place: The place of its path in that file.
        path: Its absolute path or URL; the key of an asset.
        base: The folder or URL that the paths of its auxiliary stores are relative to.
        split_part: The split to read.
        subflavors: The tags of its samples, without those of the dataset itself.
        aux: The texts of its auxiliary stores by name.
        subsets: The ranges of samples to read, each within the one before.
    """

    reference: Reference = field(repr=False)
    place: YamlNode = field(repr=False)
    path: str
    base: str
    split_part: str
    subflavors: Mapping[str, Any]
    aux: Mapping[str, YamlNode]
    subsets: tuple[Subset, ...]

    def rows(self, count: int) -> range:
        """Return the numbers of the samples to read, if the dataset has ``count``."""
        rows = range(count)
        for subset in self.subsets:
            size = len(rows)
            part = subset.within(size)
            if part.stop > size:
                reason = f"the range ends at sample {part.stop:,}, and {self.path} has {size:,}"
                raise subset.place.error(reason)
            rows = rows[part]
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


def datasets_in(planned: Planned) -> Iterator[PlannedDataset]:
    """Yield the datasets of a plan, in the order of the files."""
    if isinstance(planned, PlannedDataset):
        yield planned
        return
    parts = planned.parts.values() if isinstance(planned, PlannedJoin) else planned.parts
    for part in parts:
        yield from datasets_in(part)


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
    return _of_file(source, _Outer(training, split), None)


@dataclass(frozen=True)
class _Outer:
    """Settings of the files and lists around an entry."""

    training: bool
    split: str
    base: str = ""
    subflavors: Mapping[str, Any] = field(default_factory=dict)
    subsets: tuple[Subset, ...] = ()
    trail: tuple[str, ...] = ()


def _of_file(
    source: str | os.PathLike[str] | Mapping[str, Any], outer: _Outer, place: YamlNode | None
) -> Planned:
    """Resolve a split of a file, which is named at a place of another file."""
    document, base = _document(source, place)
    splits = splits_of(document)
    if outer.split not in splits:
        near = nearest(outer.split, list(splits))
        hint = f"did you mean {near!r}?" if near else f"its splits: {', '.join(splits)}"
        reason = f"{document.file} has no split {outer.split!r}; {hint}"
        raise (place or document).error(reason)
    inside = replace(outer, base=base, trail=(*outer.trail, document.file))
    return _planned(splits[outer.split], inside)


def _planned(entry: Entry, outer: _Outer) -> Planned:
    if isinstance(entry, Mixture):
        return _mixture(entry, outer)
    if isinstance(entry, Join):
        return _join(entry, outer)
    if not entry.is_asset and entry.path.lower().endswith(YAML_SUFFIXES):
        return _nested(entry, outer)
    return _dataset(entry, outer)


def _nested(entry: Reference, outer: _Outer) -> Planned:
    path = located(entry.place, entry.path, outer.base)
    if path in outer.trail:
        raise entry.place.error(f"{path} contains itself")
    for name, store in entry.aux.items():
        reason = f"the auxiliary store {name!r} belongs to the dataset in {path}, not to the"
        raise store.error(f"{reason} metadataset")
    inside = replace(
        outer,
        split=entry.split_part or outer.split,
        subflavors={**entry.subflavors, **outer.subflavors},
        subsets=_shares(entry.subset, outer),
    )
    return _of_file(path, inside, entry.place)


def _mixture(entry: Mixture, outer: _Outer) -> Planned:
    inside = replace(outer, subsets=_shares(entry.subset, outer))
    parts = tuple(_planned(part, inside) for part in entry.parts)
    kind: Kind = entry.kind if outer.training else "concat"
    blend = None if kind == "blend" else next(filter(None, map(endless, parts)), None)
    if blend is not None:
        raise blend.place.error(
            f"cannot mix blend with {kind}: a blend never ends; write blend_epochized or concat "
            "here, too"
        )
    return PlannedMixture(place=entry.place, kind=kind, parts=parts, amounts=entry.amounts)


def _shares(subset: Subset | None, outer: _Outer) -> tuple[Subset, ...]:
    """Return the ranges of the datasets below an entry."""
    if subset is not None and subset.is_absolute:
        reason = "numbers of samples are only allowed for a leaf dataset; use shares, such as 20%"
        raise subset.place.error(reason)
    return _ranges(subset, outer)


def _ranges(subset: Subset | None, outer: _Outer) -> tuple[Subset, ...]:
    return outer.subsets if subset is None else (subset, *outer.subsets)


def _join(entry: Join, outer: _Outer) -> PlannedJoin:
    inside = replace(
        outer,
        split=entry.split_part or outer.split,
        subflavors={**entry.subflavors, **outer.subflavors},
        subsets=(),
    )
    for part in entry.parts.values():
        if part.path.lower().endswith(YAML_SUFFIXES):
            raise part.place.error("joins datasets, not metadatasets")
    parts = {name: _dataset(part, inside) for name, part in entry.parts.items()}
    whole = replace(
        next(iter(parts.values())),
        place=entry.place,
        subsets=_ranges(entry.subset, outer),
        aux=_all_stores(parts),
    )
    return PlannedJoin(join=entry, parts=parts, whole=whole)


def _dataset(entry: Reference, outer: _Outer) -> PlannedDataset:
    return PlannedDataset(
        reference=entry,
        place=entry.place,
        path=entry.path if entry.is_asset else located(entry.place, entry.path, outer.base),
        base=outer.base,
        split_part=entry.split_part or outer.split,
        subflavors={**entry.subflavors, **outer.subflavors},
        aux=entry.aux,
        subsets=_ranges(entry.subset, outer),
    )


def _all_stores(parts: Mapping[str, PlannedDataset]) -> dict[str, YamlNode]:
    stores: dict[str, YamlNode] = {}
    for part in parts.values():
        for name, store in part.aux.items():
            if name in stores:
                raise store.error(f"another of the joined datasets has a store {name!r}, too")
            stores[name] = store
    return stores


def located(place: YamlNode, text: str, base: str) -> str:
    """Return the absolute path or URL of a text in a file."""
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
