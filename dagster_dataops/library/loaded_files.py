"""`LoadedFile`: what is read from a model file once in a process, and again if it is replaced."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from typing_extensions import override

from dagster_dataops.operators.options.file_content import content_of


class LoadedFile:
    """The value that a function reads from a file or folder; pickled as the call.

    Args:
        read: A function of a module.
        path: The file or folder, its first argument.
        *more: Further arguments, which are hashable.

    Attributes:
        value: What the function returned; the same object for all operators of this process.
    """

    def __init__(self, read: Callable[..., Any], path: str, *more: Any) -> None:
        self._call = read, path, *more
        self.value = read_once(read, path, *more)

    @override
    def __reduce__(self) -> Any:
        return LoadedFile, self._call


def read_once(read: Callable[..., Any], path: str, *more: Any) -> Any:
    """Return what a function reads from a file; it is kept while the file has the same content."""
    return _read(content_of(path), read, path, *more)


@lru_cache(maxsize=32)
def _read(_digest: str, read: Callable[..., Any], path: str, *more: Any) -> Any:
    return read(path, *more)
