"""Tests of waiting for nodes and of sharing them, with agents that do what a test tells them."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from dagster_dataops import JsonlDataset, LocalCluster, data_register
from dagster_dataops.errors import ClusterError
from dagster_dataops.execution.agent_pool import AgentHandle, AgentOrder, Lost, Message, Room
from dagster_dataops.execution.cluster.local_cluster import SubprocessAgents
from dagster_dataops.execution.leases import fair_share, node_wait
from tests.execution.cluster.fixtures import (
    NO_NODE_NOTE,
    Meanwhile,
    Watched,
    both,
    input_of,
    same,
    works,
)
from tests.execution.helpers import Listener, node, run
from tests.nodes import ResumePolicy


@data_register("data.waiting_agents", _concurrency_mode="process")
def same_records(record: dict) -> dict:
    """Return the record; the operator sets no number of workers."""
    return record


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look and note often."""
    monkeypatch.setattr(node_wait, "_LOOK_SECONDS", 0.05)
    monkeypatch.setattr(node_wait, "_FIRST_NOTE_SECONDS", 0.1)
    monkeypatch.setattr(node_wait, "_NOTE_SECONDS", 0.2)
    monkeypatch.setattr(fair_share, "_LOOK_SECONDS", 0.2)


class _Queue(SubprocessAgents):
    """Agents that wait until the cluster has room.

    Args:
        cluster: The cluster.
    """

    def __init__(self, cluster: "_Crowded") -> None:
        super().__init__()
        self._cluster = cluster
        self._waiting: list[tuple[AgentOrder, _Later]] = []
        self.asks: list[int | None] = []

    def start(self, order: AgentOrder) -> Any:
        later = _Later()
        self._waiting.append((order, later))
        return later

    def receive(self, seconds: float) -> list[tuple[AgentHandle, Message]]:
        while self._waiting and self._cluster.rooms > len(self._agents):
            order, later = self._waiting.pop(0)
            later.agent = super().start(order)
        if not self._agents:
            time.sleep(seconds)
            return []
        later_of = {id(one.agent): one for one in self._cluster.all_later}
        return [(later_of[id(agent)], said) for agent, said in super().receive(seconds)]

    def ask(self, resources: Mapping[str, Any], agents: int | None) -> None:
        self.asks.append(agents)

    def asked(self, resources: Mapping[str, Any]) -> list[int]:
        return self._cluster.asked


class _Later(AgentHandle):
    """An agent that may not be on a node yet."""

    def __init__(self) -> None:
        self.agent: Any = None
        _Crowded.all_later.append(self)

    def send(self, instruction: Any) -> None:
        if self.agent is not None:
            self.agent.send(instruction)


class _Crowded(Watched):
    """A cluster with room for some agents of this run, and with other runs that ask for theirs.

    Attributes:
        rooms: The number of agents of this run that it has room for.
        state: What it says about its room.
        asked: The numbers of agents of other runs that wait for more.
    """

    rooms: int
    state: Room
    asked: list[int]
    all_later: ClassVar[list[_Later]] = []

    @classmethod
    def of(cls, rooms: int, state: Room = Room.FREE, **fields: Any) -> "_Crowded":
        cluster = cls(cpus_per_agent=1, **fields)
        cls.all_later.clear()
        cluster.set(rooms=rooms, state=state, asked=[])
        return cluster

    def set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def open(self) -> Any:
        object.__setattr__(self, "pools", [*getattr(self, "pools", ()), _Queue(self)])
        return self.pools[-1]

    def room(self, resources: Mapping[str, Any]) -> Room:
        return self.state


class _Reacting(Listener):
    """Acts on notes.

    Args:
        actions: A function for each text of which a note has a part; called once.
        after: The number of notes with the text after which it is called.
    """

    def __init__(self, actions: dict[str, Any], after: int = 1) -> None:
        super().__init__()
        self._actions = actions
        self._after = after

    def note(self, text: str) -> None:
        super().note(text)
        for part in list(self._actions):
            if sum(part in one for one in self.notes) >= self._after:
                self._actions.pop(part)()


@pytest.fixture
def dataset(tmp_path: Path) -> JsonlDataset:
    return input_of(tmp_path, ["keep", "fail", "twice", "drop"] * 50)


@pytest.mark.slow
def test_a_run_waits_for_its_turn_longer_than_the_limit_and_says_so(
    tmp_path: Path, dataset: JsonlDataset
) -> None:
    cluster = _Crowded.of(0, Room.BUSY, agents=1, start_seconds=0.3)
    begin = lambda: cluster.set(rooms=1, state=Room.FREE, start_seconds=60.0)  # noqa: E731
    listener = _Reacting({"waiting for its turn: other jobs use the cluster. Each takes": begin}, 4)
    both(tmp_path, dataset, works(), cluster, progress=listener)
    assert cluster.pools[0].asks[0] == 0  # type: ignore[attr-defined]


