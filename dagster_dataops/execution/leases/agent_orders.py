"""AgentOrders: the descriptions of a run that its agents receive."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

from dagster_dataops.execution.agent_pool import AgentEnvironment, AgentOrder, Cluster
from dagster_dataops.execution.job import Job
from dagster_dataops.execution.leases.environment import environment_here
from dagster_dataops.operators.definition.operator import reconfigured
from dagster_dataops.operators.pickling import ship

_SEGMENTS: Final = 10_000  # of one agent: its workers, and those that replace dead ones


class AgentOrders:
    """Makes the orders of a run.

    Args:
        job: The job.
        cluster: The machines of the agents.
    """

    def __init__(self, job: Job, cluster: Cluster) -> None:
        self._job = job
        self._cluster = cluster

    @property
    def resources(self) -> Mapping[str, Any]:
        """The resources that each agent reserves on its node, by name."""
        return {"num_cpus": self._workers, **(self._job.settings.agents or {})}

    @property
    def _workers(self) -> int:
        """The number of worker processes of an agent."""
        return self._job.operator.__dataops__.settings.max_workers or self._cluster.workers()

    @property
    def environment(self) -> AgentEnvironment:
        """The environment of the head."""
        return environment_here(self._job.operator.__dataops__.spec.code_version)

    def next(self) -> AgentOrder:
        """Return the order of another agent."""
        job = self._job
        (stamp,) = job.attempt.stamps
        return AgentOrder(
            operator=self._operator,
            environment=self.environment,
            input=job.dataset.path,
            size=stamp.size,
            modified_ns=stamp.modified_ns,
            fingerprint=job.dataset.fingerprint,
            content=job.content,
            folder=job.folder,
            segments=job.checkpoint.take_segment_numbers(_SEGMENTS),
            resources=self.resources,
        )

    @cached_property
    def _operator(self) -> bytes:
        """The operator as bytes, with the settings that hold on each agent."""
        operator, settings = self._job.operator, self._job.operator.__dataops__.settings
        stop_after = self._job.settings.stop_after_failures
        given = replace(settings, max_workers=self._workers, stop_after_failures=stop_after)
        return ship(reconfigured(operator, {}, given))
