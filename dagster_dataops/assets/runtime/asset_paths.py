"""Where an asset's files are: the folder of its key, and of its partition, below the root."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote

import dagster as dg
import xxhash

from dagster_dataops.checkpoints.folder.manifest import NodeFolder

_SAFE: Final = " @+=,"
PARTITIONS: Final = "partitions"
_OURS: Final = frozenset({"checkpoints", PARTITIONS})  # folders beside an asset's files
_FILES: Final = (".jsonl", ".jsonl.json")  # how an asset's own files end
_LONGEST: Final = 150  # of 255 bytes; the names of an asset's files begin with its folder's


def folder_of(root: Path, key: Sequence[str], partition: str | None = None) -> NodeFolder:
    """Return the node folder of an asset; no part of its key can lead out of ``root``.

    Different keys and partitions have different folders, none of them inside another's
    checkpoints.
    """
    parts = [safe_part(part) for part in key]
    path = root.joinpath(*parts)
    if partition is not None:
        path = path / PARTITIONS / safe_part(partition)
    return NodeFolder(path, parts[-1])


def address_of(spec: dg.AssetSpec, root: Path | None) -> dict[str, str]:
    """Return the address of an asset's result, as the metadata that Dagster shows as its storage.

    Args:
        spec: Of an operator's asset.
        root: Folder of all results; ``None`` where the definitions do not know it.
    """
    if root is None:
        return {}
    folder = folder_of(root, spec.key.path)
    place = folder.result if spec.partitions_def is None else folder.path / PARTITIONS
    return {"dagster/uri": place.as_uri()}


def located(spec: dg.AssetSpec, root: Path | None) -> dg.AssetSpec:
    """Return ``spec`` with that address, unless it has one already; arguments as `address_of`."""
    address = {} if "dagster/uri" in spec.metadata else address_of(spec, root)
    return spec.merge_attributes(metadata=address) if address else spec


def key_of(pipeline: str, name: str) -> list[str]:
    """Return the key of a node or source: the pipeline's name, if it has one, and its own."""
    return [pipeline, name] if pipeline else [name]


def safe_part(part: str) -> str:
    """Return ``part`` as the name of one folder.

    Slashes, leading dots, the empty text and the names of our own folders and files are escaped;
    what would be too long for a file name is cut, with a digest of the whole in place of the rest.
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
