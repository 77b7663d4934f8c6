"""Runs that die: at a chosen line, or at any moment from outside."""

import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import psutil

from tests.execution.engine import fork_server, idle_workers
from tests.faults.warm_starts import StartedProcess, warm_interpreter

HANG_SECONDS: Final = 1200.0  # seconds; only a hanging call takes longer, even on a busy machine
_BUSY: Final = 60
_PRELUDE = """
import asyncio, json, os, re, signal, sys, threading, time
from pathlib import Path
from dagster_dataops import data, data_register
from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.checkpoints.resume.resume_policy import ResumePolicy
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.execution.executor import OperatorExecutor
from dagster_dataops.execution.run_report import RunContext

HOME = Path(__file__).parent

def log(name, text=""):
    descriptor = os.open(HOME / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.write(descriptor, f"{os.getpid()} {text}\\n".encode())
    os.close(descriptor)

def run(operator, run="script", resume=ResumePolicy.AUTO, **context):
    folder = NodeFolder(HOME / "node", "node")
    dataset = JsonlDataset.of_file(HOME / "input.jsonl")
    context = RunContext(run=run, resume=resume, lock_seconds=10, **context)
    return OperatorExecutor(context).run(operator, [dataset], folder)
"""


def in_child(function: Callable[[], object]) -> int:
    """Run ``function`` in a forked child and return its exit status; -9 if it was killed."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if not child:
        status = 70
        try:
            function()
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


class DyingAfter:
    """Replaces a function and ends the process before or after one of its calls."""

    STATUS = 42

    def __init__(self, function: Callable[..., Any], calls: int, *, before: bool) -> None:
        self._function = function
        self._left = calls
        self._before = before

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._left == 1 and self._before:
            os._exit(self.STATUS)
        returned = self._function(*args, **kwargs)  # a call that raises does not count
        self._left -= 1
        if not self._left:
            os._exit(self.STATUS)
        return returned

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Behave as a method where it replaces one."""
        return self if instance is None else lambda *a, **k: self(instance, *a, **k)


class Script:
    """A script in a separate process group, in a folder with ``input.jsonl``.

    Args:
        folder: The folder of script, input and logs.
        code: The code after the prelude; it may use ``run``, ``log`` and ``HOME``.
        *modules: Large modules that it needs besides the engine.
    """

    def __init__(self, folder: Path, code: str, *modules: str) -> None:
        self.folder = folder
        self.path = folder / "script.py"
        self.path.write_text(_PRELUDE + code)
        self._modules = modules
        self._process: StartedProcess | None = None  # the latest

    def start(self, *arguments: str, env: Mapping[str, str] | None = None) -> StartedProcess:
        """Start it; its output goes to ``output.txt``."""
        interpreter = warm_interpreter(*self._modules)
        with (self.folder / "output.txt").open("a") as output:
            self._process = interpreter.start(
                [str(self.path), *arguments],
                output.fileno(),
                folder=Path.cwd(),
                environment=os.environ if env is None else env,
            )
        return self._process

    def finish(
        self,
        *arguments: str,
        seconds: float = HANG_SECONDS,
        env: Mapping[str, str] | None = None,
    ) -> str:
        """Run the script to its end and return all its output."""
        with self.start(*arguments, env=env) as process:
            status = process.wait(seconds)
        assert status == 0, self.output()
        return self.output()

    def output(self) -> str:
        return (self.folder / "output.txt").read_text()

    def log(self, name: str) -> list[list[str]]:
        """Return the complete lines of a log, split into process and text."""
        path = self.folder / name
        if not path.exists():
            return []
        return [line.split() for line in path.read_text().splitlines() if " " in line]

    def wait_for(self, name: str, entries: int, seconds: float = 30) -> list[list[str]]:
        """Wait until a log has that many lines; fail at once if the script fails earlier."""

        def enough() -> bool:
            failed = self._process is not None and (self._process.poll() or 0) > 0
            found = len(self.log(name)) >= entries
            assert found or not failed, self.output()
            return found

        wait_until(enough, seconds, f"{entries} lines in {name}")
        return self.log(name)


def wait_until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Wait until ``condition`` holds; on a busy machine `_BUSY` times as long."""
    until = time.monotonic() + min(_BUSY * seconds, HANG_SECONDS)
    while not condition():
        assert time.monotonic() < until, f"waited {_BUSY * seconds} s in vain for: {what}"
        time.sleep(0.01)


def slowness() -> float:
    """Return how many times slower than an idle machine this one is; at least 1.

    This is the load of the last minute, or that of this moment if it has just begun.
    """
    latest, _, _, running, _ = Path("/proc/loadavg").read_text().split()
    now = int(running.partition("/")[0])
    return max(1.0, max(float(latest), now) / (os.cpu_count() or 1))


def alive(pids: "set[int] | list[int]") -> list[int]:
    """Return the processes in ``pids`` that are still running; zombies are not."""
    found = []
    for pid in set(pids):
        try:
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                found.append(pid)
        except psutil.NoSuchProcess:
            continue
    return found


def children_of(pid: int) -> list[int]:
    """Return the living descendants of a process.

    The idle workers and the fork server of this process are left out.
    """
    try:
        found = [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
    kept = {fork_server.server_pid(), *idle_workers.pids}
    return [child for child in alive(found) if child not in kept]


def alive_in_session(leader: int) -> list[int]:
    """Return the living processes of the session that ``leader`` began."""
    found = []
    for pid in psutil.pids():
        with suppress(ProcessLookupError, PermissionError):
            if os.getsid(pid) == leader:
                found.append(pid)
    return alive(found)
