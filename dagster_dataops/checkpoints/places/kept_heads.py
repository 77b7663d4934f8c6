"""`KeptHeads`: earlier heads of a node in a bucket, whose files stay.

A version costs one small object, ``.history/<number>.json``, with the head that was replaced: the
manifest, and the keys of the files. These files are not copied, and not deleted as long as a kept
head names them; of a file in parts, neither are the objects with the parts.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import orjson

from dagster_dataops.checkpoints.places.head_check import checked_head
from dagster_dataops.datasets.published_files import HISTORY
from dagster_dataops.foundation.places.joined_object import is_list, parts_of_list
from dagster_dataops.foundation.places.result_store import ReadableStore, ResultStore

_ENDING: Final = ".json"
_DIGITS: Final = 8


class KeptHeads:
    """The earlier heads of a node."""

    def __init__(self, store: ResultStore, key: str) -> None:
        self._store, self._key = store, key

    def numbers(self) -> list[int]:
        """Return their numbers, the oldest first.

        Raises:
            StorageError: The store cannot be reached.
        """
        start = f"{self._key}/{HISTORY}"
        files = (key[len(start) + 1 :] for key in self._store.names(start))
        names = (name.removesuffix(_ENDING) for name in files if name.endswith(_ENDING))
        return sorted(int(name) for name in names if name.isascii() and name.isdecimal())

    def content(self, number: int) -> dict[str, Any]:
        """Return a head; an empty one if it is gone.

        Raises:
            PathEscapeError: It names files outside the folder of the node.
            ResultMissingError: It is damaged.
        """
        key = self._object(number)
        stored = self._store.read(key)
        if stored is None:
            return {}
        content = None  # damaged
        with suppress(orjson.JSONDecodeError):
            content = orjson.loads(stored[0])
        return checked_head(content, self._key, f"{self._store.url}/{key}")

    def add(self, content: dict[str, Any]) -> None:
        """Keep a head under the next number."""
        number = max(self.numbers(), default=0) + 1
        self._store.put(self._object(number), orjson.dumps(content, option=orjson.OPT_INDENT_2))

    def remove(self, numbers: Sequence[int]) -> set[str]:
        """Delete heads; return the keys of the objects that they named, which are not deleted.

        Raises:
            StorageError: The store cannot be reached.
        """
        keys = self._keys_of(numbers)
        self._store.remove(map(self._object, numbers))
        return keys

    def keys(self) -> set[str]:
        """Return the keys of the objects of all heads, see `objects_of`.

        Raises:
            StorageError: The store cannot be reached.
            PathEscapeError: A head names files outside the folder of the node.
        """
        return self._keys_of(self.numbers())

    def _keys_of(self, numbers: Iterable[int]) -> set[str]:
        files = (self.content(number).get("home", {}).get("files", {}) for number in numbers)
        return {key for listed in files for key in objects_of(self._store, listed)}

    def path(self, folder: Path, number: int) -> Path:
        """Return the path of a head below the folder of the node in a working copy."""
        return folder / HISTORY / f"{number:0{_DIGITS}d}{_ENDING}"

    def _object(self, number: int) -> str:
        return f"{self._key}/{HISTORY}/{number:0{_DIGITS}d}{_ENDING}"


def objects_of(store: ReadableStore, files: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """Return the keys of the objects of published files, and of the parts of those in parts.

    Raises:
        StorageError: A list of parts cannot be read.
    """
    keys = {file["key"] for file in files.values() if file["key"]}
    return keys | {part for key in keys if is_list(key) for part in parts_of_list(store, key)}
