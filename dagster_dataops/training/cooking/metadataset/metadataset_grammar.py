"""The grammar of metadatasets, versions 1 and 2: parse the splits of a YAML file.

A file is parsed whole, but no file that it names is read. Every error names file, line and key.
"""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

from dagster_dataops.foundation.quantities import counted
from dagster_dataops.training.cooking.joined_samples import Joiner, NonMatch
from dagster_dataops.training.cooking.metadataset.metadataset_nodes import YamlNode

Kind: TypeAlias = Literal["blend", "blend_epochized", "concat"]

_AMOUNTS: Final[Mapping[Kind, str]] = {
    "blend": "weight",
    "blend_epochized": "repetitions",
    "concat": "",
}
_LOGGER: Final = logging.getLogger(__name__)
_MODULES: Final = ("dagster_dataops", "megatron.energon")
_TOP: Final = ("__module__", "__class__", "splits")
_CLASS: Final = "MetadatasetV2"
_CLASS_1: Final = "Metadataset"
_OLD_SUBFLAVOR: Final = "__subflavor__"  # the subflavor that a single `subflavor` gives
_REFERENCE: Final = (
    "path",
    "asset",
    "split_part",
    "subflavors",
    "aux",
    "subset",
    "dataset_config",
    "split_config",
    "shuffle_over_epochs_multiplier",
)
_REFERENCE_1: Final = (
    *("path", "weight", "split_part", "subflavor", "subflavors"),
    *("dataset_config", "split_config", "shuffle_over_epochs_multiplier"),
)
_WRITE_2: Final = f"version 1 has no such key; write __class__: {_CLASS}, and blend for datasets"
_OF_VERSION_2: Final = MappingProxyType(
    dict.fromkeys(
        ("aux", "asset", "subset", "blend", "blend_epochized", "concat", "join"), _WRITE_2
    )
)
_CHOICES: Final = ("split_part", "dataset_config", "split_config")
_JOIN: Final = (
    *("join", "joiner", "split_part", "subflavors", "subset"),
    "shuffle_over_epochs_multiplier",
)
_OF_ENTRIES: Final = "it belongs to each entry of the list"
_HINTS: Final = MappingProxyType(
    {
        "split": "the part of a dataset is chosen by 'split_part'",
        "datasets": "it is of version 1 of the grammar; write 'blend'",
        "blend": "a dataset has either 'path' or a list of others",
        "exclude": "shards and samples are excluded in split.yaml of the dataset",
    }
)
_MIXTURE_HINTS: Final = MappingProxyType(
    {name: _OF_ENTRIES for name in (*_REFERENCE, "weight", "repetitions") if name != "subset"}
)
_PERCENT: Final = re.compile(r"(\d+(?:\.\d+)?)\s*%")


Limit: TypeAlias = int | Fraction
"""One end of a range of samples: the number of the samples before it, or their share in [0, 1]."""


