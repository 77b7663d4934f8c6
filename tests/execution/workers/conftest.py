"""The fixture that runs an operator in a worker of the fork server."""

import os
import sys
from pathlib import Path

import pytest

from tests.execution.helpers import (
    node,
    run,
    second_thread,
    write_input,
)

_WHERE = """
import os
import sys

from dagster_dataops import data_register


@data_register("data.where", _concurrency_mode="process", _max_workers=1)
def where(record):
    print("said by a worker", flush=True)
    return {
        "version": VERSION,
        "variable": os.environ.get("WHERE"),
        "folder": os.getcwd(),
        "open": sorted(os.listdir("/proc/self/fd")),
        "server": os.getppid(),
        "dagster": "dagster" in sys.modules,
    }
"""


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a function that runs an operator of a module on disk in a worker."""
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    (tmp_path / "modules").mkdir()
    dataset = write_input(tmp_path / "input.jsonl", [{"n": 1}])

    def call(version: int):
        code = _WHERE.replace("VERSION", str(version))
        path = tmp_path / "modules" / "where_module.py"
        path.write_text(code)
        os.utime(
            path, (version, version)
        )  # so that its bytecode is not taken for that of the last version
        sys.modules.pop("where_module", None)
        import where_module  # type: ignore[import-not-found]

        with second_thread(True):
            report = run(where_module.where(), dataset, node(tmp_path), run=str(version))
        return next(iter(report.dataset))

    return call
