"""Data-Juicer's default executor, with the operators as its own mappers."""

import json
import os
import sys
from pathlib import Path

OUT = Path(json.loads(sys.argv[1])["out"])
os.environ.update(
    HF_HUB_OFFLINE="1",
    HF_DATASETS_CACHE=str(OUT / "cache"),
    DATA_JUICER_CACHE_HOME=str(OUT / "juicer"),
    PIP_NO_INDEX="1",  # otherwise it would install packages
    UV_OFFLINE="1",
)

from data_juicer.config import init_configs
from data_juicer.core import DefaultExecutor

from benchmarks.reporting import Stopwatch

if __name__ == "__main__":
    before = Stopwatch().specification
    result = OUT / "result.jsonl"
    configuration = OUT / "configuration.yaml"
    content = {
        "project_name": "benchmark",
        "dataset_path": before["source"],
        "export_path": str(result),
        "work_dir": str(OUT / "work"),
        "job_id": "benchmark",
        "np": before["workers"],
        "text_keys": "text",
        "custom_operator_paths": [str(Path(__file__).with_name("datajuicer_mappers.py"))],
        "process": [{f"benchmark_{before['operator']}_mapper": {}}],
        "executor_type": "default",
    }
    configuration.write_text(json.dumps(content), encoding="utf-8")  # JSON is YAML
    prepared = init_configs(["--config", str(configuration)])
    watch = Stopwatch()
    DefaultExecutor(prepared).run(skip_return=True)
    watch.finish(sorted(OUT.glob("result*.jsonl")))
