"""Merge the results of named outputs into one file, in the order in which they were emitted.

It is the segment that the kept journal of the node describes.
"""

import shutil
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

from dagster_dataops.checkpoints.checkpoint import CheckpointContent, folders, fresh
from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder
from dagster_dataops.checkpoints.journal.kept_journal import SEGMENT
from dagster_dataops.checkpoints.journal.segments import segment_path
from dagster_dataops.datasets.durable_files import COPY_BYTES, make_folder, storage
from dagster_dataops.datasets.lines import Interval, line_blocks, split_lines
from dagster_dataops.datasets.published_files import JOURNAL
from dagster_dataops.datasets.writer import JsonlWriter, link_or_copy
from dagster_dataops.foundation.places.opening import opened
from dagster_dataops.foundation.places.range_source import read_blocks, size_of


def seed_folder(folder: NodeFolder, take: Callable[[Path], bool]) -> Path:
    """Make the folder of a new checkpoint whose first segment is the published result.

    Folders without a journal are deleted: it is written last, and without it there is no
    checkpoint.

    Args:
        folder: Of the node; its results are intact.
        take: As `Claim.take_result`.
    """
    for path in folders(folder.checkpoints):
        if not (path / JOURNAL).exists():
            shutil.rmtree(path, ignore_errors=True)
    new = fresh(folder.checkpoints).folder
    make_folder(new)
    segment = segment_path(new, SEGMENT)
    if not take(segment):
        folder.place.refresh()  # the copy of a large result
        put_result(folder, segment)
    return new


def put_result(folder: NodeFolder, target: Path) -> None:
    """Put the published result of a node at ``target``, as a link if it is one plain file.

    Args:
        folder: Of the node; its results are intact.
        target: The file to make.
    """
    manifest = Manifest.of(folder)
    folder = folder if manifest is None else folder.in_form(manifest.form)
    if manifest is None or not (manifest.outputs or manifest.parted or manifest.compressed_bytes):
        link_or_copy(folder.result.resolve(), target)
        return
    with JsonlWriter(target) as writer:
        if manifest.outputs:
            for lines in _merged(folder, manifest):
                writer.write(b"".join(lines), len(lines))
        else:
            with storage(folder.result, "read it back"), opened(folder.result) as source:
                for block in read_blocks(source, COPY_BYTES):
                    writer.write(block, 0)
        writer.publish()


def _lines(result: Path) -> Generator[bytes, None, None]:
    """Yield the lines of a result, with their newlines; one file is open at a time."""
    with opened(result) as source:
        for _, block in line_blocks(source, Interval(0, size_of(source)), COPY_BYTES):
            yield from split_lines(block)


def _merged(folder: NodeFolder, manifest: Manifest) -> Iterator[list[bytes]]:
    """Yield the lines of each kept span. Where a file is damaged, lines are missing."""
    table = CheckpointContent.read(folder.path, folder.kept.name).table
    with ExitStack() as stack, storage(folder.path, "merge the outputs of the published result"):
        read = [
            partial(next, stack.enter_context(closing(_lines(place.result))), b"")
            for place, _ in manifest.parts(folder).values()
        ]
        for span, _, _ in table.ordered():
            notes = table.notes.get(span.start)
            outputs = notes.outputs() if notes else []
            yield [read[output]() for output in outputs if output < len(read)]
