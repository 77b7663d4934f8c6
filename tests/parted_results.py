"""Published results as version 0.2 wrote them with ``_part_records``: in parts."""

from dataclasses import replace

import orjson
import xxhash

from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder
from dagster_dataops.checkpoints.publish.commit import published_files
from dagster_dataops.datasets.artefact import digest_of_listing, listing_of
from dagster_dataops.datasets.parted_result import link_parts
from dagster_dataops.foundation.places.opening import state_at


def put_in_parts(folder: NodeFolder, records: int) -> Manifest:
    """Split the published result of a node, or each of its results.

    Args:
        folder: Of the node; its results are single files.
        records: Records in each part.

    Returns:
        The new manifest of the node.
    """
    manifest = Manifest.load(folder.manifest)
    assert manifest is not None
    found = {name: _split(place, records) for name, (place, _) in manifest.parts(folder).items()}
    manifest = replace(manifest, **found.pop("", {}))
    outputs = {name: {**facts, **found[name]} for name, facts in manifest.outputs.items()}
    manifest = replace(manifest, outputs=outputs)
    for place, own in manifest.parts(folder).values():
        place.manifest.write_bytes(own.to_bytes())
    folder.manifest.write_bytes(manifest.to_bytes())
    return manifest


def store_in_parts(folder: NodeFolder, records: int) -> None:
    """Split the published result of a node on an object store, there and in the working copy."""
    manifest = put_in_parts(folder, records)
    files = published_files(folder, manifest)
    folder.place.publish(files, manifest.to_bytes())


def _split(folder: NodeFolder, records: int) -> dict[str, object]:
    lines = folder.result.read_bytes().splitlines(keepends=True)
    draft = folder.parts / "draft"
    draft.mkdir(parents=True)
    rows = []
    for number, start in enumerate(range(0, max(len(lines), 1), records)):
        name = f"{folder.result.stem}-{number:05d}.jsonl"
        part = b"".join(lines[start : start + records])
        (draft / name).write_bytes(part)
        facts = {"path": name, "size_bytes": len(part)}
        digest = f"xxh3:{xxhash.xxh3_128_hexdigest(part)}"
        rows.append(facts | {"digest": digest, "rows": len(lines[start : start + records])})
    place = draft.with_name(digest_of_listing(rows))
    draft.rename(place)
    listing_of(place).write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    link_parts(folder.result, place)
    return {"parted": place.name, "modified_ns": state_at(folder.result).modified_ns}


def parts_of(folder: NodeFolder) -> list[bytes]:
    """Return the content of each part of a result."""
    assert folder.result.is_symlink()
    return [path.read_bytes() for path in sorted(folder.result.iterdir())]


def is_single(folder: NodeFolder) -> bool:
    """Whether the result of a node is one file."""
    return folder.result.is_file() and not folder.result.is_symlink()