@dataclass(frozen=True)
class Subset:
    """A range of the samples of a dataset; ``end`` is the first sample behind it."""

    place: YamlNode = field(compare=False)
    start: Limit
    end: Limit

    @property
    def is_absolute(self) -> bool:
        """Whether a limit is a number of samples."""
        return any(isinstance(end, int) and end > 0 for end in (self.start, self.end))

    def within(self, count: int) -> slice:
        """Return the range among ``count`` samples."""
        start, end = (
            end if isinstance(end, int) else int(end * count) for end in (self.start, self.end)
        )
        return slice(start, end)


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A dataset or another metadataset.

    Attributes:
        place: Its place in the YAML.
        path: Its path or URL as it is written; the key of the asset if ``is_asset``.
        is_asset: Whether it is an asset of this package.
        split_part: The split to read; ``None`` for that of the metadataset.
        subflavors: Tags of every sample.
        aux: The auxiliary stores by name.
        subset: The range of samples to read; ``None`` for all.
        dataset_config: The name of the file that describes the dataset.
        split_config: The name of the file that lists its splits.
        choices: The places of ``split_part``, ``dataset_config`` and ``split_config``.
    """

    place: YamlNode
    path: str
    is_asset: bool = False
    split_part: str | None = None
    subflavors: Mapping[str, Any] = field(default_factory=dict)
    aux: Mapping[str, YamlNode] = field(default_factory=dict)
    subset: Subset | None = None
    dataset_config: str | None = None
    split_config: str | None = None
    choices: Mapping[str, YamlNode] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, kw_only=True)
class Join:
    """Datasets whose samples of equal key are one sample; see `Reference`, too.

    Attributes:
        place: Its place in the YAML.
        parts: The datasets by name; the first one determines keys and order.
        nonmatch: The handling of a sample without a match in each dataset.
        joiner: The function or class that makes one sample of several.
    """

    place: YamlNode
    parts: Mapping[str, Reference]
    nonmatch: Mapping[str, NonMatch]
    joiner: Joiner
    split_part: str | None
    subflavors: Mapping[str, Any]
    subset: Subset | None


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """Several datasets that are read together.

    Attributes:
        place: Its place in the YAML.
        kind: How they are combined.
        parts: The datasets.
        amounts: The weight or the repetitions of each.
        subset: The range of samples to read of each; ``None`` for all.
    """

    place: YamlNode
    kind: Kind
    parts: tuple["Entry", ...]
    amounts: tuple[float, ...]
    subset: Subset | None


Entry: TypeAlias = Reference | Mixture | Join


def splits_of(document: YamlNode) -> dict[str, Entry]:
    """Return the splits of a metadataset by name."""
    if not document.is_mapping:
        raise document.error(f"a metadataset is a mapping, not {document.shown}")
    entries = document.known_entries(_TOP, {})
    is_old = _is_of_version_1(document, entries)
    if "splits" not in entries:
        raise document.error("'splits' is missing")
    splits = entries["splits"].entries()
    if not splits:
        raise entries["splits"].error("there are no splits")
    if is_old:
        return {name: _blend_1(node) for name, node in splits.items()}
    return {name: _entry(node, ()) for name, node in splits.items()}


def _is_of_version_1(document: YamlNode, entries: Mapping[str, YamlNode]) -> bool:
    """Return whether a document is of version 1, whose class can be left out."""
    module, kind = entries.get("__module__"), entries.get("__class__")
    if kind is None:
        splits = entries["splits"].entries().values() if "splits" in entries else ()
        if any("datasets" in split.entries() for split in splits if split.is_mapping):
            return True
        raise document.error(f"'__class__: {_CLASS}' is missing")
    if kind.text() not in {_CLASS, _CLASS_1}:
        raise kind.error(f"must be {_CLASS}, or {_CLASS_1} of version 1, not {kind.text()}")
    if module is None or module.text() not in _MODULES:
        place = module or document
        raise place.error(f"'__module__' must be {' or '.join(_MODULES)}")
    return kind.text() == _CLASS_1


def _blend_1(node: YamlNode) -> Mixture:
    """Parse a split of version 1: datasets with weights."""
    entries = node.known_entries(("datasets",), _OF_VERSION_2)
    if "datasets" not in entries:
        raise node.error("'datasets' is missing")
    parts, amounts = [], []
    for element in entries["datasets"].elements():
        reference = element.known_entries(_REFERENCE_1, _OF_VERSION_2)
        part = _reference(element, ("weight", "subflavor"))
        if "subflavor" in reference:
            subflavors = {_OLD_SUBFLAVOR: reference["subflavor"].value(), **part.subflavors}
            part = replace(part, subflavors=subflavors)
        parts.append(part)
        amounts.append(reference["weight"].number() if "weight" in reference else 1)
    return Mixture(
        place=node, kind="blend", parts=tuple(parts), amounts=tuple(amounts), subset=None
    )


def _entry(node: YamlNode, more: tuple[str, ...]) -> Entry:
    """Parse a dataset or a list of datasets, which may have the keys ``more`` besides its own."""
    entries = node.entries()
    mixtures = [kind for kind in _AMOUNTS if kind in entries]
    kinds = [*mixtures, *(["join"] if "join" in entries else [])]
    if len(kinds) > 1:
        raise entries[kinds[1]].error(f"{kinds[0]!r} and {kinds[1]!r} exclude each other")
    if mixtures:
        return _mixture(node, mixtures[0], more)
    return _join(node, more) if kinds else _reference(node, more)


def _mixture(node: YamlNode, kind: Kind, more: tuple[str, ...]) -> Mixture:
    entries = node.known_entries((kind, "subset", *more), _MIXTURE_HINTS)
    name = _AMOUNTS[kind]
    extra = (name,) if name else ()
    parts, amounts = [], []
    for element in entries[kind].elements():
        parts.append(_entry(element, extra))
        amount = element.entries().get(name)
        amounts.append(amount.number() if amount else 1)
    subset = _subset(entries.get("subset"))
    return Mixture(place=node, kind=kind, parts=tuple(parts), amounts=tuple(amounts), subset=subset)


def _reference(node: YamlNode, more: tuple[str, ...]) -> Reference:
    known = node.known_entries((*_REFERENCE, *more), _HINTS)
    if ("path" in known) == ("asset" in known):
        wanted = "'path', 'blend', 'blend_epochized', 'concat' or 'join'"
        reason = f"{wanted} is missing" if "path" not in known else "has both 'path' and 'asset'"
        raise node.error(reason)
    aux = known["aux"].entries() if "aux" in known else {}
    for store in aux.values():
        store.text()
    _check_multiplier(known.get("shuffle_over_epochs_multiplier"))
    place = known.get("path") or known["asset"]
    return Reference(
        place=place,
        path=place.text(),
        is_asset="asset" in known,
        split_part=_text(known.get("split_part")),
        subflavors=_subflavors(known.get("subflavors")),
        aux=aux,
        subset=_subset(known.get("subset")),
        dataset_config=_text(known.get("dataset_config")),
        split_config=_text(known.get("split_config")),
        choices={name: known[name] for name in _CHOICES if name in known},
    )


def _join(node: YamlNode, more: tuple[str, ...]) -> Join:
    entries = node.known_entries((*_JOIN, *more), _HINTS)
    joined = entries["join"]
    named = joined.is_mapping
    if named:
        listed = joined.entries()
    else:
        listed = {str(at): element for at, element in enumerate(joined.elements())}
    if len(listed) < 2:
        raise joined.error("joins at least two datasets")
    parts = {name: _joined(part) for name, part in listed.items()}
    nonmatch = {name: _nonmatch(part) for name, part in listed.items()}
    first = next(iter(listed))
    if nonmatch[first] != "error":
        reason = "the first dataset determines the keys, so that none of them is missing in it"
        raise listed[first].entries()["nonmatch"].error(reason)
    _check_multiplier(entries.get("shuffle_over_epochs_multiplier"))
    return Join(
        place=node,
        parts=parts,
        nonmatch=nonmatch,
        joiner=_joiner(node, entries.get("joiner"), tuple(listed) if named else None),
        split_part=_text(entries.get("split_part")),
        subflavors=_subflavors(entries.get("subflavors")),
        subset=_subset(entries.get("subset")),
    )


def _joined(node: YamlNode) -> Reference:
    reference = _reference(node, ("nonmatch",))
    if reference.subset is not None:
        raise reference.subset.place.error(
            "'subset' belongs beside 'join', not to one of its datasets"
        )
    return reference


def _nonmatch(node: YamlNode) -> NonMatch:
    setting = node.entries().get("nonmatch")
    if setting is None:
        return "error"
    value = setting.value()
    allowed: dict[Any, NonMatch] = {"error": "error", "skip": "skip", "none": "none", None: "none"}
    if not isinstance(value, (str, type(None))) or value not in allowed:
        raise setting.error("'nonmatch' must be error, skip or none")
    return allowed[value]


def _joiner(node: YamlNode, setting: YamlNode | None, names: tuple[str, ...] | None) -> Joiner:
    if setting is None:
        raise node.error("'joiner' is missing: the function that makes one sample of several")
    entries = setting.known_entries(("__module__", "__class__", "__function__"), {})
    name = entries.get("__function__") or entries.get("__class__")
    if name is None or "__module__" not in entries:
        raise setting.error("needs '__module__', and '__function__' or '__class__'")
    return Joiner(entries["__module__"].text(), name.text(), names)


def _text(node: YamlNode | None) -> str | None:
    return None if node is None else node.text()


def _subflavors(node: YamlNode | None) -> dict[str, Any]:
    return {} if node is None else {name: inner.value() for name, inner in node.entries().items()}


def _check_multiplier(node: YamlNode | None) -> None:
    """Check an option of Energon that has no effect here: every epoch reads all shards."""
    if node is None or (value := node.value()) is None:
        return
    if not isinstance(value, int) or (value <= 0 and value != -1):
        raise node.error(f"must be a number above 0, -1 or null, not {node.shown}")
    if value != 1:
        text = "%s, line %d: %s has no effect: each epoch has all samples"
        _LOGGER.warning(text, node.file, node.line, "shuffle_over_epochs_multiplier")


def _subset(node: YamlNode | None) -> Subset | None:
    if node is None:
        return None
    entries = node.known_entries(("range",), {})
    if "range" not in entries:
        raise node.error("'range' is missing, such as [10%, 20%]")
    ends = entries["range"].elements()
    if len(ends) != 2:
        raise entries["range"].error(
            f"has {counted(len(ends), 'elements')}, not a start and an end"
        )
    start, end = map(_limit, ends)
    if _is_empty(start, end):
        raise entries["range"].error("is empty: the start must be below the end")
    return Subset(entries["range"], start, end)


def _is_empty(start: Limit, end: Limit) -> bool:
    if isinstance(start, int) and isinstance(end, int):
        return start >= end
    return (0 if isinstance(start, int) else start) >= (1 if isinstance(end, int) else end)


def _limit(node: YamlNode) -> Limit:
    value = node.value()
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if value == "end":
        return Fraction(1)
    percent = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    share = Fraction(percent[1]) / 100 if percent else Fraction(2)
    if share > 1:
        reason = f"must be a number of samples, a share such as 20%, or end; not {node.shown}"
        raise node.error(reason)
    return share
