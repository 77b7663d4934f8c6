"""Make a frozen folder: what a version of the package leaves on the disk.

    python tests/frozen/freeze.py COMMIT NAME
    python tests/frozen/freeze.py COMMIT states/NAME    # the cases of `state_cases` alone

The package as it is in the commit runs the cases of `frozen_cases` in a temporary folder, which
becomes ``tests/frozen/NAME``. The times of files are kept in ``times.json``: a result counts as
edited if its time differs. The objects of a store are in its folder ``store``.
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
from tests.object_stores import SECRETS, s3_server  # noqa: E402


def freeze(commit: str, name: str) -> None:
    """Write one frozen folder."""
    with tempfile.TemporaryDirectory(prefix="frozen-") as scratch:
        code, made = Path(scratch, "code"), Path(scratch, "made")
        code.mkdir()
        files = subprocess.run(
            ["git", "archive", commit, "dagster_dataops"],
            cwd=REPOSITORY,
            check=True,
            capture_output=True,
        )
        subprocess.run(["tar", "x", "-C", code], input=files.stdout, check=True)
        for script in ("write.py", "frozen_cases.py", "frozen_operators.py", "state_cases.py"):
            shutil.copy(HERE / script, scratch)
        environment = {**os.environ, "PYTHONPATH": str(code)}
        write_states = [sys.executable, Path(scratch, "write.py"), "--states", made]
        if name.startswith("states/"):
            subprocess.run(write_states, env=environment, check=True)
        else:
            _write_all(Path(scratch), made, environment)
        times = {
            str(path.relative_to(made)): path.stat().st_mtime_ns
            for path in sorted(made.rglob("*"))
            if path.is_file() and path.relative_to(made).parts[0] != "store"
        }
        (made / "times.json").write_text(json.dumps(times, indent=0))
        shutil.rmtree(HERE / name, ignore_errors=True)
        shutil.copytree(made, HERE / name, symlinks=True)


def _write_all(scratch: Path, made: Path, environment: dict[str, str]) -> None:
    """Write the cases of `frozen_cases`, with a server of models and a store."""
    with running_server("--batches", "in_progress") as server, s3_server() as store:
        of_store = {**SECRETS, "AWS_ENDPOINT_URL": store, "AWS_ALLOW_HTTP": "true"}
        of_store["DATAOPS_DATA_PROCESS_SCRATCH"] = str(scratch / "copies")
        command = [sys.executable, scratch / "write.py", made, server.address]
        subprocess.run(command, env=environment | of_store, check=True)
        _save_objects(store, made / "store")


def _save_objects(address: str, folder: Path) -> None:
    """Write the objects of the bucket to files."""
    import boto3

    known = {"aws_access_key_id": "tester", "aws_secret_access_key": "secret"}
    client = boto3.client("s3", endpoint_url=address, region_name="us-east-1", **known)
    for found in client.list_objects_v2(Bucket="results")["Contents"]:
        path = folder / found["Key"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(client.get_object(Bucket="results", Key=found["Key"])["Body"].read())


if __name__ == "__main__":
    freeze(*sys.argv[1:])