@pytest.mark.parametrize("state", [Room.NONE, Room.FREE])
def test_a_run_fails_if_no_node_holds_an_agent_for_too_long(
    tmp_path: Path, dataset: JsonlDataset, state: Room
) -> None:
    cluster = _Crowded.of(0, state, agents=1, start_seconds=0.5)
    listener = Listener()
    with pytest.raises(ClusterError, match=r"no agent was ready within 0\.5 s\. Each takes"):
        run(works(), dataset, node(tmp_path), cluster=cluster, progress=listener)
    text = NO_NODE_NOTE if state is Room.NONE else "no agent is ready yet"
    assert any(text in note and "this run fails in" in note for note in listener.notes)


@pytest.mark.slow
def test_a_run_continues_when_a_node_comes_after_all_have_gone(
    tmp_path: Path, dataset: JsonlDataset
) -> None:
    cluster = _Crowded.of(2, agents=2)

    def lose_all() -> None:
        cluster.set(rooms=0, state=Room.NONE)
        for process in cluster.alive():
            process.kill()

    listener = Meanwhile(50, lose_all)
    listener.on_note = lambda text: cluster.set(rooms=1) if NO_NODE_NOTE in text else None
    both(tmp_path, dataset, works(seconds=0.01), cluster, progress=listener)
    assert any(NO_NODE_NOTE in note for note in listener.notes)


@pytest.mark.slow
def test_a_run_ends_when_all_nodes_have_gone_for_too_long_and_keeps_what_it_has(
    tmp_path: Path, dataset: JsonlDataset
) -> None:
    cluster = _Crowded.of(2, agents=2)

    def lose_all() -> None:
        cluster.set(rooms=0, state=Room.NONE, start_seconds=0.5)
        for process in cluster.alive():
            process.kill()

    operator = works(seconds=0.01)
    with pytest.raises(ClusterError, match=r"no agent was ready within 0\.5 s"):
        away = node(tmp_path / "away")
        run(operator, dataset, away, cluster=cluster, progress=Meanwhile(50, lose_all))
    local = LocalCluster(agents=1)
    report = run(operator, dataset, away, cluster=local, resume=ResumePolicy.AUTO)
    assert report.manifest.resumed >= 50
    same(tmp_path, run(operator, dataset, node(tmp_path / "home")), report)


@pytest.mark.slow
def test_a_run_gives_an_agent_up_for_one_that_waits_and_takes_it_back(
    tmp_path: Path, dataset: JsonlDataset
) -> None:
    cluster = _Crowded.of(2, agents=2)
    listener = Meanwhile(10, lambda: cluster.set(asked=[0]))
    text = "makes room for another run that waits"
    listener.on_note = lambda note: cluster.set(asked=[1]) if text in note else None
    late = Meanwhile(120, lambda: cluster.set(asked=[]))
    listener.on_update = late.update
    both(tmp_path, dataset, works(seconds=0.05), cluster, progress=listener)
    assert sum(text in note for note in listener.notes) == 1
    assert not any("died" in note for note in listener.notes)
    assert len(cluster.pools[0].processes) == 3  # it came back


@pytest.mark.slow
def test_a_run_keeps_its_last_agent_and_as_many_as_others_have(
    tmp_path: Path, dataset: JsonlDataset
) -> None:
    cluster = _Crowded.of(2, agents=2)
    listener = Meanwhile(10, lambda: cluster.set(asked=[1]))
    both(tmp_path, dataset, works(seconds=0.02), cluster, progress=listener)
    assert not any("makes room" in note for note in listener.notes)


def test_all_agents_may_die_at_once_and_many_in_a_row_end_the_run(
    tmp_path: Path, dataset: JsonlDataset
) -> None:
    cluster = _Crowded.of(0, agents=8)
    died: list[Message] = [Lost("its node is gone")]

    class Losing(_Queue):
        def receive(self, seconds: float) -> list[tuple[AgentHandle, Message]]:
            dead, self._waiting = self._waiting, []
            return [(later, message) for _, later in dead for message in died]

    cluster.set(open=lambda: Losing(cluster))
    with pytest.raises(ClusterError, match="17 agents in a row died"):
        run(works(), dataset, node(tmp_path), cluster=cluster)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["_max_workers", "cpus_per_agent"])
def test_more_workers_than_a_node_holds_become_those_of_a_node_with_a_note(
    tmp_path: Path, dataset: JsonlDataset, name: str
) -> None:
    class Small(LocalCluster):
        def workers(self, most: int | None) -> int:
            assert most == (32 if name == "_max_workers" else None)
            return 1

    listener = Listener()
    operator = works(_max_workers=32) if name == "_max_workers" else same_records()
    cluster = Small(agents=1, cpus_per_agent=32 if name == "cpus_per_agent" else None)
    both(tmp_path, dataset, operator, cluster, progress=listener)
    (text,) = [note for note in listener.notes if name in note]
    assert f"{name}=32 is more than a node holds: each agent has 1 worker processes" in text
