"""A Ray cluster with several nodes in this machine, and agents that share only a bucket."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psutil
from typing_extensions import override

from dagster_dataops import RayCluster
from dagster_dataops.execution.agent_pool import AgentOrder
from dagster_dataops.execution.cluster.ray_cluster import RayAgent, RayAgents

_STORE_BYTES = 80 << 20
_ROOT = str(Path(__file__).parents[3])  # of the nodes, with these operators
_VARIABLES = {
    "RAY_AUTH_MODE": "disabled",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_agent_register_timeout_ms": "120000",  # on a busy machine nodes start slowly
    "PYTHONPATH": _ROOT,
}


class RayNodes:
    """A Ray cluster: a head without cores, and nodes with two cores each.

    Args:
        machines: A folder for the nodes: each has its own home, temporary folder and scratch there.
            ``None`` for those of this process.

    Attributes:
        nodes: The nodes with cores.
        address: The address of the cluster.
    """

    def __init__(self, machines: Path | None = None) -> None:
        from ray.cluster_utils import Cluster

        self._machines = machines
        self._started = 0
        self._cluster = Cluster()
        self._cluster.add_node(
            num_cpus=0, object_store_memory=_STORE_BYTES, include_dashboard=False
        )
        self.nodes: list[Any] = []
        self.add_two()
        self.address: str = self._cluster.address

    def add(self, num_gpus: int = 0) -> None:
        """Start a node; only in the main thread, where Ray can set a handler of signals."""
        machine = {} if self._machines is None else {"env_vars": self._machine(self._machines)}
        node = self._cluster.add_node(
            num_cpus=2, num_gpus=num_gpus, object_store_memory=_STORE_BYTES, **machine
        )
        self.nodes.append(node)

    def _machine(self, machines: Path) -> dict[str, str]:
        """Return the variables of a new machine."""
        self._started += 1
        folder = machines / f"node{self._started}"
        folder.mkdir(parents=True)
        scratch = {"DATAOPS_DATA_PROCESS_SCRATCH": str(folder / "scratch")}
        return {"HOME": str(folder), "TMPDIR": str(folder), **scratch}

    def raylet(self, number: int = 0) -> psutil.Process:
        """Return the process of a node."""
        return psutil.Process(self.nodes[number].all_processes["raylet"][0].process.pid)

    def kill_one(self) -> None:
        """Kill an agent."""
        self.agents()[0].kill()

    def kill(self, number: int) -> None:
        """Kill a node."""
        self._cluster.remove_node(self.nodes.pop(number), allow_graceful=False)

    def lose(self, number: int = 0) -> None:
        """Kill a node, and add another one."""
        self.kill(number)
        self.add()

    def lose_all(self) -> None:
        """Kill all nodes but the head."""
        while self.nodes:
            self.kill(-1)

    def add_two(self) -> None:
        """Add two nodes."""
        self.add()
        self.add()

    def agents(self) -> list[psutil.Process]:
        """Return the processes of the agents."""
        agents = []
        for number in range(len(self.nodes)):
            with suppress(psutil.NoSuchProcess):
                for process in self.raylet(number).children(recursive=True):
                    with suppress(psutil.NoSuchProcess):
                        if "_Actor" in " ".join(process.cmdline()[:1]):
                            agents.append(process)
        return agents

    def close(self) -> None:
        """End all nodes."""
        self._cluster.shutdown()


@contextmanager
def ray_cluster(machines: Path | None = None) -> Iterator[RayNodes]:
    """Run a Ray cluster; see `RayNodes`."""
    with patch.dict(os.environ, _VARIABLES):
        nodes = RayNodes(machines)
        try:
            yield nodes
        finally:
            nodes.close()


class ApartOnRay(RayCluster):
    """A Ray cluster whose agents get the path of a folder that does not exist."""

    @override
    def open(self) -> RayAgents:
        super().open()
        return _Apart(str(self))


class _Apart(RayAgents):
    @override
    def start(self, order: AgentOrder) -> RayAgent:
        return super().start(replace(order, folder=Path("/no/such/folder")))
