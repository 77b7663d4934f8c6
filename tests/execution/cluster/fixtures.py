"""Operators and runs over agents that are processes of this machine."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from dagster_dataops import Drop, JsonlDataset, LocalCluster, OperatorContext, RunReport, data
from dagster_dataops.data import data_register
from dagster_dataops.execution.agent_pool import AgentOrder
from dagster_dataops.execution.cluster.channel import Channel
from dagster_dataops.execution.cluster.local_cluster import SubprocessAgent, SubprocessAgents
from dagster_dataops.execution.leases import head
from tests.execution.helpers import Listener, node, run, write_input

NO_NODE_NOTE = "waiting for a node: none can hold an agent"


def silent_after(patch: pytest.MonkeyPatch, seconds: float) -> None:
    """Replace agents that have been silent for some seconds."""
    patch.setattr(head, "_SILENT_SECONDS", seconds)


@data_register("data.over_agents", _concurrency_mode="process", _max_workers=2)
def works(record, seconds=0.0, flag=""):
    """Act on ``record["do"]`` after some time; the flag makes an action happen once."""
    time.sleep(seconds)
    match record["do"]:
        case "fail":
            raise ValueError(f"record {record['n']}")
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "die once" if not Path(flag).exists():
            Path(flag).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        case "drop":
            return Drop("dull")
        case "hang":
            while True:
                time.sleep(1)
        case "twice":
            return [record, record]
    record["done"] = True
    return record


@data_register("data.over_agents", _concurrency_mode="process", _max_workers=2)
def logs(record, log, seconds=0.0):
    """Append the number of the record to a file, and take some time."""
    with Path(log).open("ab", buffering=0) as file:
        file.write(f"{record['n']}\n".encode())
    time.sleep(seconds)
    return record


data_register.new_group("over_agents")


class Beside(data.over_agents):  # type: ignore[name-defined]
    """Write the numbers of the other records of a batch."""

    def forward_batch(self, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        numbers = [record["n"] for record in records]
        return [{**record, "batch": numbers} for record in records]


class Counting(data.over_agents):  # type: ignore[name-defined]
    """Count records by their context."""

    def forward(self, record: dict[str, Any], context: OperatorContext) -> dict[str, Any]:
        context.count(seen=1, letters=len(record["text"]))
        return record


class Numbered(data.over_agents):  # type: ignore[name-defined]
    """Write which agent processed a record."""

    def forward(self, record: dict[str, Any], context: OperatorContext) -> dict[str, Any]:
        return {"agent": list(context.agent)}


class Devices(data.over_agents):  # type: ignore[name-defined]
    """Write which agent processed a record, and which GPUs it sees; let the others begin."""

    def forward(self, record: dict[str, Any], context: OperatorContext) -> dict[str, Any]:
        time.sleep(0.05)
        devices = os.environ.get("CUDA_VISIBLE_DEVICES")
        return {"agent": list(context.agent), "devices": devices}


class Watched(LocalCluster):
    """A cluster whose agents can be reached by a test."""

    pools: list[SubprocessAgents]

    def open(self) -> SubprocessAgents:
        object.__setattr__(self, "pools", [*getattr(self, "pools", ()), super().open()])
        return self.pools[-1]

    def alive(self) -> list[psutil.Process]:
        """Return the running agents."""
        processes = [one for pool in getattr(self, "pools", ()) for one in pool.processes]
        return [psutil.Process(one.pid) for one in processes if one.poll() is None]


def records_of(kinds: list[str]) -> list[dict[str, Any]]:
    """Return one record for each kind of action."""
    return [{"n": n, "do": kind, "text": f"é {n}"} for n, kind in enumerate(kinds)]


def input_of(tmp_path: Path, kinds: list[str]) -> JsonlDataset:
    """Write an input with one record for each kind of action."""
    return write_input(tmp_path / "input.jsonl", records_of(kinds))


def both(
    tmp_path: Path, dataset: JsonlDataset, operator: Any, cluster: LocalCluster, **context: Any
) -> tuple[RunReport, RunReport]:
    """Run an operator on this machine and over agents, and compare; return both reports."""
    home = run(operator, dataset, node(tmp_path / "home"))
    away = run(operator, dataset, node(tmp_path / "away"), cluster=cluster, **context)
    same(tmp_path, home, away)
    return home, away


def same(tmp_path: Path, home: RunReport, away: RunReport) -> None:
    """Check that two runs have the same result, the same error file and the same counts."""
    here, there = node(tmp_path / "home"), node(tmp_path / "away")
    assert there.result.read_bytes() == here.result.read_bytes()
    assert there.errors.exists() == here.errors.exists()
    if here.errors.exists():
        assert there.errors.read_bytes() == here.errors.read_bytes()
    for fact in ("rows_in", "rows_out", "dropped", "failed", "counts", "drops", "drop_examples"):
        assert getattr(away.manifest, fact) == getattr(home.manifest, fact), fact


class Meanwhile(Listener):
    """Calls a function once, from the thread of the run, when some records are settled.

    Args:
        records: After how many settled records.
        action: The function.
    """

    def __init__(self, records: int, action: Callable[[], None]) -> None:
        super().__init__()
        self._records = records
        self._action = action
        self.acted = threading.Event()
        self.on_note: Callable[[str], None] = lambda text: None
        self.on_update: Callable[[Any], None] = lambda state: None

    def note(self, text: str) -> None:
        super().note(text)
        self.on_note(text)

    def update(self, state: Any) -> None:
        super().update(state)
        self.on_update(state)
        if state.records >= self._records and not self.acted.is_set():
            self.acted.set()
            self._action()


def kill_one(cluster: Watched) -> None:
    """Kill one agent of a cluster."""
    cluster.alive()[0].kill()


def family(process: psutil.Process) -> list[psutil.Process]:
    """Return a process and all that it has started."""
    return [process, *process.children(recursive=True)]


class Network(SubprocessAgents):
    """Agents behind a network that a test can cut: messages then wait, and no side hears of it."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[Link] = []

    def connection(self) -> tuple[socket.socket, socket.socket]:
        link = Link()
        self.links.append(link)
        return link.ends


