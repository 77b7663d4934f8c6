"""`MetadatasetLeaf`: a dataset of a metadataset, and how to find those of a stream."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dagster_dataops.streams.core.stage import Stage
from dagster_dataops.streams.core.stage_tree import distinct_stages, with_inputs
from dagster_dataops.training.cooking.blending import Leaf
from dagster_dataops.training.cooking.crude_sources import CrudeSource
from dagster_dataops.training.cooking.joined_samples import entry_of


@dataclass(frozen=True, kw_only=True)
class MetadatasetLeaf:
    """A dataset of a metadataset.

    Attributes:
        name: A short name, different for each dataset of the metadataset.
        path: Its absolute path or URL.
        split_part: Its split that is read.
        weight: Its share in the draws of a blend, in [0, 1]; ``None`` outside a blend.
        wanted: The share of all samples that is wanted, in [0, 1]; ``None`` if none is.
        repetitions: How often it is read, for ``blend_epochized``; otherwise ``None``.
        rows: The samples that are read; ``None`` for all.
        subflavors: The subflavors of its samples.
        aux: The paths and URLs of its auxiliary stores, by name.
        cooker: The name of its cooker; ``None`` without cookers.
        sample_type: The class of its samples, if it declares one; ``None`` for a crude dataset.
        file: The YAML file that names it.
        line: The line there, counted from 1.
        is_asset: Whether ``path`` is the key of an asset of this package.
        joined: The datasets that are joined; none if it is a single one.
        contents: A sentence about its samples.
    """

    name: str
    path: str
    split_part: str
    weight: float | None = None
    wanted: float | None = None
    repetitions: float | None = None
    rows: range | None = None
    subflavors: Mapping[str, Any] = field(default_factory=dict)
    aux: Mapping[str, str] = field(default_factory=dict)
    cooker: str | None = None
    sample_type: str | None = None
    file: str = ""
    line: int = 0
    is_asset: bool = False
    joined: tuple["MetadatasetLeaf", ...] = ()
    contents: str = ""

    @property
    def datasets(self) -> "tuple[MetadatasetLeaf, ...]":
        """The datasets that it is made of: itself, or those that are joined."""
        return self.joined or (self,)

    def facts(self) -> dict[str, Any]:
        """Return the facts of `Manifest.leaves`, without the number of samples."""
        return {"name": self.name, "path": self.path, "wanted": self.wanted, "cooker": self.cooker}

    @property
    def title(self) -> str:
        """The dataset in messages, such as ``/data/a (train of mix.yaml:6)``."""
        file = self.file.rpartition("/")[2]
        return f"{self.path} ({self.split_part} of {file}:{self.line})"


def with_leaves(stage: Stage, leaves: Mapping[str, MetadatasetLeaf]) -> Stage:
    """Return a stage whose datasets have other descriptions, by name."""
    renamed: dict[Stage, Stage] = {}
    for member in distinct_stages(stage):
        if isinstance(member, Leaf):
            renamed[member] = replace(member, about=leaves[member.about.name])
        else:
            renamed[member] = with_inputs(member, renamed)
    return renamed[stage]


def with_entries(stage: Stage) -> Stage:
    """Return a stage whose restore keys name the entry where datasets with one path differ."""
    entries: dict[str, dict[Leaf, str]] = {}
    for member in distinct_stages(stage):
        if isinstance(member, Leaf):
            (source,) = (member for member in member.ordered() if isinstance(member, CrudeSource))
            entries.setdefault(source.place, {})[member] = entry_of(source)
    named = {
        leaf: entry
        for leaves in entries.values()
        if len(set(leaves.values())) > 1
        for leaf, entry in leaves.items()
    }
    filled: dict[Stage, Stage] = {}
    for member in distinct_stages(stage):
        copy = with_inputs(member, filled)
        if isinstance(copy, Leaf) and member in named:
            copy = replace(copy, entry=named[member])
        filled[member] = copy
    return filled[stage]
