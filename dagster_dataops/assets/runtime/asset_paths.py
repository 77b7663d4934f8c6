"""Map asset keys and partitions to folders below the root."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

import dagster as dg
import xxhash

from dagster_dataops.assets.metadata.metadata_keys import URI
from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.datasets.published_files import CHECKPOINTS, PARTITIONS
from dagster_dataops.foundation.places.opening import PLAIN
from dagster_dataops.foundation.places.root import Root
from dagster_dataops.operators.kinds.kind import OperatorKind
from dagster_dataops.operators.kinds.kind_table import RECORD

_SAFE: Final = " @+=,"
_OURS: Final = frozenset({CHECKPOINTS, PARTITIONS})  # names of folders beside an asset's files
_FILES: Final = (".jsonl", ".jsonl.json", ".jsonl.zst")  # suffixes of an asset's own files
_LONGEST: Final = 150  # of 255 bytes: file names begin with the name of their folder


def folder_of(root: Root, key: Sequence[str], partition: str | None = None) -> NodeFolder:
    """Return the node folder of an asset or partition, always inside ``root``.

    Different keys and partitions have different folders. No folder is inside the checkpoints, the
    artefact or the parts of another.
    """
    first, *others = map(safe_part, key)
    folder = NodeFolder.of(root / first)
    for name in others:
        if folder.path / name in {folder.artefact, folder.parts}:
            name = f"{name[:-1]}%{ord(name[-1]):02X}"  # noqa: PLW2901 - escaped
        folder = NodeFolder.of(folder.root / name)
    if partition is not None:
        folder = NodeFolder.of(folder.root / PARTITIONS / safe_part(partition), folder.name)
    return folder


def address_of(
    spec: dg.AssetSpec, root: Root | None, kind: OperatorKind = RECORD, form: str = PLAIN
) -> dict[str, str]:
    """Return the metadata with the URI of an asset's result, which Dagster shows as its storage.

    The versions of an artefact are in a folder. ``root`` is ``None`` if the definitions do not
    know it.
    """
    if root is None:
        return {}
    folder = folder_of(root, spec.key.path).in_form(form)
    result = folder.artefact if kind.makes_folder else folder.result
    place = result if spec.partitions_def is None else folder.path / PARTITIONS
    return {URI: folder.place.address(place)}


def located(spec: dg.AssetSpec, root: Root | None, form: str) -> dg.AssetSpec:
    """Return ``spec`` with the metadata of `address_of`, unless it has a URI already."""
    address = {} if URI in spec.metadata else address_of(spec, root, form=form)
    return spec.merge_attributes(metadata=address) if address else spec


def key_of(pipeline: str, name: str) -> list[str]:
    """Return the key of a node or source: the name of the pipeline, if any, and its own name."""
    return [pipeline, name] if pipeline else [name]


def safe_part(part: str) -> str:
    """Return a part of a key as the name of one folder.

    Slashes, leading dots, empty text, and the names of the package's own folders and files are
    escaped. A long name is cut; a digest of the whole part replaces the rest.
    """
    escaped = quote(part, safe=_SAFE, errors="surrogatepass")
    if escaped.startswith(".") or escaped in _OURS:
        escaped = f"%{ord(escaped[0]):02X}{escaped[1:]}"
    if escaped.endswith(_FILES):
        escaped = escaped.replace(".jsonl", "%2Ejsonl")
    if len(escaped) > _LONGEST:
        whole = part.encode(errors="surrogatepass")
        escaped = f"{escaped[: _LONGEST - 33]}%{xxhash.xxh3_128_hexdigest(whole)}"
    return escaped or "%"
