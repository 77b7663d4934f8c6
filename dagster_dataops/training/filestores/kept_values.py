"""`KeptValue`: a value in a file of this process, read again when it is needed."""

import atexit
import contextlib
import functools
import glob
import os
import pickle
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Generic, TypeVar

import xxhash

from dagster_dataops.errors import StreamSourceError
from dagster_dataops.foundation.override import override

_T = TypeVar("_T")


class KeptValue(Generic[_T]):
    """A value that `CachePool.to_cache` has put aside; its file is deleted with it.

    Sent to another process, such as from a worker to the training process, it is put aside there.
    It cannot be written to a result.

    Args:
        data: The value.
        name: Its name in messages.
        parent: The folder of a cache, for the file; ``None`` to keep the value in memory.

    Attributes:
        name: As given.
    """

    def __init__(self, data: _T, name: str, parent: Path | None) -> None:
        self.name, self._parent = name, parent
        self._held: Any = data
        self._path: str | None = None
        self._is_raw = type(data) is bytes
        if parent is not None:
            content: Any = data if self._is_raw else pickle.dumps(data, pickle.HIGHEST_PROTOCOL)
            with contextlib.suppress(OSError):  # a cache is only a cache: else it stays in memory
                self._write(content, _folder(parent, os.getpid()))

    def _write(self, content: bytes, folder: Path) -> None:
        descriptor, path = tempfile.mkstemp(dir=folder)
        weakref.finalize(self, _delete, path, os.getpid())
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor
            file.write(content)
        self._held, self._path = None, path
        self._digest = xxhash.xxh3_128_digest(content)

    def get(self, sample: object = None, /) -> _T:  # noqa: ARG002 - as `Lazy.get`
        """Return the value, equal each time; ``sample`` records nothing: it is no file of a store.

        Raises:
            StreamSourceError: The file is missing or damaged.
        """
        if self._path is None:
            return self._held  # type: ignore[no-any-return]
        try:
            content = Path(self._path).read_bytes()
        except OSError as error:
            raise StreamSourceError(self._path, f"cannot be read: {error}") from error
        if xxhash.xxh3_128_digest(content) != self._digest:
            raise StreamSourceError(self._path, f"the value {self.name!r} was changed there")
        value: _T = content if self._is_raw else pickle.loads(content)  # type: ignore[assignment]  # noqa: S301 - as it was written
        return value

    @override
    def __reduce__(self) -> Any:
        return KeptValue, (self.get(), self.name, self._parent)

    @override
    def __repr__(self) -> str:
        return f"KeptValue({self.name!r})"


@functools.cache  # one folder for each process
def _folder(parent: Path, process: int) -> Path:
    """Return the folder for values of this process; it is deleted when the process ends.

    Those of processes of this machine that ended are deleted; machines may share ``parent``.
    """
    parent.mkdir(parents=True, exist_ok=True)
    for folder in _abandoned(parent):
        shutil.rmtree(folder, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{_prefix()}{process}-", dir=parent))
    atexit.register(_delete_folder, folder, process)
    return folder


def _delete_folder(folder: Path, process: int) -> None:
    if process == os.getpid():
        shutil.rmtree(folder, ignore_errors=True)


def _prefix() -> str:
    return f"values-{os.uname().nodename}-"


def _abandoned(parent: Path) -> Iterator[Path]:
    prefix = _prefix()
    for folder in parent.glob(f"{glob.escape(prefix)}*-*"):
        try:
            os.kill(int(folder.name.removeprefix(prefix).partition("-")[0]), 0)
        except ProcessLookupError:
            yield folder
        except (ValueError, OSError):  # another name, or a process of another user
            continue


def _delete(path: str, process: int) -> None:
    if process == os.getpid():  # a fork does not delete the files of its parent
        with contextlib.suppress(OSError):
            Path(path).unlink()
