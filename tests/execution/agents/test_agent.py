"""Tests of what an agent checks before it begins."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from dagster_dataops import LocalCluster
from dagster_dataops.errors import InputError, StorageError, WorkerError
from dagster_dataops.execution.agent_pool import AgentOrder, Command, Ended, Message, Ready
from tests.execution.engine import Agent, AgentOrders
from tests.execution.helpers import act, node, plan, sink_for, write_input


def _order(tmp_path: Path) -> AgentOrder:
    dataset = write_input(tmp_path / "input.jsonl", plan(["keep"] * 3))
    sink = sink_for(act(), dataset, node(tmp_path))
    return AgentOrders(sink, LocalCluster(agents=1, cpus_per_agent=1)).next()


def _messages(order: AgentOrder) -> list[Message]:
    agent = Agent(order)
    agent.run()
    return agent.receive(0.0)


def _error(order: AgentOrder) -> BaseException | None:
    (ended,) = _messages(order)
    assert isinstance(ended, Ended)
    return ended.error


def test_an_input_that_this_machine_sees_otherwise_is_an_error(tmp_path: Path) -> None:
    order = _order(tmp_path)
    os.utime(order.input, ns=(0, 0))
    error = _error(order)
    assert isinstance(error, InputError)
    assert f"machine {os.uname().nodename} sees another file" in str(error)


def test_a_checkpoint_that_this_machine_does_not_see_is_an_error(tmp_path: Path) -> None:
    order = replace(_order(tmp_path), folder=tmp_path / "not shared")
    error = _error(order)
    assert isinstance(error, StorageError)
    assert "must be a folder that all machines share" in str(error)


def test_an_operator_that_cannot_be_loaded_is_an_error_with_the_reason(tmp_path: Path) -> None:
    order = replace(_order(tmp_path), operator=b"cno_such_module\nwork\n.")
    error = _error(order)
    assert isinstance(error, WorkerError)
    assert "No module named 'no_such_module'" in str(error)


def test_an_operator_is_not_loaded_by_another_python_or_package(tmp_path: Path) -> None:
    order = _order(tmp_path)
    other = replace(order, environment=order.environment._replace(python="3.99"), operator=b"")
    ready, ended = _messages(other)
    assert isinstance(ready, Ready)
    assert ready.environment.code == ""
    assert ended == Ended()


@pytest.mark.slow
def test_an_agent_that_is_stopped_early_ends_without_an_error(tmp_path: Path) -> None:
    order = _order(tmp_path)
    agent = Agent(order)
    agent.follow(Command.STOP)
    agent.run()
    messages = agent.receive(0.0)
    assert isinstance(messages[0], Ready)
    assert messages[-1] == Ended()
