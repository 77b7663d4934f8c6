"""StayingAgents: the agents of a step stay from one run over agents to the next.

A step over a whole dataset is several such runs: one for the sketches, and one for each stage. An
agent takes seconds to start. So it rests after a run, and gets the order of the next one.
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from dagster_dataops.execution.agent_pool import (
    AgentHandle,
    AgentOrder,
    AgentPool,
    Cluster,
    Command,
    Ended,
    Lost,
    Message,
    Ready,
    Room,
)
from dagster_dataops.execution.node_attempt import NodeAttempt
from dagster_dataops.foundation.override import override

_REST_SECONDS: Final = 3.0  # to end a run
_WAIT_SECONDS: Final = 0.1


def keep_agents(attempt: NodeAttempt) -> None:
    """Let the agents of a step stay from one run over agents to the next."""
    cluster = attempt.context.cluster
    if cluster is None or isinstance(cluster, StayingAgents):
        return
    staying = StayingAgents(cluster)
    attempt.resources.callback(staying.release)
    attempt.context = replace(attempt.context, cluster=staying)


def release_agents(attempt: NodeAttempt) -> None:
    """End the agents that rest, because no run over agents follows soon."""
    if isinstance(attempt.context.cluster, StayingAgents):
        attempt.context.cluster.await_rest()
        attempt.context.cluster.release()


class StayingAgents(Cluster):
    """A cluster whose agents rest after a run."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._pool: AgentPool | None = None
        self._runs: dict[AgentHandle, _AgentsOfRun] = {}  # of each agent that has not ended its run
        self._resources: dict[AgentHandle, Mapping[str, Any]] = {}
        self._ready: set[AgentHandle] = set()  # of these, the ones that have begun it
        self._finishing: set[AgentHandle] = set()  # agents that are to rest
        self._resting: list[AgentHandle] = []

    @override
    def __str__(self) -> str:
        return str(self._cluster)

    @property
    @override
    def start_seconds(self) -> float:
        return self._cluster.start_seconds

    @property
    @override
    def cpus_per_agent(self) -> int | None:
        return self._cluster.cpus_per_agent

    @override
    def open(self) -> AgentPool:
        self._pool = self._pool or self._cluster.open()
        self.await_rest()
        return _AgentsOfRun(self, self._pool)

    def await_rest(self) -> None:
        """Wait a little for agents that end a run: their operators may have a ``close``."""
        until = time.monotonic() + _REST_SECONDS
        while self._finishing & self._ready and time.monotonic() < until:
            self.receive(_WAIT_SECONDS)

    @override
    def describe(self) -> str:
        return self._cluster.describe()

    @override
    def room(self, resources: Mapping[str, Any]) -> Room:
        return self._cluster.room(resources)

    @override
    def count(self, resources: Mapping[str, Any]) -> int:
        return self._cluster.count(resources)

    @override
    def workers(self, most: int | None) -> int:
        return self._cluster.workers(most)

    def start(self, order: AgentOrder, run: "_AgentsOfRun", pool: AgentPool) -> AgentHandle:
        """Give the order to an agent that rests, or start one."""
        for agent in self._resting:
            if self._resources[agent] == order.resources and pool.again(agent, order):
                self._resting.remove(agent)
                break
        else:
            agent = pool.start(order)
            self._resources[agent] = order.resources
        self._runs[agent] = run
        return agent

    def finish(self, agent: AgentHandle) -> None:
        """Let an agent rest after its work."""
        self._finishing.add(agent)
        agent.send(Command.REST)

    def receive(self, seconds: float) -> None:
        """Wait up to ``seconds`` for messages; give each to the run of its agent."""
        if self._pool is None:
            time.sleep(seconds)
            return
        for agent, message in self._pool.receive(seconds):
            self._hear(agent, message)

    def _hear(self, agent: AgentHandle, message: Message) -> None:
        if agent in self._runs:
            self._runs[agent].heard.append((agent, message))
        if isinstance(message, Ready):
            self._ready.add(agent)
        if not isinstance(message, Ended | Lost):
            return
        self._runs.pop(agent, None)
        self._ready.discard(agent)
        rests = agent in self._finishing and isinstance(message, Ended) and message.error is None
        self._finishing.discard(agent)
        if rests:
            self._resting.append(agent)
        elif agent in self._resting:  # it died
            self._resting.remove(agent)

    def works_for(self, run: "_AgentsOfRun") -> bool:
        """Return whether an agent works for a run; one that is not ready may rest later."""
        late = self._finishing - self._ready
        return any(run is other for agent, other in self._runs.items() if agent not in late)

    def release(self) -> None:
        """End every agent at once; the next run starts others."""
        pool, self._pool = self._pool, None
        for agent in list(self._runs):
            self._hear(agent, Lost("it was ended"))
        self._finishing.clear()
        self._resting.clear()
        self._resources.clear()
        if pool is not None:
            pool.close()


class _AgentsOfRun(AgentPool):
    """The agents of one run."""

    def __init__(self, agents: StayingAgents, pool: AgentPool) -> None:
        self._agents, self._pool = agents, pool
        self._asks = False
        self.heard: list[tuple[AgentHandle, Message]] = []

    @override
    def start(self, order: AgentOrder) -> AgentHandle:
        return self._agents.start(order, self, self._pool)

    @override
    def finish(self, agent: AgentHandle) -> None:
        self._agents.finish(agent)

    @override
    def receive(self, seconds: float) -> list[tuple[AgentHandle, Message]]:
        if not self.heard:
            self._agents.receive(seconds)
        heard, self.heard = self.heard, []
        return heard

    @override
    def has_left(self, node: str) -> bool:
        return self._pool.has_left(node)

    @override
    def ask(self, resources: Mapping[str, Any], agents: int | None) -> None:
        self._asks = agents is not None
        self._pool.ask(resources, agents)

    @override
    def asked(self, resources: Mapping[str, Any]) -> list[int]:
        return self._pool.asked(resources)

    @override
    def close(self) -> None:
        if self._asks:
            self._pool.ask({}, None)
        if self._agents.works_for(self):
            self._agents.release()
