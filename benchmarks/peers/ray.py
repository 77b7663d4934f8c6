"""Ray Data: read_json, map, write_json. The start of Ray itself is not measured."""

import os
from pathlib import Path

os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_DATA_DISABLE_PROGRESS_BARS="1")

import ray
import ray.data

from benchmarks import operators
from benchmarks.reporting import Stopwatch

if __name__ == "__main__":
    before = Stopwatch().specification
    ray.init(
        num_cpus=before["workers"],
        include_dashboard=False,
        logging_level="ERROR",
        object_store_memory=1_000_000_000,
    )
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.preserve_order = True
    watch = Stopwatch()
    out = Path(before["out"]) / "result"
    function = getattr(operators, before["operator"])
    ray.data.read_json(before["source"], lines=True).map(function).write_json(
        str(out), force_ascii=False
    )
    watch.finish(sorted(out.iterdir()))
    ray.shutdown()
