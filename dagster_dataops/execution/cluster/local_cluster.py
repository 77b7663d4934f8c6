"""LocalCluster: agents as processes of this machine, to try operators without a cluster."""

import select
import signal
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from subprocess import Popen, TimeoutExpired
from typing import Any, Final

from dagster_dataops.errors import ConfigurationError
from dagster_dataops.execution.agent_pool import (
    AgentHandle,
    AgentOrder,
    AgentPool,
    Cluster,
    Instruction,
    Lost,
    Message,
    Room,
)
from dagster_dataops.execution.cluster.channel import Channel
from dagster_dataops.execution.workers.process_environment import start_interpreter
from dagster_dataops.foundation.concurrency.cores import usable_cores
from dagster_dataops.foundation.override import override

_BOOT: Final = (
    "from dagster_dataops.execution.cluster.agent_process import main; main(given['connection'])"
)
_GRACE_SECONDS: Final = 1.0  # an agent that closes its socket is about to end


@dataclass(frozen=True)
class LocalCluster(Cluster):
    """A cluster for tests: its agents are processes of this machine.

    Operators, options and folders behave as on a cluster.

    Attributes:
        agents: Number of agents.
        cpus_per_agent: Worker processes of each agent, unless the operator sets ``_max_workers``;
            ``None`` divides the cores of this machine.
        start_seconds: How long to wait, while no agent works, for one that does.
    """

    agents: int = 2
    cpus_per_agent: int | None = None
    start_seconds: float = 60.0

    def __post_init__(self) -> None:
        if self.agents < 1:
            raise ConfigurationError("agents", self.agents, "at least 1")

    @override
    def open(self) -> "SubprocessAgents":
        return SubprocessAgents()

    @override
    def describe(self) -> str:
        return "its agents are processes of this machine"

    @override
    def count(self, resources: Mapping[str, Any]) -> int:
        return self.agents

    @override
    def room(self, resources: Mapping[str, Any]) -> Room:
        return Room.FREE

    @override
    def workers(self, most: int | None) -> int:
        return most or self.cpus_per_agent or max(1, usable_cores() // self.agents)


class SubprocessAgents(AgentPool):
    """Agents that are processes of this machine.

    Attributes:
        processes: The processes of the agents that were started, in order.
    """

    def __init__(self) -> None:
        self.processes: list[Popen[bytes]] = []
        self._agents: dict[int, SubprocessAgent] = {}

    def connection(self) -> tuple[socket.socket, socket.socket]:
        """Return the ends of a new connection: of the head, and of an agent."""
        return socket.socketpair()

    @override
    def start(self, order: AgentOrder) -> "SubprocessAgent":
        mine, theirs = self.connection()
        with theirs:
            number = theirs.fileno()
            process = start_interpreter(_BOOT, [number], connection=number)
        self.processes.append(process)
        agent = SubprocessAgent(process, Channel(mine))
        agent.channel.send(order)
        self._agents[agent.channel.fileno()] = agent
        return agent

    @override
    def again(self, agent: AgentHandle, order: AgentOrder) -> bool:
        if not isinstance(agent, SubprocessAgent) or agent not in self._agents.values():
            return False
        agent.channel.send(order)
        return True

    @override
    def receive(self, seconds: float) -> list[tuple[AgentHandle, Message]]:
        poll = select.poll()
        for number, agent in self._agents.items():
            poll.register(number, select.POLLIN | (select.POLLOUT if agent.channel.full else 0))
        received: list[tuple[AgentHandle, Message]] = []
        for number, _ in poll.poll(seconds * 1000):
            agent = self._agents[number]
            agent.channel.flush()
            received += [(agent, message) for message in agent.channel.receive()]
            if agent.channel.ended:
                received.append((agent, Lost(agent.end(_GRACE_SECONDS))))
                del self._agents[number]
        return received

    @override
    def has_left(self, node: str) -> bool:
        return False  # this machine

    @override
    def ask(self, resources: Mapping[str, Any], agents: int | None) -> None:
        """Do nothing: agents on this machine take nothing from other runs."""

    @override
    def asked(self, resources: Mapping[str, Any]) -> list[int]:
        return []

    @override
    def close(self) -> None:
        for agent in self._agents.values():
            agent.end(0.0)
        self._agents.clear()


class SubprocessAgent(AgentHandle):
    """One agent."""

    def __init__(self, process: "Popen[bytes]", channel: Channel) -> None:
        self.process = process
        self.channel = channel

    @override
    def send(self, instruction: Instruction) -> None:
        self.channel.send(instruction)

    def end(self, seconds: float) -> str:
        """Wait up to ``seconds`` for its end, then kill it; return how it ended, in words."""
        self.channel.close()
        try:
            status = self.process.wait(seconds)
        except TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        return (
            f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
        )
