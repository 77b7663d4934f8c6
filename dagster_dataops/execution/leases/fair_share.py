"""FairShare: end agents so that waiting runs get nodes, and start them again later."""

import time
from collections.abc import Mapping
from typing import Any, Final

from dagster_dataops.execution.agent_pool import AgentPool

_LOOK_SECONDS: Final = 10.0
_GRACE_LOOKS: Final = 3  # after an agent was ended, until the other run has its place


class FairShare:
    """Shares the nodes of a cluster with other runs.

    A run that waits for agents shows this to the others. A run that has at least two agents more
    ends one. The cluster gives its place to the run that has waited longest. The run starts the
    agent again when no run waits any more.
    """

    def __init__(self, pool: AgentPool, resources: Mapping[str, Any]) -> None:
        self._pool = pool
        self._resources = resources
        self._given_up = 0
        self._look_at = time.monotonic() + _LOOK_SECONDS

    def check(self, ready: int, pending: int, *, leaving: bool) -> int:
        """Return the change of the number of agents that is due: -1, 0 or 1.

        Args:
            ready: Number of agents that work.
            pending: Number of agents that wait for a node.
            leaving: Whether an agent was asked to end and has not ended yet.
        """
        now = time.monotonic()
        if now < self._look_at:
            return 0
        self._look_at = now + _LOOK_SECONDS
        self._pool.ask(self._resources, ready if pending else None)
        asked = self._pool.asked(self._resources)
        if asked and not leaving and min(asked) + 1 < ready:
            self._given_up += 1
            self._look_at = now + _GRACE_LOOKS * _LOOK_SECONDS
            return -1
        if self._given_up and not asked and not pending:
            self._given_up -= 1
            return 1
        return 0
