"""NodeWait: wait for a node while no agent works, with notes and a limit."""

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from dagster_dataops.errors import ClusterError
from dagster_dataops.execution.agent_pool import Cluster, Room

_LOOK_SECONDS: Final = 1.0
_FIRST_NOTE_SECONDS: Final = 10.0
_NOTE_SECONDS: Final = 60.0


class NodeWait:
    """Waits for the first agent, and again when all have died.

    The limit ``start_seconds`` of the cluster counts the time without an agent. Time in which other
    runs use the nodes does not count: a run waits for its turn.
    """

    def __init__(
        self, cluster: Cluster, resources: Mapping[str, Any], log: Callable[[str], None]
    ) -> None:
        self._cluster = cluster
        self._resources = resources
        self._log = log
        self.reset()

    def reset(self) -> None:
        """Begin anew, because an agent works."""
        now = time.monotonic()
        self._looked_at = self._counted_at = now
        self._waited = 0.0  # seconds that count
        self._note_at = now + _FIRST_NOTE_SECONDS

    def check(self, *, placed: bool) -> None:
        """Note why no agent works, when a note is due.

        Args:
            placed: Whether an agent is on a node, and prepares its work.

        Raises:
            ClusterError: No agent has worked for too long, and no other run is the cause.
        """
        now = time.monotonic()
        if now - self._looked_at < min(_LOOK_SECONDS, self._cluster.start_seconds):
            return
        self._looked_at = now
        room = Room.FREE if placed else self._cluster.room(self._resources)
        if room is not Room.BUSY:
            self._waited += now - self._counted_at
        self._counted_at = now
        if self._waited > self._cluster.start_seconds:
            seconds = f"{self._cluster.start_seconds:g} s"
            reason = f"no agent was ready within {seconds}. {self._wanted()}"
            raise ClusterError(str(self._cluster), reason)
        if now >= self._note_at:
            self._note_at = now + _NOTE_SECONDS
            self._log(self._note(room))

    def _note(self, room: Room) -> str:
        left = max(0.0, self._cluster.start_seconds - self._waited)
        limit = f"this run fails in {left:.0f} s"
        text = {
            Room.FREE: f"no agent is ready yet; {limit}",
            Room.BUSY: "waiting for its turn: other jobs use the cluster",
            Room.NONE: f"waiting for a node: none can hold an agent; {limit}",
        }[room]
        return f"{text}. {self._wanted()}"

    def _wanted(self) -> str:
        return f"Each takes {dict(self._resources)}; {self._cluster.describe()}"
