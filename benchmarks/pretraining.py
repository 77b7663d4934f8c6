"""The pretraining pipeline of the library, in a separate process.

``python -m benchmarks.pretraining SPECIFICATION``, with the keys ``source``, ``out`` and
``chained``.
"""

from pathlib import Path

from benchmarks.ours import LATE
from benchmarks.reporting import Stopwatch
from dagster_dataops import config
from dagster_dataops.library.pretraining_pipeline import pretraining_pipeline

_IMPORTED = LATE  # as for `benchmarks.ours`


def main() -> None:
    """Run the pipeline and report."""
    watch = Stopwatch()
    given = watch.specification
    config.data_process_path = given["out"]
    made = pretraining_pipeline(chained=given["chained"])
    last = list(made.materialize(Path(given["source"])).values())[-1]
    watch.finish([last.dataset.path], kept=last.manifest.rows_out)


if __name__ == "__main__":
    main()
