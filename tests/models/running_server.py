"""The fault server in a process of its own."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


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
