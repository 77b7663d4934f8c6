"""Tests of the head with agents that do what a test tells them."""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import LocalCluster
from dagster_dataops.data import data_register
from dagster_dataops.errors import (
    ClusterError,
    EnvironmentDiffersError,
    RecordError,
    StorageError,
)
from dagster_dataops.execution.agent_pool import (
    AgentOrder,
    Command,
    Ended,
    Instruction,
    Lease,
    Lost,
    Message,
    Ready,
    Said,
    SpanBatch,
)
from dagster_dataops.execution.leases import head
from dagster_dataops.workplaces import Interval
from tests.execution.engine import Agent, Failure, receive
from tests.execution.helpers import act, lines, node, operator_for, plan, run, run_over, write_input
from tests.nodes import draft_of


class _Fake:
    """An agent that reports messages, and notes its orders."""

    def __init__(self, order: AgentOrder, messages: list[Message]) -> None:
        self.order = order
        self.messages = messages
        self.orders: list[Any] = []

    def send(self, instruction: Instruction) -> None:
        if instruction is Command.STOP:
            self.messages.append(Ended())
        self.orders.append(instruction)


class _Cluster(LocalCluster):
    """A cluster of such agents.

    Args:
        behaviour: Return the messages of an agent for its order and its number.
    """

    def __init__(self, behaviour: Callable[[AgentOrder, int], list[Message]], **fields: Any):
        super().__init__(**fields)
        object.__setattr__(self, "behaviour", behaviour)
        object.__setattr__(self, "started", [])

    def open(self) -> Any:
        return self

    def start(self, order: AgentOrder) -> _Fake:
        made = _Fake(order, self.behaviour(order, len(self.started)))
        self.started.append(made)
        return made

    def receive(self, seconds: float) -> list[tuple[_Fake, Message]]:
        found = [(agent, message) for agent in self.started for message in agent.messages]
        for agent in self.started:
            agent.messages.clear()
        return found

    def finish(self, agent: _Fake) -> None:
        agent.send(Command.FINISH)

    def close(self) -> None: ...

    def has_left(self, node: str) -> bool:
        return node.startswith("gone")

    def ask(self, resources: Mapping[str, Any], agents: int | None) -> None: ...

    def asked(self, resources: Mapping[str, Any]) -> list[int]:
        return []

    def workers(self, most: int | None) -> int:
        return 1

    def count(self, resources: Mapping[str, Any]) -> int:
        return self.agents


def _ready(order: AgentOrder, **other: str) -> Ready:
    return Ready(order.environment._replace(**other), "node-7")


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ("python", "the version of Python"),
        ("package", "the version of dagster-dataops"),
        ("code", "the code version of the operator"),
    ],
)
def test_an_environment_that_differs_is_refused_by_name(
    tmp_path: Path, part: str, name: str
) -> None:
    cluster = _Cluster(lambda order, _: [_ready(order, **{part: "other"})])
    with pytest.raises(EnvironmentDiffersError, match=f"{name} on node-7 is other, but"):
        run_over(tmp_path, act(), plan(["keep"]), cluster=cluster)


def test_agents_that_die_again_and_again_end_the_run(tmp_path: Path) -> None:
    cluster = _Cluster(lambda *_: [Lost("out of memory")])
    with pytest.raises(ClusterError, match="6 agents in a row died, the last with: out of memory"):
        run_over(tmp_path, act(), plan(["keep"]), cluster=cluster)


@pytest.mark.slow
def test_agents_that_die_with_their_nodes_do_not_count(tmp_path: Path) -> None:
    def behaviour(order: AgentOrder, number: int) -> list[Message]:
        if number < 30:
            return [Lost("its node is dead", f"gone-{number}" if number % 6 else "there")]
        return [_ready(order), _all_of(order)]

    run_over(tmp_path, act(), plan(["keep"]), cluster=_Cluster(behaviour))


def test_agents_that_die_beside_those_that_leave_with_their_nodes_end_the_run(
    tmp_path: Path,
) -> None:
    def behaviour(_: AgentOrder, number: int) -> list[Message]:
        return [Lost("out of memory", "there" if number % 2 else f"gone-{number}")]

    with pytest.raises(ClusterError, match="6 agents in a row died, the last with: out of memory"):
        run_over(tmp_path, act(), plan(["keep"]), cluster=_Cluster(behaviour))


def test_an_error_of_an_agent_is_that_of_the_run(tmp_path: Path) -> None:
    error = StorageError("/shared", "write", "disk full")
    cluster = _Cluster(lambda order, _: [_ready(order), Ended(error=error)])
    with pytest.raises(StorageError, match="disk full"):
        run_over(tmp_path, act(), plan(["keep"]), cluster=cluster)


def test_a_cluster_without_agents_is_an_error_after_some_time(tmp_path: Path) -> None:
    cluster = _Cluster(lambda *_: [], start_seconds=0.2)
    with pytest.raises(ClusterError, match="no agent was ready within 0.2 s"):
        run_over(tmp_path, act(), plan(["keep"]), cluster=cluster)


def test_no_two_agents_have_a_segment_number_in_common(tmp_path: Path) -> None:
    orders: list[AgentOrder] = []

    def dies(order: AgentOrder, _: int) -> list[Message]:
        orders.append(order)
        return [Lost("killed")]

    with pytest.raises(ClusterError):
        run_over(tmp_path, act(), plan(["keep"]), cluster=_Cluster(dies))
    numbers = [number for order in orders for number in order.segments]
    assert len(numbers) == len(set(numbers)) > 10_000


