"""RayCluster: agents as actors of a Ray cluster."""

import json
import socket
import threading
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from dagster_dataops.errors import ClusterError, ConfigurationError, MissingExtraError
from dagster_dataops.execution.agent_pool import (
    PLACED,
    AgentHandle,
    AgentOrder,
    AgentPool,
    Cluster,
    Command,
    Ended,
    Instruction,
    Lost,
    Message,
    Room,
)
from dagster_dataops.foundation.override import override

_NAMESPACE: Final = "dagster-dataops"  # of the actors that show that a run waits for agents
_RECEIVE_SECONDS: Final = 1.0
_REQUEST_SECONDS: Final = 5.0
_GET_SECONDS: Final = 30.0  # messages of 100 KB or more may be on a node that has died
_CONNECT_SECONDS: Final = 10.0
_CALLS: Final = 4  # an agent sends messages while it gets orders
_SHARES: Final = {"num_cpus": "CPU", "num_gpus": "GPU", "memory": "memory"}


@dataclass(frozen=True)
class RayCluster(Cluster):
    """A running Ray cluster. On each node an agent runs process mode in worker processes.

    Every node needs this package, the operators, and the folders of inputs and results at the same
    paths.

    Attributes:
        address: Address of the cluster, as `ray.init` takes it, or a Dagster resource that has it
            as ``ray_address`` when a run begins. A cluster is never started.
        agents: Number of agents, or ``"all"``: one on each node; with ``_agents={"num_gpus": 1}``
            one for each GPU.
        cpus_per_agent: Worker processes of each agent, unless the operator sets ``_max_workers``;
            ``None`` for the cores of the smallest node. Never more than a node has.
        runtime_env: The environment of the agents, as `ray.init` takes it.
        start_seconds: How long to wait, while no agent works, for a node that can hold one. Time
            in which other jobs use the nodes does not count.
    """

    address: Any = "auto"
    agents: int | Literal["all"] = "all"
    cpus_per_agent: int | None = None
    runtime_env: Mapping[str, Any] | None = field(default=None, hash=False)
    start_seconds: float = 300.0

    def __post_init__(self) -> None:
        if self.agents != "all" and (type(self.agents) is not int or self.agents < 1):
            raise ConfigurationError("agents", self.agents, "'all' or at least 1")
        if self.cpus_per_agent is not None and self.cpus_per_agent < 1:
            raise ConfigurationError("cpus_per_agent", self.cpus_per_agent, "at least 1")
        if not self.address:
            raise ConfigurationError("address", self.address, "'auto' or ray://host:port")

    @override
    def __str__(self) -> str:
        return f"Ray at {self._address}"

    @classmethod
    def of(cls, value: Any) -> Any:
        """Return a cluster as it is, and a Dagster resource with ``ray_address`` as a cluster."""
        resource = hasattr(type(value), "ray_address") and not hasattr(value, "open")
        return cls(value) if resource else value

    @property
    def _address(self) -> str:
        return str(getattr(self.address, "ray_address", self.address) or "auto")

    @override
    def open(self) -> "RayAgents":
        with _connection.lock:
            if not _ray().is_initialized():
                self._connect()
                _connection.opened = True
            _connection.users += 1
        return RayAgents(str(self))

    def _connect(self) -> None:
        options = {} if self.runtime_env is None else {"runtime_env": dict(self.runtime_env)}
        try:
            _check_port(self._address)
            _ray().init(address=self._address, log_to_driver=False, **options)
        except (OSError, RuntimeError, ValueError) as error:
            reason = f"does not answer: {error}. Start it, or set another address"
            raise ClusterError(str(self), reason) from error

    @override
    def describe(self) -> str:
        total, free = _ray().cluster_resources(), _ray().available_resources()
        names = [name for name in ("CPU", "GPU") if name in total]
        resources = [f"{total[name]:g} {name}, {free.get(name, 0):g} free" for name in names]
        return f"the cluster has {'; '.join(resources) or 'no resources'}"

    @override
    def count(self, resources: Mapping[str, Any]) -> int:
        if self.agents != "all":
            return self.agents
        wanted = _shares(resources)
        fits = [
            min(node.get(name, 0) // need for name, need in wanted.items()) for node in _nodes()
        ]
        several = resources.get("num_gpus")
        number = int(sum(fits) if several else sum(map(bool, fits)))
        if not number:
            reason = f"no node can hold an agent that takes {dict(resources)}; {self.describe()}"
            raise ClusterError(str(self), reason)
        return number

    @override
    def room(self, resources: Mapping[str, Any]) -> Room:
        """Return whether a node has room.

        A cluster is busy if any is used of what an agent needs: what is free may be spread over
        several nodes.
        """
        wanted = _shares(resources)
        if not any(_fits(wanted, node) for node in _nodes()):
            return Room.NONE
        total, free = _ray().cluster_resources(), _ray().available_resources()
        used = any(free.get(name, 0) < total.get(name, 0) for name in wanted)
        return Room.BUSY if used else Room.FREE

    @override
    def workers(self, most: int | None) -> int:
        """Return the number that uses the most cores: an agent fits on nodes with as many."""
        cores = [int(node["CPU"]) for node in _nodes()]
        if most is None:
            return min([*cores, self.cpus_per_agent or min(cores, default=1)])
        sizes = {min(most, size) for size in cores}
        return max(sizes, key=lambda size: size * sum(has >= size for has in cores), default=most)


class RayAgents(AgentPool):
    """Agents that are actors of Ray.

    Ray does not restart them, or repeat their calls: the head does lost work again.
    """

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._receiving: dict[Any, RayAgent] = {}
        self._ended: set[RayAgent] = set()
        self._requests: _Requests | None = None

    @override
    def start(self, order: AgentOrder) -> "RayAgent":
        ray = _ray()
        actor = ray.remote(max_restarts=0, max_task_retries=0, max_concurrency=_CALLS)(_Actor)
        options = {"scheduling_strategy": "SPREAD", **order.resources}
        try:
            agent = RayAgent(actor.options(**options).remote(order))
        except (ValueError, TypeError) as error:
            reason = f"refuses _agents={dict(order.resources)}: {error}"
            raise ClusterError(self._cluster, reason) from error
        self._receiving[agent.receive()] = agent
        return agent

    @override
    def again(self, agent: AgentHandle, order: AgentOrder) -> bool:
        if not isinstance(agent, RayAgent) or agent not in self._ended:
            return False
        self._ended.remove(agent)
        agent.begin(order)
        self._receiving[agent.receive()] = agent
        return True

    @override
    def receive(self, seconds: float) -> list[tuple[AgentHandle, Message]]:
        ray = _ray()
        if not self._receiving:
            threading.Event().wait(seconds)
            return []
        ready, _ = ray.wait(list(self._receiving), num_returns=1, timeout=seconds)
        received: list[tuple[AgentHandle, Message]] = []
        for reference in ready:
            agent = self._receiving.pop(reference)
            try:
                agent.node, messages = ray.get(reference, timeout=_GET_SECONDS)
            except ray.exceptions.RayError as error:
                agent.kill()
                received.append((agent, Lost(_first_lines(error), agent.node)))
                continue
            received += [(agent, message) for message in messages]
            if not any(isinstance(message, Ended) for message in messages):
                self._receiving[agent.receive()] = agent
            elif agent.rests:
                self._ended.add(agent)
        return received

    @override
    def has_left(self, node: str) -> bool:
        return any(info["NodeID"] == node and not info["Alive"] for info in _ray().nodes())

    @override
    def ask(self, resources: Mapping[str, Any], agents: int | None) -> None:
        if self._requests is None:
            self._requests = _Requests()
        self._requests.wanted = None if agents is None else (agents, _shares(resources))

    @override
    def asked(self, resources: Mapping[str, Any]) -> list[int]:
        mine = _shares(resources)
        others = self._requests.others if self._requests is not None else []
        return [agents for agents, wanted in others if _fits(wanted, mine)]

    @override
    def close(self) -> None:
        for agent in [*self._receiving.values(), *self._ended]:
            agent.kill()
        self._receiving.clear()
        self._ended.clear()
        if self._requests is not None:
            self._requests.close()
        with _connection.lock:
            _connection.users -= 1
            if _connection.opened and not _connection.users:
                _connection.opened = False
                _ray().shutdown()


class RayAgent(AgentHandle):
    """One agent.

    Attributes:
        node: The id of its node; empty until it has sent a message.
        rests: Whether it is to rest after its run. The actors of others end then.
    """

    def __init__(self, actor: Any) -> None:
        self._actor = actor
        self.node = ""
        self.rests = False

    def receive(self) -> Any:
        """Return a reference to the id of its node and its next messages."""
        return self._actor.receive.remote(_RECEIVE_SECONDS)

    def begin(self, order: AgentOrder) -> None:
        """Give it the order of another run."""
        self.rests = False
        self._actor.begin.remote(order)

    @override
    def send(self, instruction: Instruction) -> None:
        self.rests = self.rests or instruction is Command.REST
        self._actor.follow.remote(instruction)

    def kill(self) -> None:
        """End its process."""
        _kill(self._actor)


class _Actor:
    """The actor of an agent."""

    def __init__(self, order: AgentOrder) -> None:
        self._node: str = _ray().get_runtime_context().get_node_id()
        self.begin(order)

    def begin(self, order: AgentOrder) -> None:
        from dagster_dataops.execution.agents.agent import Agent  # only on nodes

        self._agent = Agent(order)
        self._agent.messages.put(PLACED)
        threading.Thread(target=self._agent.run, daemon=True).start()

    def receive(self, seconds: float) -> tuple[str, list[Message]]:
        """Wait up to ``seconds`` for messages; return the id of this node, and them."""
        return self._node, self._agent.receive(seconds)

    def follow(self, instruction: Instruction) -> None:
        self._agent.follow(instruction)


class _Request:
    """An actor for its name, which shows other runs that this run waits for agents."""


class _Requests:
    """Shows that this run waits for agents, and reads which others do.

    A thread does this, because the cluster may not answer.

    Attributes:
        wanted: While this run waits for agents, their present number, and the resources that each
            reserves; else ``None``.
        others: The same for each other run that waits.
    """

    def __init__(self) -> None:
        self.wanted: tuple[int, dict[str, float]] | None = None
        self.others: list[tuple[int, dict[str, float]]] = []
        self._run = uuid.uuid4().hex
        self._shown: tuple[Any, Any] = None, None  # `wanted`, and the actor that shows it
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._keep, daemon=True)
        self._thread.start()

    def _keep(self) -> None:
        while not self._closed.is_set():
            with suppress(Exception):  # the cluster does not answer: later
                self._show(self.wanted)
                self.others = self._others()
            self._closed.wait(_REQUEST_SECONDS)
        with suppress(Exception):
            self._show(None)

    def _show(self, wanted: tuple[int, dict[str, float]] | None) -> None:
        shown, actor = self._shown
        if wanted == shown:
            return
        if actor is not None:
            _kill(actor)
        self._shown = None, None
        if wanted is not None:
            name = json.dumps([*wanted, self._run])
            options = {"name": name, "namespace": _NAMESPACE, "num_cpus": 0, "max_restarts": 0}
            self._shown = wanted, _ray().remote(_Request).options(**options).remote()

    def _others(self) -> list[tuple[int, dict[str, float]]]:
        requests = [
            json.loads(actor["name"])
            for actor in _ray().util.list_named_actors(all_namespaces=True)
            if actor["namespace"] == _NAMESPACE
        ]
        return [(agents, wanted) for agents, wanted, run in requests if run != self._run]

    def close(self) -> None:
        """Take the request back, if the cluster answers."""
        self._closed.set()
        self._thread.join(_REQUEST_SECONDS)


