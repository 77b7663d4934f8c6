"""Put a published result into a checkpoint as a segment, so that its records are not run again."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder
from dagster_dataops.datasets.durable_files import storage
from dagster_dataops.datasets.writer import JsonlWriter, link_or_copy
from dagster_dataops.operators.named_outputs import tags_of

_ROUTES: Final = 1 << 16  # lines merged at a time


def put_segment(folder: NodeFolder, target: Path) -> None:
    """Put the published result at ``target``, as a link if possible.

    The results of several outputs are merged into one file of tagged lines, in the order in which
    the operator emitted them.

    Args:
        folder: Of the node; its result is intact.
        target: The file of the segment.
    """
    manifest = Manifest.load(folder.manifest)
    if manifest is None or not manifest.outputs:
        link_or_copy(folder.result.resolve(), target)
        return
    with JsonlWriter(target) as writer:
        for lines in _merged(folder, manifest):
            writer.write(b"".join(lines), len(lines))
        writer.publish()


def _merged(folder: NodeFolder, manifest: Manifest) -> Iterator[list[bytes]]:
    """Yield the tagged lines of all outputs in the order of the routes."""
    parts = manifest.parts(folder)
    with ExitStack() as stack, storage(folder.routes, "merge the outputs of the published result"):
        routes = stack.enter_context(folder.routes.open("rb"))
        next_line = {
            tag[0]: (tag, stack.enter_context(parts[name][0].result.open("rb")).readline)
            for name, tag in tags_of(tuple(parts)).items()
        }
        while block := routes.read(_ROUTES):
            # A damaged route leaves out a line: the spans after it fail their checksums.
            known = [next_line[tag] for tag in block if tag in next_line]
            yield [tag + readline() for tag, readline in known]
