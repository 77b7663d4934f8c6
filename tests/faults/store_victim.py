"""Run an operator with results on an object store; the tests kill it.

Usage: python store_victim.py ROOT SCRATCH INPUT MODE
"""

import sys
import time

from dagster_dataops import JsonlDataset, config, data_register
from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.checkpoints.resume.resume_policy import ResumePolicy
from dagster_dataops.execution.executor import OperatorExecutor
from dagster_dataops.execution.run_report import RunContext

PAUSE = 0.0015  # seconds a record


@data_register("data.store_victim", _max_workers=2)
def work(data: dict) -> dict:
    time.sleep(PAUSE)
    if data["n"] % 50 == 3:
        raise ValueError("three")
    return {**data, "square": data["n"] ** 2}


def main(root: str, scratch: str, source: str, mode: str) -> None:
    config.data_process_scratch = scratch
    config.data_process_path = root
    operator = work(_concurrency_mode=mode)
    context = RunContext(run=scratch, resume=ResumePolicy.AUTO, flush_seconds=0.5)
    folder = NodeFolder(config.data_process_path / "work", "work")
    report = OperatorExecutor(context).run(operator, [JsonlDataset.of_file(source)], folder)
    manifest = report.manifest
    sys.stdout.write(f"{manifest.resumed} {len(manifest.attempts)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
