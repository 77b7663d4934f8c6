"""Concatenate several inputs into one file."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.durable_files import COPY_BYTES
from dagster_dataops.datasets.lines import Interval, opened_content, read_lines
from dagster_dataops.datasets.writer import JsonlWriter


def gathered(inputs: Sequence[JsonlDataset], path: Path) -> JsonlDataset:
    """Return the only input, or the concatenation of all inputs in a file at ``path``.

    The number of rows of the file is known only if it is known for every input.

    Raises:
        InputError: An input cannot be read, or changed since its handle was made.
    """
    if len(inputs) == 1:
        return inputs[0]
    with JsonlWriter(path) as writer:
        for dataset in inputs:
            _copy(dataset, writer)
        joined = writer.publish()
    rows = [dataset.rows for dataset in inputs if dataset.rows is not None]
    return replace(joined, rows=sum(rows) if len(rows) == len(inputs) else None)


@contextmanager
def removed_afterwards(path: Path) -> Iterator[None]:
    """Delete the file at ``path`` after the block, and its folder if it is empty then."""
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)
            path.parent.rmdir()


def _copy(dataset: JsonlDataset, writer: JsonlWriter) -> None:
    before = dataset.stamp()
    dataset.check_content()
    with opened_content(dataset.location) as (source, interval):
        position, end = interval
        last = b"\n"
        while position < end:
            cut = min(position + COPY_BYTES, end)
            block = read_lines(source, Interval(position, cut))
            writer.write(block, 0)
            position = cut
            last = block[-1:]
    dataset.check_unchanged(before)
    if last != b"\n":
        writer.write(b"\n", 0)
