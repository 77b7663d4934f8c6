"""The fault server in a process of its own."""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.faults.warm_starts import StartedProcess, warm_interpreter

# What a run of a model operator imports.
_WARM: Final = (
    "aiohttp",
    "dagster_dataops.models.batches.batch_api",
    "dagster_dataops.models.batches.batch_delivery",
    "dagster_dataops.models.calls.client",
    "dagster_dataops.models.calls.transports",
    "dagster_dataops.models.llm_operator",
    "dagster_dataops.models.model_session",
    "dagster_dataops.models.replies.reply_store",
    "dagster_dataops.pipelines.local_run",
)


class RunningServer:
    """A fault server.

    Attributes:
        address: Its address, with ``/v1``.
    """

    def __init__(self, place: str, process: "subprocess.Popen[str]") -> None:
        self._place = place
        self._process = process
        self.address = f"{place}/v1"

    def stats(self) -> dict[str, Any]:
        """Return what was counted since the last reset."""
        with urllib.request.urlopen(f"{self._place}/stats") as reply:  # noqa: S310 - our own address
            return json.load(reply)

    def reset(self, **options: Any) -> None:
        """Count from the start, with other options: latency, rpm, tpm, rates, hold, batches."""
        usual = {
            "latency": 0.0,
            "rpm": 0,
            "tpm": 0,
            "rates": "",
            "hold": "",
            "batches": "completed",
            "announce": 0,
        }
        self._post("reset", usual | options)

    def release(self) -> None:
        """Go on at the point where the server waits."""
        self._post("release", {})

    def finish(self, status: str = "completed") -> None:
        """End all batches."""
        self._post("finish", {"status": status})

    def _post(self, name: str, body: dict[str, Any]) -> None:
        headers = {"content-type": "application/json"}
        place = f"{self._place}/{name}"
        asked = urllib.request.Request(place, json.dumps(body).encode(), headers)  # noqa: S310
        with urllib.request.urlopen(asked):  # noqa: S310
            pass

    def kill(self) -> None:
        """End the server at once; its connections break."""
        self._process.kill()
        self._process.wait()


def started_script(code: str, folder: Path, *arguments: str) -> StartedProcess:
    """Start a script that runs a model operator; what it imports is there."""
    script = folder / "script.py"
    script.write_text(code)
    with (folder / "output.txt").open("ab") as output:
        return warm_interpreter(*_WARM).start(
            [str(script), *arguments], output.fileno(), folder=folder, environment=os.environ
        )


@contextmanager
def running_server(*options: str) -> Iterator[RunningServer]:
    """Yield a fault server; end it afterwards."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.models.fault_server", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    try:
        assert process.stdout is not None
        yield RunningServer(process.stdout.readline().strip(), process)
    finally:
        process.kill()
        process.communicate()
