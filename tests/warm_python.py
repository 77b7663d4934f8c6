"""An interpreter that has imported modules once and runs each piece of code in a fork of itself."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple, Self

_FORKS = """
import gc, json, os, sys

gc.collect()
gc.freeze()  # a collection in a fork would copy all that was imported
for line in sys.stdin:
    order = json.loads(line)
    child = os.fork()
    if not child:
        for descriptor in (1, 2):
            path = order["outputs"][descriptor - 1]
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
        sys.stdin.close()
        os.environ.update(order["environment"])
        os.chdir(order["folder"])
        sys.path[:0] = order["path"]
        sys.argv = ["-c", *order["arguments"]]
        exec(compile(order["code"], "<code>", "exec"), {"__name__": "__main__"})
        sys.exit()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


# What runs of Dagster in processes of their own import: the assets, and the storages of Dagster.
DAGSTER: Final = (
    "dagster.components",
    "dagster._core.execution.execute_in_process",
    "dagster._core.instance.factory",
    "dagster._core.storage.fs_io_manager",
    "dagster._core.storage.local_compute_log_manager",
    "dagster._core.storage.schedules.sqlite",
    "dagster._core.storage.sqlite_storage",
    "dagster_dataops.assets.definitions",
    "dagster_dataops.assets.steps.step_work",
    "dagster_dataops.execution.executor",
    "dagster_dataops.execution.runners.record_runner",
    "dagster_dataops.execution.workplaces.processes",
    "dagster_dataops.execution.workplaces.single",
    "dagster_dataops.execution.workplaces.threads",
    "dagster_dataops.pipelines.local_run",
    "upath",
)

# Code for `WarmPython` whose arguments are those of Python: a script or, behind ``-m``, a module.
SCRIPT: Final = """
import runpy, sys

del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
MODULE: Final = """
import runpy, sys

del sys.argv[0]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


class Ended(NamedTuple):
    """How a piece of code ended: the exit status, the standard output and the standard error."""

    status: int
    output: str
    errors: str


class WarmPython:
    """Runs code as ``python -c`` does, without the seconds that imports take.

    Args:
        *modules: Names of modules to import once.
    """

    def __init__(self, *modules: str) -> None:
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith("DATAOPS_")
        }
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"import {', '.join(modules)}\n{_FORKS}"],
            cwd=Path(__file__).parents[1],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=kept,
        )

    def run(
        self,
        code: str,
        *arguments: str,
        folder: Path,
        path: Sequence[Path] = (),
        **environment: str,
    ) -> str:
        """Run ``code`` in a folder and return its standard output.

        Args:
            code: Python code.
            *arguments: Arguments of the command line.
            folder: The working directory; its modules can be imported.
            path: More folders whose modules can be imported.
            **environment: Variables to set.

        Raises:
            AssertionError: The code failed; with the end of its output.
        """
        ended = self.ended(code, *arguments, folder=folder, path=path, **environment)
        assert ended.status == 0, (ended.output + ended.errors)[-3000:]
        return ended.output

    def ended(
        self,
        code: str,
        *arguments: str,
        folder: Path,
        path: Sequence[Path] = (),
        **environment: str,
    ) -> Ended:
        """Run ``code`` as `run` does, and return how it ended, even if it failed."""
        outputs = [folder / "output.txt", folder / "errors.txt"]
        paths = [*map(str, (folder, *path)), str(Path(__file__).parents[1])]
        order = {
            "code": code,
            "arguments": arguments,
            "folder": str(folder),
            "path": paths,
            "environment": {"PYTHONPATH": os.pathsep.join(paths), **environment},
            "outputs": [str(output) for output in outputs],
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        status = int(self._process.stdout.readline())
        return Ended(status, *(output.read_text() for output in outputs))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End it, even if a process that was forked here still holds the pipe of its input."""
        with self._process:
            self._process.kill()
