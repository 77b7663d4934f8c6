"""datatrove's local executor.

It is parallel over files only: the input is split before the clock.
"""

from pathlib import Path

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.base import PipelineStep
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter

from benchmarks import operators
from benchmarks.ideal import Range
from benchmarks.reporting import Stopwatch


class Apply(PipelineStep):
    """Calls a function on each document in the form of the original record."""

    name = "apply"

    def __init__(self, function):
        super().__init__()
        self.function = function

    def run(self, data, rank=0, world_size=1):
        for document in data:
            made = self.function({"id": document.id, "text": document.text})
            document.id, document.text = made.pop("id"), made.pop("text")
            document.metadata = made
            yield document


def cut(source: Path, folder: Path, pieces: int) -> None:
    """Write ``source`` as files of whole lines."""
    folder.mkdir()
    size = source.stat().st_size
    for number in range(pieces):
        part = Range(source, size * number // pieces, size * (number + 1) // pieces)
        with (folder / f"{number:05d}.jsonl").open("wb") as file:
            file.writelines(part.lines())


if __name__ == "__main__":
    before = Stopwatch().specification
    out, workers = Path(before["out"]), before["workers"]
    cut(Path(before["source"]), out / "pieces", workers)
    watch = Stopwatch()
    steps = [
        JsonlReader(str(out / "pieces")),
        Apply(getattr(operators, before["operator"])),
        JsonlWriter(str(out / "result"), "${rank}.jsonl", compression=None, expand_metadata=True),
    ]
    logs = str(out / "logs")
    LocalPipelineExecutor(steps, tasks=workers, workers=workers, logging_dir=logs).run()
    watch.finish(sorted((out / "result").iterdir()))