class Link:
    """A connection between two sockets that carries bytes unless it is cut.

    Attributes:
        ends: The sockets.
        whole: Cleared while the connection is cut.
    """

    def __init__(self) -> None:
        self.whole = threading.Event()
        self.whole.set()
        (mine, near), (far, theirs) = socket.socketpair(), socket.socketpair()
        self.ends = mine, theirs
        for source, target in ((near, far), (far, near)):
            threading.Thread(target=self._carry, args=(source, target), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with source:
            with suppress(OSError):
                while data := source.recv(1 << 16):
                    self.whole.wait()
                    target.sendall(data)
            with suppress(OSError):  # the other thread may have closed it
                target.shutdown(socket.SHUT_RDWR)


class Cuttable(Watched):
    """A cluster whose network a test can cut."""

    def open(self) -> Network:
        object.__setattr__(self, "pools", [*getattr(self, "pools", ()), Network()])
        return self.pools[-1]  # type: ignore[return-value]


class ApartAgents(SubprocessAgents):
    """Agents on machines of their own: each has its own home, scratch and working folder.

    They are told of a folder of the head that they do not have. Also as root they cannot read the
    folders of other users, such as that of the head.

    Args:
        machines: The folder for their folders.
    """

    def __init__(self, machines: Path) -> None:
        super().__init__()
        self._machines = machines
        machines.mkdir(exist_ok=True)

    def start(self, order: AgentOrder) -> SubprocessAgent:
        mine, theirs = self.connection()
        home = Path(tempfile.mkdtemp(dir=self._machines))
        variables = {name: str(home) for name in ("HOME", "TMPDIR")}
        variables["DATAOPS_DATA_PROCESS_SCRATCH"] = str(home / "scratch")
        with theirs:
            code = AGENT.format(path=sys.path, number=theirs.fileno())
            process = subprocess.Popen(
                [*_as_others(), sys.executable, "-c", code],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                cwd=home,
                env={**os.environ, **variables},
            )
        self.processes.append(process)
        agent = SubprocessAgent(process, Channel(mine))
        agent.channel.send(replace(order, folder=Path("/no/such/folder")))
        self._agents[agent.channel.fileno()] = agent
        return agent


def _as_others() -> list[str]:
    """Return the command before one that shall not read folders of other users, also as root."""
    if os.getuid() or shutil.which("setpriv") is None:
        return []
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]


def of_another_user(folder: Path) -> None:
    """Make a folder one that `ApartAgents` cannot read, if this process is root."""
    folder.mkdir(mode=0o700, exist_ok=True)
    if not os.getuid():
        os.chown(folder, _OTHER_USER, _OTHER_USER)


AGENT = """
import sys
sys.path[:] = {path!r}
from dagster_dataops.execution.cluster.agent_process import main
main({number})
"""
_OTHER_USER = 30_000


class Apart(Watched):
    """A cluster whose agents share nothing but the bucket with the head."""

    def open(self) -> SubprocessAgents:
        pool = ApartAgents(Path(os.environ["MACHINES"]))
        object.__setattr__(self, "pools", [*getattr(self, "pools", ()), pool])
        return pool
