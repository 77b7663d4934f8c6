"""Delete working copies of nodes and inputs of object stores that were not used for some time.

The stores have the truth, so a copy may be deleted at any time, and in part: `NodePlace.refresh`
and `fetched` fetch what is missing. A copy that a run has claimed stays.
"""

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, NamedTuple

from dagster_dataops.checkpoints.folder_lock import LOCK_FILE
from dagster_dataops.checkpoints.places.published_objects import HEAD_ENDING, LOCK_ENDING
from dagster_dataops.datasets.remote_input import NOTE_ENDING
from dagster_dataops.foundation.concurrency.file_lock import lock_at_once
from dagster_dataops.foundation.places.bucket import COPIES

_DAY_NS: Final = 24 * 3600 * 10**9


class DeletedCopies(NamedTuple):
    """What was deleted."""

    files: int
    size_bytes: int
    in_use: int  # the copies of nodes that a run uses now


def clean(scratch: Path, days: float) -> DeletedCopies:
    """Delete the working copies that no process has used for ``days``.

    Args:
        scratch: The folder of working copies, `config.data_process_scratch`. Files that are no
            working copies stay.
        days: A copy that was used since stays. A run uses the results that it reads at its start.
    """
    before_ns = time.time_ns() - int(days * _DAY_NS)
    deleted: list[int] = []
    in_use = 0
    for text, _, names in os.walk(scratch):
        folder = Path(text)
        if any(name.endswith(LOCK_ENDING) for name in names):
            in_use += not _clean_node(folder, names, before_ns, deleted)
        elif COPIES.strip("/") in folder.parts:
            _clean_inputs(folder, names, before_ns, deleted)
    return DeletedCopies(len(deleted), sum(deleted), in_use)


def _clean_node(folder: Path, names: list[str], before_ns: int, deleted: list[int]) -> bool:
    """Delete the copy of a node if it is old; return ``False`` if it is in use."""
    locks = [name for name in names if name == LOCK_FILE or name.endswith(LOCK_ENDING)]
    heads = [name for name in names if name.endswith(HEAD_ENDING)]
    with ExitStack() as held:
        for name in locks:
            file = held.enter_context((folder / name).open("rb+"))
            if not lock_at_once(file.fileno()):
                return False
        if not _is_old([folder / name for name in (*locks, *heads)], before_ns):
            return True
        for name in heads:  # first, so that the rest is not taken for a copy
            _delete(folder / name, deleted)
        for path in _files_of(folder):
            if path.name not in locks:
                _delete(path, deleted)
    return True


def _files_of(folder: Path) -> Iterator[Path]:
    """Yield the files of a node, without those of other nodes in folders below."""
    for text, folders, names in os.walk(folder):
        nested = [name for name in folders if _is_node(Path(text, name))]
        folders[:] = [name for name in folders if name not in nested]
        yield from (Path(text, name) for name in names)
        links = [name for name in folders if Path(text, name).is_symlink()]  # to parts
        yield from (Path(text, name) for name in links)


def _is_node(folder: Path) -> bool:
    return any(
        entry.name == LOCK_FILE or entry.name.endswith(LOCK_ENDING) for entry in folder.iterdir()
    )


def _clean_inputs(folder: Path, names: list[str], before_ns: int, deleted: list[int]) -> None:
    """Delete the copies of inputs in a folder that are old."""
    for name in names:
        if name.startswith(".") and name.endswith(NOTE_ENDING):
            note = folder / name
            copy = folder / name[1 : -len(NOTE_ENDING)]
            if _is_old([note, copy], before_ns):
                _delete(note, deleted)  # first, so that the rest is not taken for a copy
                _delete(copy, deleted)


def _is_old(paths: list[Path], before_ns: int) -> bool:
    times = [path.stat().st_mtime_ns for path in paths if path.exists()]
    return max(times, default=0) < before_ns


def _delete(path: Path, deleted: list[int]) -> None:
    with suppress(FileNotFoundError):
        size = path.lstat().st_size
        path.unlink()
        deleted.append(size)
