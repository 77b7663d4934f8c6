"""Two kinds of operators that the package does not have, each with its method and runner.

``sorting``: ``sort_key(self, record)`` runs like ``sketch``; the result is the input, sorted.
``model``: ``fit(self, records, folder)`` makes a folder that others take as an option.
"""

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson
from typing_extensions import override

from dagster_dataops import data_register
from dagster_dataops.checkpoints.journal.kept_journal import KeptJournal
from dagster_dataops.checkpoints.journal.segment_reader import outputs
from dagster_dataops.checkpoints.publish.compose import compose
from dagster_dataops.checkpoints.publish.drafts import Drafts
from dagster_dataops.datasets.lines import iterate_lines
from dagster_dataops.datasets.writer import JsonlWriter
from dagster_dataops.execution.checkpoint_sink import CheckpointSink
from dagster_dataops.execution.node_attempt import NodeAttempt
from dagster_dataops.execution.runners.record_runner import RecordRunner
from dagster_dataops.foundation.places.opening import opened
from dagster_dataops.operators.kinds.kind import Inputs, OperatorKind, Result
from dagster_dataops.operators.kinds.kind_table import ARTEFACT, register_kind

if TYPE_CHECKING:
    from array import array

SORTING: Final = register_kind(
    OperatorKind(
        name="sorting",
        method="sort_key",
        of_functions=True,
        takes="one record",
        inputs=Inputs.RECORDS,
        runner=f"{__name__}:SortingRunner",
        by_record=True,
        recorded_as="key",
        agents=True,
        as_a_whole="records are sorted when the keys of all are known",
    )
)
MODEL: Final = register_kind(
    OperatorKind(
        name="model",
        method="fit",
        inputs=Inputs.ITERATORS,
        path_parameter="folder",
        runner=ARTEFACT.runner,
        result=Result.FOLDER,
        as_a_whole="a model is fitted to all records at once",
        always_saved="others take the model",
        not_exported="exports records; copy the model instead",
    )
)


class SortingRunner(RecordRunner):
    """Journals the keys as records, and then sorts the lines of the input."""

    @override
    def compose(self, attempt: NodeAttempt, sink: CheckpointSink) -> Drafts | list[int]:
        checkpoint = sink.checkpoint
        return compose(
            attempt.folder, checkpoint, sink.work.dataset, traced=False, select=_SortedLines(sink)
        )


class _SortedLines:
    def __init__(self, sink: CheckpointSink) -> None:
        self._sink = sink
        self.tick = sink.tick

    def write(self, results: JsonlWriter, failed: "array[int]", kept: KeptJournal | None) -> int:
        """Write all lines with a key, sorted."""
        checkpoint, gone = self._sink.checkpoint, set(failed)
        spans = outputs(checkpoint.segments, checkpoint.table.ordered(), [])
        keys = [
            orjson.loads(line)["key"]
            for span, output in spans
            for line in output[: span.output_bytes].splitlines()
        ]
        with opened(self._sink.work.dataset.path) as source:
            lines = iterate_lines(source, [self._sink.work.content])
            left = [line.text for line in lines if line.start not in gone]
        for key in sorted(range(len(keys)), key=keys.__getitem__):
            results.write(left[key].strip() + b"\n", 1)
        return 0


further = data_register.new_group("further_kinds")


class Sorted(further):
    """Sort records by a column."""

    def __init__(self, by: str = "n", wait: float = 0.0, log: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.by, self.wait, self.log = by, wait, log

    def sort_key(self, record: dict) -> Any:
        time.sleep(self.wait)
        if self.log:
            with Path(self.log).open("a") as log:
                log.write(f"{os.getpid()} {record['n']}\n")
        return -record[self.by]


@data_register("data.further_kinds", rewrite_func="sort_key", _concurrency_mode="thread")
def by_length(record: dict, column: str = "text") -> int:
    """Sort records by the length of a text.

    Args:
        record: It.
        column: The text.
    """
    return len(record[column])


class Mean(further):
    """Compute the mean of a column."""

    def fit(self, records: Any, folder: Path) -> None:
        numbers = [record["n"] for record in records]
        (folder / "mean.json").write_text(json.dumps(sum(numbers) / len(numbers)))


class Centre(further):
    """Subtract a mean."""

    def __init__(self, mean: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.mean = json.loads((Path(mean) / "mean.json").read_text())

    def forward(self, record: dict) -> dict:
        return {"n": record["n"] - self.mean}
