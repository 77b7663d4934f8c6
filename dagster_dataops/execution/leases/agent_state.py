"""AgentState: state of one agent, as seen by the head."""

import time
from typing import Final

from dagster_dataops.execution.agent_pool import AgentHandle, Command

_RECALL_SECONDS: Final = 1.0


class AgentState:
    """State of one agent, as seen by the head.

    Attributes:
        node: The name of its machine; empty until it is ready.
        placed: Whether it has started on a node.
        ready: Whether it has reported that it is ready.
        leaving: Whether it ends after its work, without a replacement. It gets no other.
        silent: Whether its leases were revoked because it was silent. It gets no other.
        last_message_at: When its last message arrived; a monotonic time.
    """

    def __init__(self, handle: AgentHandle) -> None:
        self._handle = handle
        self.node = ""
        self.placed = False
        self.ready = False
        self.leaving = False
        self.silent = False
        self.last_message_at = time.monotonic()
        self._recall_at = 0.0

    @property
    def works(self) -> bool:
        """Whether it gets work."""
        return self.ready and not self.silent and not self.leaving

    def leave(self) -> None:
        """Ask it to end, after the work that its workers have begun."""
        self.leaving = True
        self._handle.send(Command.RECALL)
        self._handle.send(Command.FINISH)

    def recall(self) -> None:
        """Ask for the stretches that no worker was given, at most once a second."""
        now = time.monotonic()
        if now >= self._recall_at:
            self._recall_at = now + _RECALL_SECONDS
            self._handle.send(Command.RECALL)
