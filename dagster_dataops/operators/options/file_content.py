"""`FileContent`: marks options that are paths of files which count by their content."""

import os
import re
import stat
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import xxhash

from dagster_dataops.datasets.artefact import is_version
from dagster_dataops.errors import DataOpsError
from dagster_dataops.foundation.hashing.file_digests import cached_digest
from dagster_dataops.foundation.places.bucket import Location
from dagster_dataops.foundation.places.opening import state_at
from dagster_dataops.foundation.places.url_forms import is_url
from dagster_dataops.operators.options.annotations import UNIONS
from dagster_dataops.operators.options.signature import OptionSpec

_IN_TEXT: Final = r"\bFileContent\b"


class FileContent:
    """Marks the path of a file or folder that the operator reads, such as a model or a word list.

    The content of the file is part of the operator's identity, beside the path: if the file is
    replaced, an unfinished run starts afresh, and a finished result is made again. Mark the type of
    the path, also inside of others:

        def grade(record, model: Annotated[str, FileContent] = "model.bin"): ...

        def mask(record, words: Annotated[Path, FileContent] | list[str]): ...

    A folder counts by the names and bytes of its files. A value that is not the path of an existing
    file or folder counts as the value alone.
    """

    __slots__ = ()


def content_of(path: "str | os.PathLike[str]") -> str:
    """Return the digest of a file, or of the files of a folder; empty if there is none to read.

    It is kept for as long as the status of the files is the same. Of an object on a store, it is
    the entity tag.
    """
    if not os.fspath(path):
        return ""  # as a path it would be the working directory
    try:
        if is_url(path):
            from dagster_dataops.datasets.remote_input import object_of  # threads

            return _file_digest(object_of(str(path)))
        place = Path(path).expanduser().absolute()
        mode = place.stat().st_mode
        if stat.S_ISREG(mode):
            return _file_digest(place)
        return _folder_digest(place) if stat.S_ISDIR(mode) else ""
    # A file that cannot be read is the error of the operator that reads it.
    except (OSError, ValueError, RuntimeError, DataOpsError):
        return ""


def contents_of(options: Iterable[OptionSpec], values: Mapping[str, Any]) -> dict[str, str]:
    """Return the digests of the files that options name, by the names of these options."""
    by_option = {}
    for option in options:
        paths = (
            []
            if option.name not in values
            else marked_paths(option.annotation, values[option.name])
        )
        digests = [content_of(path) for path in paths if not is_version(path)]
        if any(digests):
            joined = xxhash.xxh3_128_hexdigest("\n".join(digests).encode())
            by_option[option.name] = digests[0] if len(digests) == 1 else f"xxh3:{joined}"
    return by_option


def is_marked(annotation: Any) -> bool:
    """Return whether an annotation, also as text, marks a path."""
    if isinstance(annotation, str):
        return re.search(_IN_TEXT, annotation) is not None
    if FileContent in getattr(annotation, "__metadata__", ()):
        return True
    return any(map(is_marked, typing.get_args(annotation)))


def marked_paths(annotation: Any, value: Any) -> "Iterator[str | os.PathLike[str]]":
    """Yield the paths in a value that its annotation marks, in order."""
    if not is_marked(annotation):
        return
    origin, members = typing.get_origin(annotation), typing.get_args(annotation)
    if isinstance(annotation, str) or (origin is Annotated and not is_marked(members[0])):
        if isinstance(value, (str, os.PathLike)):
            yield value
    elif origin is Annotated:
        yield from marked_paths(members[0], value)
    elif origin in UNIONS:
        yield from dict.fromkeys(path for member in members for path in marked_paths(member, value))
    elif isinstance(value, Mapping) and issubclass(origin, Mapping):
        yield from (path for item in value.values() for path in marked_paths(members[-1], item))
    elif isinstance(value, (Sequence, set, frozenset)) and not isinstance(value, (str, bytes)):
        yield from (path for item in value for path in marked_paths(members[0], item))


def _file_digest(location: Location) -> str:
    return cached_digest(location, state_at(location))


def _folder_digest(folder: Path) -> str:
    """Return the digest of the names and bytes of the files in a folder, also behind links."""
    digest = xxhash.xxh3_128()
    seen: set[str] = set()  # a link may lead to a folder around it
    for place, folders, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(place)
        folders[:] = [] if real in seen else sorted(folders)
        seen.add(real)
        for path in (Path(place, name) for name in sorted(names)):
            if path.is_file():
                digest.update(os.fsencode(path.relative_to(folder)))
                digest.update(f"\0{_file_digest(path)}\0".encode())
    return f"xxh3:{digest.hexdigest()}"
