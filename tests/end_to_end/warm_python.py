"""An interpreter that imports Dagster once and runs each code in a fork of itself."""

import json
import os
import subprocess
import sys
from pathlib import Path

_FORKS = """
import json, os, sys
import dagster, dagster_graphql.cli

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
    """Runs code as ``python -c`` does, without the seconds for importing Dagster."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _FORKS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, code: str, *arguments: str, folder: Path, **environment: str) -> str:
        """Run ``code`` in a folder from which it can import modules; return its output."""
        output = folder / "output.txt"
        paths = [str(folder), str(Path(__file__).parents[2])]
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

    def close(self) -> None:
        """End it."""
        self._process.communicate()
