"""AgentState: state of one agent, as seen by the head."""

import time
from typing import Final

from dagster_dataops.execution.agent_pool import AgentHandle, Command, Lease

_MEMORY_SECONDS: Final = 10.0
_RECALL_SECONDS: Final = 1.0


class AgentState:
    """State of one agent, as seen by the head.

    Args:
        handle: The agent.

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
        self._finished = 0.0  # bytes in the last seconds
        self._seconds = 0.0
        self._measured_at = self.last_message_at
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

    def mark_ready(self, node: str) -> None:
        """Set the agent to ready, on the machine ``node``."""
        self.ready, self.node = True, node
        self._measured_at = time.monotonic()

    def measure(self, size: int) -> None:
        """Add ``size`` bytes, settled since the last call, to the measured rate."""
        now = time.monotonic()
        self._finished += size
        self._seconds += now - self._measured_at
        self._measured_at = now
        if self._seconds > _MEMORY_SECONDS:
            self._finished /= 2
            self._seconds /= 2

    @property
    def rate(self) -> float:
        """Bytes that it finishes in a second; 0 if unknown."""
        return self._finished / self._seconds if self._seconds else 0.0

    def lease(self, lease: Lease, held: int) -> None:
        """Add a part of the input to its work.

        Args:
            lease: The part.
            held: Number of bytes that it held before.
        """
        if not held:
            self._measured_at = time.monotonic()
        self._handle.send(lease)

    def recall(self) -> None:
        """Ask for the stretches that no worker was given, at most once a second."""
        now = time.monotonic()
        if now >= self._recall_at:
            self._recall_at = now + _RECALL_SECONDS
            self._handle.send(Command.RECALL)
