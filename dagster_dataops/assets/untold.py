"""Results that Dagster was not told of yet: made by a run of several partitions, which goes on.

Such a run tells of its partitions when the last of them is made. A kill before that must not have
the finished ones made again, so each folder notes which runs have worked on it untold.
"""

from collections.abc import Iterable
from pathlib import Path

import orjson

from dagster_dataops.checkpoints.manifest import NodeFolder
from dagster_dataops.datasets.files import make_folder, write_durably


def untold_runs(folder: NodeFolder) -> frozenset[str]:
    """Return the runs whose result in this folder counts as that of an earlier attempt."""
    try:
        runs = orjson.loads(_note(folder).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return frozenset()
    return frozenset(str(run) for run in runs) if isinstance(runs, list) else frozenset()


def begin_untold(folder: NodeFolder, run: str) -> None:
    """Note, before it works on a folder, that a run will tell of the result later."""
    known = untold_runs(folder)
    if run not in known:
        make_folder(folder.path)
        write_durably(_note(folder), orjson.dumps(sorted(known | {run})))


def all_told(folders: Iterable[NodeFolder]) -> None:
    """Forget the notes: Dagster knows of these results."""
    for folder in folders:
        _note(folder).unlink(missing_ok=True)


def _note(folder: NodeFolder) -> Path:
    return folder.path / f".{folder.name}_untold.json"
