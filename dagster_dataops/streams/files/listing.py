"""``list_files``: the files below a folder, in natural order."""

import fnmatch
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from dagster_dataops.errors import StreamSourceError
from dagster_dataops.foundation.hashing.values import digest
from dagster_dataops.foundation.override import override
from dagster_dataops.streams.core.stage import SourceStage
from dagster_dataops.streams.files.remote import is_url, list_urls


@dataclass(eq=False)
class FileList(SourceStage):
    """Yield the paths of all files below ``folder`` that match ``pattern``.

    The folder is listed when the first path is requested. The state is an index.
    """

    name: ClassVar[str] = "list_files"
    saved: ClassVar[tuple[str, ...]] = ("_index",)
    left_out: ClassVar[frozenset[str]] = frozenset({"folder", "storage_options"})
    folder: str
    pattern: str | None
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @override
    def reset(self) -> None:
        self._index = 0

    @override
    def items(self) -> Iterator[Any]:
        for path in self._paths()[self._index :]:
            self._index += 1
            yield path

    @override
    def identity(self) -> object:
        paths = [relative_path(path, self.folder) for path in self._paths()]
        return [len(paths), digest(paths)]

    def _paths(self) -> list[str]:
        if is_url(self.folder):
            paths = list_urls(self.folder, self.storage_options)
        else:
            top = Path(self.folder)
            if not top.exists():
                raise StreamSourceError(self.folder, "there is no such file or folder")
            paths = [self.folder] if top.is_file() else [str(path) for path in files_below(top)]
        if self.pattern is not None:
            paths = [path for path in paths if fnmatch.fnmatchcase(path, self.pattern)]
        return sorted(paths, key=natural_key)


def relative_path(path: str, folder: str) -> str:
    """Return the path of a file relative to a folder."""
    if is_url(path):
        return path.removeprefix(folder).lstrip("/")
    return os.path.relpath(path, folder)


def files_below(top: Path) -> Iterator[Path]:
    """Yield the files below a folder, following links, in no particular order.

    Links to missing files are among them: reading one is an error that names it.
    """

    def refuse(error: OSError) -> None:
        reason = f"cannot be listed: {error.strerror}"
        raise StreamSourceError(str(error.filename), reason) from error

    for folder, folders, names in os.walk(top, followlinks=True, onerror=refuse):
        here = Path(folder).resolve()
        above = {here, *here.parents}
        folders[:] = [
            name for name in folders if (here / name).resolve() not in above
        ]  # skips links that form a cycle
        yield from (path for name in names if is_listed(path := Path(folder, name)))


def is_listed(path: Path) -> bool:
    """Return whether a path is a file, or a link to a missing file: reading it is an error."""
    return path.is_file() or (path.is_symlink() and not path.exists())


def natural_key(path: str) -> list[tuple[int, int, str]]:
    """Return a sort key that orders ``part2`` before ``part10``."""
    parts = re.split(r"([0-9]+)", path)
    return [(1, int(part), part) if at % 2 else (0, 0, part) for at, part in enumerate(parts)]
