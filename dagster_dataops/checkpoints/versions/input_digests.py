"""Digests of the input records of a result, to match the records of two versions by their input.

An input may be replaced at any time, so the records of an earlier one are not there any more. The
file has a line of JSON with the digest of the result that it belongs to, and 8 bytes for each
record of the input, in order.
"""

import os
import sys
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import orjson
import xxhash

from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.durable_files import create_anew, draft_of, storage
from dagster_dataops.datasets.lines import BLOCK_BYTES, line_blocks, opened_content, split_lines

_ITEM_BYTES: Final = 8
_LONGEST_HEAD: Final = 1 << 16


def write_input_digests(folder: NodeFolder, dataset: JsonlDataset, manifest: Manifest) -> None:
    """Write the draft of the digests of an input durably.

    Raises:
        StorageError: The disk refuses.
        InputError: The input cannot be read.
    """
    draft = draft_of(folder.input_digests)
    with storage(draft, "write the digests of the input"):
        head = orjson.dumps({"result": _result(manifest)}, option=orjson.OPT_APPEND_NEWLINE)
        with os.fdopen(create_anew(draft), "wb") as file:
            file.write(head)
            for numbers in _digests_of(dataset):
                file.write(_little(numbers).tobytes())
            file.flush()
            os.fsync(file.fileno())


def _digests_of(dataset: JsonlDataset) -> Iterator["array[int]"]:
    """Yield the digests of the records of a dataset, a block at a time.

    White space around a record does not count.
    """
    with opened_content(dataset.location) as (source, content):
        for _, block in line_blocks(source, content, BLOCK_BYTES):
            lines = map(bytes.strip, split_lines(block))
            yield array("Q", map(xxhash.xxh3_64_intdigest, filter(None, lines)))


class InputDigests:
    """The digests of the input records of a result."""

    def __init__(self, path: Path, start: int, count: int) -> None:
        self._path, self._start, self._count = path, start, count

    @classmethod
    def of(cls, folder: NodeFolder, manifest: Manifest) -> "InputDigests | None":
        """Return the digests of the input of a result; ``None`` if they were not written."""
        path = folder.input_digests
        try:
            with path.open("rb") as file:
                head = file.readline(_LONGEST_HEAD)
            known = orjson.loads(head)["result"] == _result(manifest)
            whole = path.stat().st_size == len(head) + manifest.rows_in * _ITEM_BYTES
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return cls(path, len(head), manifest.rows_in) if known and whole else None

    def __len__(self) -> int:
        return self._count

    def read(self, first: int, count: int) -> "array[int]":
        """Return digests from a record on; fewer only at the end.

        Raises:
            StorageError: The file cannot be read.
        """
        with storage(self._path, "read the digests of the input"), self._path.open("rb") as file:
            file.seek(self._start + first * _ITEM_BYTES)
            return _little(array("Q", file.read(count * _ITEM_BYTES)))


def _little(numbers: "array[int]") -> "array[int]":
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def _result(manifest: Manifest) -> list[str]:
    """Return the identity of a result: the digest of its bytes, and its runs."""
    return [manifest.fingerprint, *manifest.attempts]
