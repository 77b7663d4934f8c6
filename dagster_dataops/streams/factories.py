"""Where streams begin: sequences, iterators, and the files of a folder."""

import os
import pickle
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Sequence as SequenceOf
from typing import Any

from dagster_dataops.errors import StreamArgumentError, StreamDefinitionError
from dagster_dataops.streams.core.iterators import Iterated
from dagster_dataops.streams.core.sequences import Sequence
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder
from dagster_dataops.streams.files.blocks import BLOCK_BYTES, LEAST_BLOCK_BYTES
from dagster_dataops.streams.files.file_sets import INFER, FileSet, GivenPaths
from dagster_dataops.streams.files.file_stages import Origin
from dagster_dataops.streams.files.jsonl import JsonLines
from dagster_dataops.streams.files.listing import Files


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


def list_files(
    path: str | os.PathLike[str],
    pattern: str | None = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> DataPipelineBuilder:
    """List the files below a folder, ``part2`` before ``part10``, as texts.

    Args:
        path: The folder, also as a URL that fsspec knows; a file is listed alone.
        pattern: Which of them, as ``*.jsonl``; it is held against the whole path, and ``*``
            stands for slashes as well.
        storage_options: Arguments of fsspec's file system, such as a login.
    """
    return DataPipelineBuilder(Files(os.fspath(path), pattern, dict(storage_options or {})))


def read_jsonl(
    path: GivenPaths,
    *,
    block_size: int | None = None,
    file_key: str | None = None,
    line_key: str | None = None,
    compression: str | None = INFER,
    storage_options: Mapping[str, Any] | None = None,
) -> DataPipelineBuilder:
    """Read the records of jsonl files; blank lines are passed over.

    Plain files of this machine go on from a position at once, and so do those by URL where their
    server sends parts of files. Packed files are unpacked again up to it, but not parsed.

    Args:
        path: A file, a list of files, wildcards such as ``part-*.jsonl``, or a folder with all
            files below it but those whose names, or folders' names, begin with ``.`` or ``_``.
            Wildcards and folders give ``part2`` before ``part10``. Any of them may be a URL that
            fsspec knows, such as ``s3://…`` or ``zip://*.jsonl::https://…/all.zip``.
        block_size: How many bytes to read at once, at least 1024.
        file_key: With it, the key of a record's file.
        line_key: With it, the key of a record's line, counted from 1.
        compression: ``gzip``, ``bz2``, ``xz``, ``zstd`` or ``None``; ``infer`` goes by the end of
            each name.
        storage_options: Arguments of fsspec's file systems, such as a login. They are no part of
            a state.
    """
    files = FileSet.of("read_jsonl", path, compression, storage_options)
    size = block_bytes("read_jsonl", block_size)
    return DataPipelineBuilder(JsonLines(files, size, Origin(file_key, line_key)))


def block_bytes(stage: str, given: int | None) -> int:
    """Return the size of blocks that was asked for, or the usual one.

    Raises:
        StreamDefinitionError: It is too small.
    """
    if given is not None and given < LEAST_BLOCK_BYTES:
        reason = f"block_size is {given}; it must be at least {LEAST_BLOCK_BYTES} bytes"
        raise StreamDefinitionError(stage, reason)
    return given or BLOCK_BYTES
