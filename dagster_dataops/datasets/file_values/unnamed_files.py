"""Files that operators made, and that nothing below their root names any more.

Published results, kept versions, error files, artefacts and the checkpoints of unfinished runs are
searched for the names of files, as bytes; of a compressed result, its text. A file is deleted only
if it is older than the grace period, if no run works below the root, and if nothing there changed
while it was searched.
"""

from collections.abc import Callable, Sequence
from typing import Final

from dagster_dataops.datasets.file_values.stored_files import (
    StoredFile,
    StoredFiles,
    digest_of,
)
from dagster_dataops.datasets.file_values.stored_in_bucket import FilesOfBucket
from dagster_dataops.datasets.file_values.stored_in_folder import FilesOfFolder
from dagster_dataops.errors import ConfigurationError, FolderLockedError
from dagster_dataops.foundation.places.bucket import LocalFile
from dagster_dataops.foundation.places.root import Root
from dagster_dataops.foundation.quantities import counted

GRACE_DAYS: Final = 7.0
_DAY_SECONDS: Final = 86_400


def prune_files(
    root: Root,
    check_format: Callable[[bytes, LocalFile], None],
    days: float = GRACE_DAYS,
    also: Sequence[Root] = (),
    *,
    delete: bool = False,
) -> tuple[list[StoredFile], str]:
    """Return the unnamed files below a root, with a text that lists them.

    Args:
        root: The root of the results.
        check_format: Checks that a manifest or a journal is not of a newer version: what its
            records name is not known.
        days: The grace period: files that were stored, or made again, since then are kept. It must
            be longer than a run takes.
        also: Other folders, files and objects whose records name files of the root, such as other
            roots.
        delete: Delete the files; by default nothing is deleted.

    Raises:
        ConfigurationError: There is no such root, or the grace period is negative.
        NewerVersionError: A result, a kept version or an unfinished run is of a newer version.
        InputError: A compressed result is damaged, so that it is not known what it names.
        FolderLockedError: A run works below the root, or has changed results there meanwhile.
        StorageError: The object store cannot be reached, or refuses.
    """
    if not days >= 0:
        raise ConfigurationError("--days", days, "a number of days, at least 0")
    grace = days * _DAY_SECONDS
    files = files_below(root)
    files.check_root()
    files.check_unused(grace)
    state = files.state()
    places = [files, *map(files_below, also)]
    for place in places:
        for data, file in place.formatted():
            check_format(data, file)
    named = set().union(*(place.named() for place in places))
    unnamed = [file for file in files.stored_before(grace) if digest_of(file.name) not in named]
    if delete and unnamed:
        files.check_unused(grace)
        if files.state() != state:
            raise FolderLockedError(str(root), "a run that has changed results meanwhile", 0.0)
        unnamed = files.deleted(unnamed, grace)
    return unnamed, _text(root, unnamed, days, deleted=delete)


def files_below(root: Root) -> StoredFiles:
    """Return the files below a root, a folder or a single file or object."""
    if root.bucket is None:
        return FilesOfFolder(root.path)
    return FilesOfBucket(root, root.bucket)


def _text(root: Root, unnamed: list[StoredFile], days: float, *, deleted: bool) -> str:
    lines = [f"{file.size_bytes:>16,}  {file.name}" for file in unnamed]
    total = f"{sum(file.size_bytes for file in unnamed):,} bytes"
    said = (
        f"{counted(len(unnamed), 'files')} older than {days:g} days that nothing below {root} "
        f"names, {total}"
    )
    end = "deleted" if deleted else "nothing is deleted without --yes"
    return "\n".join([*lines, f"{said}: {end}" if unnamed else said])
