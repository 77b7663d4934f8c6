"""Where streams begin: sequences, iterators, and the files of a folder."""

import os
import pickle
from collections.abc import Callable, Iterator
from collections.abc import Sequence as SequenceOf
from typing import Any

from dagster_dataops.errors import StreamArgumentError, StreamDefinitionError
from dagster_dataops.streams.blocks import BLOCK_BYTES, LEAST_BLOCK_BYTES
from dagster_dataops.streams.iterators import Iterated
from dagster_dataops.streams.jsonl import JsonLines
from dagster_dataops.streams.listing import Files
from dagster_dataops.streams.pipeline import DataPipelineBuilder
from dagster_dataops.streams.sequences import Sequence


def read_sequence(seq: SequenceOf[Any]) -> DataPipelineBuilder:
    """Read a list or tuple, which is copied.

    Raises:
        StreamArgumentError: It is something else.
    """
    if not isinstance(seq, (list, tuple)):
        reason = f"seq is a {type(seq).__name__}; it must be a list or tuple"
        raise StreamArgumentError("read_sequence", reason)
    return DataPipelineBuilder(Sequence.of(seq))


def read_iterator(
    iterator: Iterator[Any],
    reset_fn: Callable[[Iterator[Any]], Iterator[Any]],
    infinite: bool,
    skip_pickling_check: bool = False,
) -> DataPipelineBuilder:
    """Read an iterator.

    Args:
        iterator: With ``state_dict`` and ``load_state_dict``, a position is found at once; of any
            other, the items before it are read again.
        reset_fn: Returns an iterator at the start, given one anywhere; also called at first.
        infinite: Whether it never ends.
        skip_pickling_check: Whether an iterator that cannot be pickled will do.

    Raises:
        StreamArgumentError: It cannot be pickled, and so not be sent to another process.
    """
    if not skip_pickling_check:
        try:
            pickle.dumps(iterator)
        except Exception as error:
            reason = f"the iterator cannot be pickled ({error}); skip_pickling_check=True takes it"
            raise StreamArgumentError("read_iterator", reason) from error
    return DataPipelineBuilder(Iterated(iterator, reset_fn, infinite))


def list_files(path: str | os.PathLike[str], pattern: str | None = None) -> DataPipelineBuilder:
    """List the files below a folder, ``part2`` before ``part10``, as texts.

    Args:
        path: The folder; a file is listed alone.
        pattern: Which of them, as ``*.jsonl``; it is held against the whole path, and ``*``
            stands for slashes as well.
    """
    return DataPipelineBuilder(Files(os.fspath(path), pattern))


def read_jsonl(
    path: str | os.PathLike[str], *, block_size: int | None = None
) -> DataPipelineBuilder:
    """Read the records of a jsonl file; blank lines are passed over.

    Args:
        path: The file.
        block_size: How many bytes to read at once, at least 1024.
    """
    return DataPipelineBuilder(JsonLines(os.fspath(path), block_bytes("read_jsonl", block_size)))


def block_bytes(stage: str, given: int | None) -> int:
    """Return the size of blocks that was asked for, or the usual one.

    Raises:
        StreamDefinitionError: It is too small.
    """
    if given is not None and given < LEAST_BLOCK_BYTES:
        reason = f"block_size is {given}; it must be at least {LEAST_BLOCK_BYTES} bytes"
        raise StreamDefinitionError(stage, reason)
    return given or BLOCK_BYTES
