"""Make a frozen folder: what a version of the package leaves on the disk.

    python tests/frozen/freeze.py COMMIT NAME

The package as it is in the commit runs the cases of `frozen_cases` in a temporary folder, which
becomes ``tests/frozen/NAME``. The times of files are kept in ``times.json``: a result counts as
edited if its time differs.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
sys.path.insert(0, str(REPOSITORY))

from tests.models.running_server import running_server  # noqa: E402


def freeze(commit: str, name: str) -> None:
    """Write one frozen folder."""
    with (
        tempfile.TemporaryDirectory(prefix="frozen-") as scratch,
        running_server("--batches", "in_progress") as server,
    ):
        code, made = Path(scratch, "code"), Path(scratch, "made")
        code.mkdir()
        files = subprocess.run(
            ["git", "archive", commit, "dagster_dataops"],
            cwd=REPOSITORY,
            check=True,
            capture_output=True,
        )
        subprocess.run(["tar", "x", "-C", code], input=files.stdout, check=True)
        for script in ("write.py", "frozen_cases.py", "frozen_operators.py"):
            shutil.copy(HERE / script, scratch)
        environment = {**os.environ, "PYTHONPATH": str(code)}
        command = [sys.executable, Path(scratch, "write.py"), made, server.address]
        subprocess.run(command, env=environment, check=True)
        times = {
            str(path.relative_to(made)): path.stat().st_mtime_ns
            for path in sorted(made.rglob("*"))
            if path.is_file()
        }
        (made / "times.json").write_text(json.dumps(times, indent=0))
        shutil.rmtree(HERE / name, ignore_errors=True)
        shutil.copytree(made, HERE / name, symlinks=True)


if __name__ == "__main__":
    freeze(*sys.argv[1:])
