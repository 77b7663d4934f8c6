"""``file_store``: open a file store by path or URL."""

import os
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from dagster_dataops.errors import DataOpsError, InputError, StreamSourceError
from dagster_dataops.streams.files.remote import is_url
from dagster_dataops.training.filestores.energon.energon_layout import (
    exists,
    is_prepared,
    prepared_dataset,
    sharded_dataset,
)
from dagster_dataops.training.filestores.folder_store import FolderStore
from dagster_dataops.training.filestores.jsonl_store import JsonlStore
from dagster_dataops.training.filestores.sample_names import split_name
from dagster_dataops.training.filestores.store import FileStore
from dagster_dataops.training.filestores.tar_store import TarStore

FOLDER_SCHEME: Final = "filesystem"


def absolute(text: str, base: str | os.PathLike[str] | None = None) -> str:
    """Return an absolute path or URL.

    Args:
        text: A path, relative to ``base``, or a URL. ``file://`` URLs become paths.
        base: A folder or URL; the working directory by default.

    Raises:
        InputError: The scheme of the URL is unknown.
    """
    if text.startswith("file://"):
        text = text.removeprefix("file://")
    if is_url(text):
        check_scheme(text)
        return text
    folder = os.fspath(base) if base is not None else "."
    if is_url(folder) and not Path(text).is_absolute():
        return _below_url(folder, text)
    return os.path.abspath(Path(folder).expanduser() / Path(text).expanduser())  # noqa: PTH100 - links stay


def absolute_store(text: str, base: str | os.PathLike[str] | None = None) -> str:
    """Return the text of a store with an absolute path; see `file_store`."""
    scheme, mark, rest = text.partition("://")
    if mark and scheme == FOLDER_SCHEME:
        return f"{scheme}://{absolute(rest, base)}"
    if mark and scheme.startswith(f"{FOLDER_SCHEME}+"):
        check_scheme(text.removeprefix(f"{FOLDER_SCHEME}+"))
        return text
    return absolute(text, base)


def _below_url(folder: str, text: str) -> str:
    scheme, _, rest = folder.partition("://")
    return f"{scheme}://{os.path.normpath(f'{rest}/{text}')}"


def check_scheme(url: str) -> None:
    """Check that fsspec knows the scheme of a URL."""
    from fsspec.registry import known_implementations, registry

    scheme = url.partition("://")[0]
    known = {*known_implementations, *registry}
    for part in scheme.split("::"):
        if part not in known:
            names = ", ".join(sorted(name for name in known if name.isalnum()))
            reason = (
                f"the scheme {part!r} is unknown; known: filesystem (a folder of files), {names}"
            )
            if part == "msc":
                reason = "its scheme is that of a package that is missing: multi-storage-client"
            raise InputError(url, reason)


def file_store(
    text: str | os.PathLike[str],
    base: str | os.PathLike[str] | None = None,
    *,
    duplicates: str = "error",
    storage_options: Mapping[str, Any] | None = None,
) -> FileStore:
    """Open a file store.

    Args:
        text: ``filesystem://path`` or ``filesystem+s3://…`` is a folder of files. Any other path or
            URL is a dataset of tar shards if it has some, a jsonl file, or a folder of files.
        base: The folder or URL of relative paths; the working directory by default.
        duplicates: ``error``, or which of two samples of one key to use: ``first`` or ``last``.
        storage_options: Arguments of fsspec's file systems, for example credentials.

    Raises:
        InputError: There is no such file or folder, or the scheme is unknown.
        DuplicateKeyError: Raised when a file is first read: a key occurs twice.
    """
    location, options = os.fspath(text), dict(storage_options or {})
    scheme, mark, rest = location.partition("://")
    if mark and scheme == FOLDER_SCHEME:
        return FolderStore(absolute(rest, base), options)
    if mark and scheme.startswith(f"{FOLDER_SCHEME}+"):
        inner = f"{scheme.removeprefix(f'{FOLDER_SCHEME}+')}://{rest}"
        return FolderStore(absolute(inner, base), options)
    path = absolute(location, base)
    wild = any(sign in path for sign in "*?[")
    if not wild and not exists(path, options):
        raise InputError(path, "there is no such file or folder")
    if path.endswith(".jsonl") and not is_url(path):
        return JsonlStore(path)
    if is_prepared(path, options):
        return TarStore(prepared_dataset(path, None, options), duplicates)
    try:
        dataset = sharded_dataset(path, options)
    except StreamSourceError:  # a folder without files
        dataset = None
    return TarStore(dataset, duplicates) if dataset is not None else FolderStore(path, options)


def bytes_of_files(files: Iterable[tuple[str, str, str]]) -> list[list[int] | None]:
    """Return where files lie in their shards: the first byte, and the size (-1 if it is not known).

    ``None`` if the store of a dataset is not there, or has no such file in this shard.

    Args:
        files: The path or URL of the dataset, the shard relative to it, and the name of the file.
    """
    opened = lru_cache(maxsize=16)(file_store)
    return [_bytes_of(name, shard, opened, dataset) for dataset, shard, name in files]


def _bytes_of(
    name: str, shard: str, opened: Callable[[str], FileStore], dataset: str
) -> list[int] | None:
    divided = split_name(name)
    try:
        index = getattr(opened(dataset), "index", None)
        place = index.find(*divided) if index is not None and divided is not None else None
    except (DataOpsError, OSError):
        return None
    if index is None or place is None or index.shards[place.shard].name != shard:
        return None
    return [place.offset, place.size]
