"""Makes one input of several: their lines one after the other, in one file."""

from collections.abc import Sequence
from pathlib import Path

from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.files import COPY_BYTES, read_range
from dagster_dataops.datasets.lines import content_interval
from dagster_dataops.datasets.writing import JsonlWriter


def gathered(inputs: Sequence[JsonlDataset], path: Path) -> JsonlDataset:
    """Return the only input, or all of them copied into ``path`` in order.

    Rows are counted only if every input's are known.
    """
    if len(inputs) == 1:
        return inputs[0]
    with JsonlWriter(path) as writer:
        for dataset in inputs:
            _copy(dataset, writer)
        joined = writer.publish()
    rows = [dataset.rows for dataset in inputs if dataset.rows is not None]
    return JsonlDataset(
        path=joined.path,
        size_bytes=joined.size_bytes,
        rows=sum(rows) if len(rows) == len(inputs) else None,
        fingerprint=joined.fingerprint,
    )


def _copy(dataset: JsonlDataset, writer: JsonlWriter) -> None:
    position, end = content_interval(dataset.path)
    with dataset.path.open("rb") as file:
        last = b"\n"
        while position < end:
            block = read_range(file.fileno(), position, min(COPY_BYTES, end - position))
            writer.write(block, 0)
            position += len(block)
            last = block[-1:]
    if last != b"\n":
        writer.write(b"\n", 0)