class _Connection:
    """The connection of this process to a cluster, which all runs in it share.

    Attributes:
        lock: Held while the connection is opened or closed.
        opened: Whether a run has opened it; then the last run closes it.
        users: Number of runs that use it.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.opened = False
        self.users = 0


_connection: Final = _Connection()


def _kill(actor: Any) -> None:
    with suppress(Exception):  # it may have ended
        _ray().kill(actor)


def _shares(resources: Mapping[str, Any]) -> dict[str, float]:
    """Return the resources that an agent reserves, by the names that nodes use."""
    named = {name: resources[key] for key, name in _SHARES.items() if resources.get(key)}
    return {**named, **(resources.get("resources") or {})}


def _fits(wanted: Mapping[str, float], there: Mapping[str, float]) -> bool:
    """Return whether there is as much of each resource as is wanted."""
    return all(there.get(name, 0) >= need for name, need in wanted.items())


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise MissingExtraError("RayCluster", "ray") from None
    return ray


def _check_port(address: str) -> None:
    """Check that something answers at an address with a port; Ray would try for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()


def _nodes() -> list[dict[str, float]]:
    """Return the resources of each living node that has cores."""
    nodes = [node["Resources"] for node in _ray().nodes() if node["Alive"]]
    return [resources for resources in nodes if resources.get("CPU", 0) >= 1]


def _first_lines(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:3])}"[:500]
