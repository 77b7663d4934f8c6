"""AgentOrders: the descriptions of a run that its agents receive."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

from dagster_dataops.checkpoints.journal.sent_pieces import facts_of_place
from dagster_dataops.datasets.file_values.result_roots import facts_of_keeper
from dagster_dataops.execution.agent_pool import AgentEnvironment, AgentOrder, Cluster
from dagster_dataops.execution.checkpoint_sink import CheckpointSink
from dagster_dataops.foundation.places.bucket import Location, facts_of_location
from dagster_dataops.foundation.places.file_state import FileState
from dagster_dataops.foundation.places.opening import state_at
from dagster_dataops.operators.definition.operator import Operator, in_run, reconfigured
from dagster_dataops.operators.pickling import ship

_SEGMENTS: Final = 10_000  # of one agent: its workers, and those that replace dead ones


class AgentOrders:
    """Makes the orders of a run."""

    def __init__(self, sink: CheckpointSink, cluster: Cluster) -> None:
        self._sink = sink
        self._cluster = cluster
        self._given = 0  # orders

    @property
    def resources(self) -> Mapping[str, Any]:
        """The resources that each agent reserves on its node, by name."""
        return {"num_cpus": self.workers, **self._reserved}

    @property
    def _reserved(self) -> Mapping[str, Any]:
        """The resources that the operator reserves for each agent."""
        agents = self._sink.attempt.settings.agents
        return agents if isinstance(agents, Mapping) else {}

    @cached_property
    def count(self) -> int:
        """The number of agents that work at the same time."""
        return self._cluster.count(self.resources)

    @cached_property
    def workers(self) -> int:
        """The number of worker processes of an agent: at most what a node of the cluster holds."""
        most = self._sink.attempt.operator.__dataops__.settings.max_workers
        if most and "num_cpus" in self._reserved:
            return most
        workers = self._cluster.workers(most)
        name = "_max_workers" if most else "cpus_per_agent"
        wanted = most or self._cluster.cpus_per_agent
        if wanted and workers < wanted:
            self._sink.attempt.log(
                f"{name}={wanted} is more than a node holds: each agent has {workers} "
                f"worker processes; {self._cluster.describe()}"
            )
        return workers

    @property
    def environment(self) -> AgentEnvironment:
        """The environment of the head."""
        return AgentEnvironment.here(self._sink.attempt.operator.__dataops__.spec.code_version)

    def next(self) -> AgentOrder:
        """Return the order of another agent."""
        sink, dataset = self._sink, self._sink.work.dataset
        location, stamp = self._input
        name, bucket = facts_of_location(location)
        return AgentOrder(
            operator=ship(self._operator()),
            environment=self.environment,
            input=name,
            size=stamp.size,
            text_bytes=dataset.size_bytes,
            modified_ns=stamp.modified_ns,
            fingerprint=dataset.fingerprint,
            folder=sink.folder,
            segments=sink.checkpoint.take_segment_numbers(_SEGMENTS),
            bucket=bucket,
            outputs=facts_of_place(sink.sent_place()),
            keeper=facts_of_keeper(sink.attempt.operator.__dataops__.keeper),
            resources=self.resources,
        )

    @cached_property
    def _input(self) -> tuple[Location, FileState]:
        """Where the agents read the input, and its state there."""
        location = self._sink.work.dataset.location
        shared = self._sink.attempt.lock.shared_input(location)
        (stamp,) = self._sink.attempt.stamps
        return shared, stamp if shared == location else state_at(shared)

    def _operator(self) -> Operator:
        """Return the operator with the settings and the facts of the next agent.

        An agent that replaces another one may get the number of a third one, and then shares its
        part of the limits of model clients: the limits are never exceeded.
        """
        operator = self._sink.attempt.operator
        settings = operator.__dataops__.settings
        stop_after = self._sink.attempt.settings.stop_after_failures
        new = replace(settings, max_workers=self.workers, stop_after_failures=stop_after)
        sent, link = reconfigured(operator, {}, new), operator.__dataops__.link
        if link is None:
            return sent
        agent = self._given % self.count, self.count
        self._given += 1
        return in_run(sent, link._replace(facts=link.facts._replace(agent=agent)))
