"""Keep the result in place before another one replaces it, and remove versions beyond a number."""

from filecmp import cmp
from typing import NamedTuple

from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder, is_intact
from dagster_dataops.checkpoints.versions.node_versions import versions_at
from dagster_dataops.datasets.durable_files import draft_of, read_if_there, storage

_COPIED = (
    "the result before was copied to keep it, because this file system has no hard links: each "
    "version takes the space of a result"
)
_EQUAL = "the result is equal to the one before, of which no version is kept"
_EDITED = "the result before was edited or deleted after it was published, and is not kept"
_IN_PARTS = (
    "the result before is in parts, as an earlier version of this package wrote it, and is not kept"
)


class Kept(NamedTuple):
    """Whether the result in place was kept, and as which version.

    Attributes:
        number: The number of the version; 0 if it is not kept.
        note: A line for the log; empty if there is nothing to say.
    """

    number: int = 0
    note: str = ""


def keep_replaced(folder: NodeFolder, manifest: Manifest) -> Kept:
    """Keep the result in place as a version, unless the next one is equal to it.

    Call it when the drafts of the next result are complete, before they are published. Safe to do
    twice: a result that is the newest version already is not kept again.

    Args:
        folder: Of the node, whose lock this run holds.
        manifest: Of the drafts.

    Raises:
        StorageError: The disk or the store refuses. Nothing was replaced.
    """
    before, _ = present_manifest(folder)
    if before is not None and _is_equal(folder, before, manifest):
        return Kept(note=_EQUAL)
    return keep_present(folder)


def keep_present(folder: NodeFolder) -> Kept:
    """Keep the result in place as a version, unless it is the newest one; as `keep_replaced`."""
    before, data = present_manifest(folder)
    if before is None:
        return Kept()
    parts = before.parts(folder).values()
    if any(own.parted for _, own in parts):
        return Kept(note=_IN_PARTS)
    if not all(is_intact(place, own) for place, own in parts):
        return Kept(note=_EDITED)
    versions = versions_at(folder)
    numbers = versions.numbers()
    if numbers and versions.manifest(numbers[-1]) == data:
        return Kept(numbers[-1])  # by a run that a crash ended before it could publish
    copied = versions.keep()
    return Kept(versions.numbers()[-1], _COPIED if copied else "")


def present_manifest(folder: NodeFolder) -> tuple[Manifest | None, bytes]:
    """Return the manifest of the result in place, with its bytes; ``None`` if there is none.

    Raises:
        StorageError: There may be one, and it cannot be read.
    """
    data = read_if_there(folder.manifest, "read the manifest of the published result")
    return Manifest.parse(data, folder.located(folder.manifest)), data


def remove_beyond(folder: NodeFolder, most: int) -> list[int]:
    """Remove the oldest versions of a node, so that ``most`` are left; return their numbers."""
    versions = versions_at(folder)
    numbers = versions.numbers()
    removed = numbers[: max(0, len(numbers) - most)]
    versions.remove(removed)
    return removed


def _is_equal(folder: NodeFolder, before: Manifest, after: Manifest) -> bool:
    """Return whether a publication changes no result, no failed record and no reason of a drop."""
    old, new = before.parts(folder), after.parts(folder)
    if old.keys() != new.keys() or before.artefact != after.artefact:
        return False
    told = ("rows_in", "rows_out", "dropped", "failed", "drops", "mapped")
    if any(getattr(before, name) != getattr(after, name) for name in told):
        return False
    if any(
        (own.size_bytes, own.fingerprint) != (new[name][1].size_bytes, new[name][1].fingerprint)
        for name, (_, own) in old.items()
    ):
        return False
    return not after.failed or _has_equal_errors(folder)


def _has_equal_errors(folder: NodeFolder) -> bool:
    draft = draft_of(folder.errors)
    with storage(folder.errors, "compare the failed records"):
        if not draft.exists() or not folder.errors.exists():
            return False
        return cmp(draft, folder.errors, shallow=False)
