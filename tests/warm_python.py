"""An interpreter that has imported modules once and runs each piece of code in a fork of itself."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Self

_FORKS = """
import json, os, sys

for line in sys.stdin:
    order = json.loads(line)
    child = os.fork()
    if not child:
        output = os.open(order["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for descriptor in (1, 2):
            os.dup2(output, descriptor)
        sys.stdin.close()
        os.environ.update(order["environment"])
        os.chdir(order["folder"])
        sys.path[:0] = order["path"]
        sys.argv = ["-c", *order["arguments"]]
        exec(compile(order["code"], "<code>", "exec"), {"__name__": "__main__"})
        sys.exit()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


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
        """Run ``code`` in a folder and return its output.

        Args:
            code: Python code.
            *arguments: Arguments of the command line.
            folder: The working directory; its modules can be imported.
            path: More folders whose modules can be imported.
            **environment: Variables to set.

        Raises:
            AssertionError: The code failed; with the end of its output.
        """
        output = folder / "output.txt"
        paths = [*map(str, (folder, *path)), str(Path(__file__).parents[1])]
        order = {
            "code": code,
            "arguments": arguments,
            "folder": str(folder),
            "path": paths,
            "environment": {"PYTHONPATH": os.pathsep.join(paths), **environment},
            "output": str(output),
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        ended = self._process.stdout.readline()
        assert ended == "0\n", output.read_text()[-3000:]
        return output.read_text()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._process.communicate()
