"""`LoadedFile`: a model file, read once in a process, and again if it is replaced."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from dagster_dataops.errors import DefinitionError
from dagster_dataops.foundation.override import override
from dagster_dataops.operators.options.file_content import content_of


class LoadedFile:
    """The model in a file or folder, as a function reads it.

    It is pickled as the function and its arguments: another process reads the file.

    Args:
        read: A function on the level of a module.
        path: The file or folder, the first argument of the function.
        *more: Further arguments of the function; they are hashable.
        digest: The digest that the file must have, as `content_of` returns it; ``None`` for any.

    Attributes:
        value: The result of the function; the same object for all operators of this process.
    """

    def __init__(
        self, read: Callable[..., Any], path: str, *more: Any, digest: str | None = None
    ) -> None:
        self._call = read, path, *more
        self._digest = content_of(path) if digest is None else checked_content(path, digest)
        self.value = _read(self._digest, *self._call)

    def __call__(self, *values: Any) -> Any:
        """Return the result of ``value``, which is a function."""
        return self.value(*values)

    @override
    def __reduce__(self) -> Any:
        return partial(LoadedFile, digest=self._digest), self._call


def checked_content(path: str, digest: str) -> str:
    """Check that a file has the digest that it had when a run started, and return it."""
    if content_of(path) != digest:
        msg = f"{path} is not the file that the run started with; run again, with the same file"
        raise DefinitionError(f"{msg} on all machines")
    return digest


@lru_cache(maxsize=32)
def _read(_digest: str, read: Callable[..., Any], path: str, *more: Any) -> Any:
    return read(path, *more)