def _all_of(order: AgentOrder) -> Said:
    """Return the report of an agent that settles the whole input, line by line."""
    agent = Agent(order)
    said: list[Message] = []
    thread = threading.Thread(target=agent.run)
    thread.start()
    while not any(isinstance(one, Ready) for one in said):
        said += agent.receive(1.0)
    for start, end in _lines_of(Path(order.input)):
        agent.follow(Lease([Interval(start, end)], []))
    agent.follow(Command.FINISH)
    thread.join()
    said += agent.receive(0.0)
    batches = [batch for one in said if isinstance(one, Said) for batch in one.batches]
    spans = [span for batch in batches for span in batch.spans]
    notes = [note for batch in batches for note in batch.notes]
    first = batches[0]
    return Said([SpanBatch(first.segment, first.offset, spans, notes)], [], [])


@pytest.mark.slow
def test_a_batch_of_which_only_some_spans_count_keeps_their_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A silent agent settles the second record, then another one all three."""
    monkeypatch.setattr(head, "_SILENT_SECONDS", 0.3)
    records = plan(["keep"] * 3)
    dataset = write_input(tmp_path / "input.jsonl", records)
    made: list[Said] = []

    def behave(order: AgentOrder, number: int) -> list[Message]:
        said = _all_of(order)
        made.append(said)
        if number:
            return [_ready(order), said]
        (batch,) = said.batches
        offset = batch.offset + batch.spans[0].output_bytes
        middle = SpanBatch(batch.segment, offset, batch.spans[1:2], batch.notes[1:2])
        return [_ready(order), Said([middle], [], [])]

    operator = operator_for("process", 1, _reuse_outcomes=True)  # a span for each record
    report = run(operator, dataset, node(tmp_path), cluster=_Cluster(behave, agents=1))
    assert len(made) == 2
    assert len(made[0].batches[0].spans) == 3
    assert report.manifest.rows_in == 3
    expected = [{**record, "kept": True} for record in records]
    assert node(tmp_path).result.read_bytes() == lines(expected)


def _lines_of(path: Path) -> list[tuple[int, int]]:
    found, start = [], 0
    for line in path.read_bytes().splitlines(keepends=True):
        found.append((start, start + len(line)))
        start += len(line)
    return found


@pytest.mark.slow
def test_agents_of_a_complete_run_finish_and_are_closed_after_the_publication(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(head, "_GRACE_SECONDS", 0.1)
    dataset = write_input(tmp_path / "input.jsonl", plan(["keep"] * 3))
    result = node(tmp_path).result
    closed: list[bool] = []

    class Closing(_Cluster):
        def close(self) -> None:
            closed.append(draft_of(result).exists() or result.exists())

    def behave(order: AgentOrder, number: int) -> list[Message]:
        return [_ready(order)] if number else [_ready(order), _all_of(order)]

    cluster = Closing(behave, agents=2)
    run(act(), dataset, node(tmp_path), cluster=cluster)
    assert Command.FINISH in cluster.started[0].orders
    assert all(Command.STOP not in agent.orders for agent in cluster.started)
    assert closed == [True]


@pytest.mark.parametrize("settled", [True, False])
def test_agents_of_a_failed_run_are_stopped(tmp_path: Path, settled: bool) -> None:

    def behave(order: AgentOrder, number: int) -> list[Message]:
        if number:
            return [_ready(order)]
        said: list[Message] = [_all_of(order)] if settled else []
        return [_ready(order), *said, Ended(failure=Failure("ValueError", "no", "", offset=0))]

    cluster = _Cluster(behave, agents=2)
    with pytest.raises(RecordError, match="no"):
        run_over(tmp_path, act(_ignore_errors=False), plan(["keep"] * 3), cluster=cluster)
    assert Command.STOP in cluster.started[1].orders
    assert Command.FINISH not in cluster.started[1].orders


@data_register("data.head_tests", _concurrency_mode="process", _max_workers=1)
def numbered(record, context):
    return {**record, "agent": context.agent}


def test_each_agent_knows_its_number(tmp_path: Path) -> None:
    numbers: list[tuple[int, int]] = []

    def dies(order: AgentOrder, _: int) -> list[Message]:
        numbers.append(receive(order.operator).__dataops__.link.facts.agent)
        return [Lost("killed")]

    with pytest.raises(ClusterError):
        run_over(tmp_path, numbered(), plan(["keep"]), cluster=_Cluster(dies, agents=3))
    assert numbers[:4] == [(0, 3), (1, 3), (2, 3), (0, 3)]


def test_agents_of_a_run_that_ends_with_an_error_are_stopped(tmp_path: Path) -> None:
    error = StorageError("/shared", "write", "disk full")
    cluster = _Cluster(
        lambda order, number: [_ready(order), *([] if number else [Ended(error=error)])], agents=2
    )
    with pytest.raises(StorageError, match="disk full"):
        run_over(tmp_path, act(), plan(["keep"] * 3), cluster=cluster)
    assert Command.STOP in cluster.started[1].orders
    assert Command.FINISH not in cluster.started[1].orders


def test_leases_do_not_become_smaller_than_a_quarter_of_a_second_of_the_agent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else a quick agent waits for dozens of tiny leases at the end."""
    now = [100.0]
    monkeypatch.setattr(head.time, "monotonic", lambda: now[0])
    agent = head.AgentState(_Fake(None, []))  # type: ignore[arg-type]
    assert agent.least_lease == 0
    now[0] = agent.last_message_at = 102.0
    assert agent.least_lease == 0
    agent.finished_bytes = 8_000
    assert agent.least_lease == 1_000
