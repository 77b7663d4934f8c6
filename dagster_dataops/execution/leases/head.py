"""Head: run the open records of an attempt by agents on other machines.

The head leases parts of the input to agents and journals the spans that they report. An agent that
dies, or is silent for long, is replaced, and its parts are leased again. No record counts as the
cause of an agent's death. Only a record that ends a worker process is reported, by the agent.
"""

import time
from typing import TYPE_CHECKING, Final

from dagster_dataops.errors import ClusterError, EnvironmentDiffersError
from dagster_dataops.execution.agent_pool import (
    AgentEnvironment,
    AgentHandle,
    AgentPool,
    Cluster,
    Command,
    Ended,
    Lost,
    Message,
    Ready,
    Said,
    SpanBatch,
)
from dagster_dataops.execution.checkpoint_sink import CheckpointSink
from dagster_dataops.execution.leases.agent_orders import AgentOrders
from dagster_dataops.execution.leases.fair_share import FairShare
from dagster_dataops.execution.leases.lease_schedule import LeaseSchedule
from dagster_dataops.execution.leases.node_wait import NodeWait
from dagster_dataops.foundation.places.opening import open_readable
from dagster_dataops.foundation.places.range_source import close_readable

if TYPE_CHECKING:
    from dagster_dataops.execution.records.record_failures import Failure


_RECALL_SECONDS: Final = 1.0
_WAIT_SECONDS: Final = 0.1
_LEASE_BYTES: Final = 64 << 20
_LEAST_LEASE_SECONDS: Final = 0.25  # of work: an agent asks for more by a report, which takes 0.1
_SILENT_SECONDS: Final = 15.0
_MOST_LOST: Final = 5
_LAST_MESSAGES_SECONDS: Final = 5.0  # agents sync their segments before they report them
_GRACE_SECONDS: Final = 3.0
_PARTS: Final = {
    "python": "the version of Python",
    "package": "the version of dagster-dataops",
    "code": "the code version of the operator",
}


class AgentState:
    """State of one agent, as seen by the head.

    Attributes:
        node: The name of its machine; empty until it is ready.
        placed: Whether it has started on a node.
        ready: Whether it has reported that it is ready.
        leaving: Whether it ends after its work, without a replacement. It gets no other.
        silent: Whether its leases were revoked because it was silent. It gets no other.
        last_message_at: When its last message arrived; a monotonic time.
        finished_bytes: How many bytes of the input it has finished.
    """

    def __init__(self, handle: AgentHandle) -> None:
        self._handle = handle
        self.node = ""
        self.placed = False
        self.ready = False
        self.leaving = False
        self.silent = False
        self.last_message_at = self._since = time.monotonic()
        self.finished_bytes = 0
        self._recall_at = 0.0

    @property
    def works(self) -> bool:
        """Whether it gets work."""
        return self.ready and not self.silent and not self.leaving

    @property
    def least_lease(self) -> int:
        """The smallest lease in bytes: after a smaller one the agent would wait for the next."""
        seconds = self.last_message_at - self._since
        return int(self.finished_bytes / seconds * _LEAST_LEASE_SECONDS) if seconds else 0

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


class Head:
    """Runs the open records of an attempt by agents."""

    def __init__(self, sink: CheckpointSink, cluster: Cluster) -> None:
        self._sink = sink
        self._cluster = cluster
        self._orders = AgentOrders(sink, cluster)
        self._agents: dict[AgentHandle, AgentState] = {}
        self._count = 0
        self._lost: list[Lost] = []  # since a span was journaled
        self._failure: Failure | None = None
        self._last_failed: list[int] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        """Run the open records.

        Raises:
            RecordError: A record failed and failures are not ignored.
            OutageError: Too many consecutive calls of one worker failed, or too many workers died.
            ClusterError: No cluster answers, its machines differ, or its agents die.
            RunStoppedError: A stop was requested.
        """
        work = self._sink.work
        descriptor = open_readable(work.dataset.location)
        try:
            batches = work.batch_starts(descriptor)
            self._schedule = LeaseSchedule(descriptor, work.open, batches)
            self._pool: AgentPool = self._cluster.open()
            try:
                self._work()
            finally:
                self._end()
        finally:
            close_readable(descriptor)
        if self._failure is not None:
            self._sink.last_failed = set(self._last_failed)
            raise self._sink.error_of(self._failure)

    def _work(self) -> None:
        self._count = self._orders.count
        resources = self._orders.resources
        self._wait = NodeWait(self._cluster, resources, self._sink.attempt.log)
        self._share = FairShare(self._pool, resources)
        for _ in range(self._count):
            self._start_agent()
        while self._schedule and self._failure is None:
            for handle, message in self._pool.receive(_WAIT_SECONDS):
                if handle in self._agents:
                    self._handle(handle, message)
            if self._error is not None:
                raise self._error
            self._replace_silent(time.monotonic())
            self._wait_and_share()
            self._supply()
            self._sink.tick()

    def _start_agent(self) -> None:
        handle = self._pool.start(self._orders.next())
        self._agents[handle] = AgentState(handle)

    def _handle(self, handle: AgentHandle, message: Message) -> None:
        agent = self._agents[handle]
        agent.last_message_at, agent.placed = time.monotonic(), True
        match message:
            case Said():
                self._journal(agent, message)
            case Ready():
                self._handle_ready(agent, message)
            case Ended():
                self._hear_end(handle, message)
            case Lost():
                self._lose(handle, message)

    def _handle_ready(self, agent: AgentState, ready: Ready) -> None:
        here = self._orders.environment
        for part, there, expected in zip(
            AgentEnvironment._fields, ready.environment, here, strict=True
        ):
            if there != expected:
                name = _PARTS[part]
                versions = there[:12], expected[:12]
                raise EnvironmentDiffersError(str(self._cluster), name, ready.node, *versions)
        agent.ready, agent.node = True, ready.node

    def _journal(self, agent: AgentState, said: Said) -> None:
        """Journal the spans that count."""
        self._sink.checkpoint.note_sent(said.sent)
        settled = [self._journal_batch(agent, batch) for batch in said.batches]
        for start, end in said.finished:
            agent.finished_bytes += end - start
            self._schedule.finish(agent, start, end)
        for start, end in said.returned:
            self._schedule.give_back(agent, start, end)
        if any(settled):
            self._lost.clear()

    def _journal_batch(self, agent: AgentState, batch: SpanBatch) -> bool:
        """Journal the spans of a batch that count; return whether any does."""
        counting = [
            self._schedule.accept(agent, span.start, span.start + span.length)
            for span in batch.spans
        ]
        if all(counting):
            self._sink.journal(batch.segment, batch.offset, batch.spans, batch.notes)
            return bool(counting)
        offset = batch.offset
        for span, notes, counts in zip(batch.spans, batch.notes, counting, strict=True):
            if counts:
                self._sink.journal(batch.segment, offset, [span], [notes])
            offset += span.output_bytes + span.error_bytes
        return any(counting)

    def _hear_end(self, handle: AgentHandle, ended: Ended) -> None:
        """Note why an agent ended by itself; an agent without a reason is replaced if needed."""
        self._last_failed += ended.last_failed
        self._failure = self._failure or ended.failure
        if self._failure is None and ended.error is None:
            self._lose(handle, Lost("it ended before its work was done"))
            return
        self._error = self._error or ended.error
        self._forget(handle)

    def _forget(self, handle: AgentHandle) -> AgentState:
        agent = self._agents.pop(handle)
        self._schedule.revoke(agent)
        return agent

    def _lose(self, handle: AgentHandle, lost: Lost) -> None:
        """Replace an agent that has died, and lease its parts again."""
        agent = self._forget(handle)
        if agent.silent or agent.leaving:  # it was replaced before, or is not replaced
            return
        self._lost.append(lost)
        self._check_lost()
        where = f" on {agent.node}" if agent.node else ""
        self._sink.attempt.log(
            f"an agent{where} died ({lost.reason}); its unsettled records are done again"
        )
        if self._schedule and self._failure is None:
            self._start_agent()

    def _check_lost(self) -> None:
        """Raise a `ClusterError` if too many agents have died in a row on nodes that are there."""
        most = max(_MOST_LOST, 2 * self._count)  # all nodes may go at once
        if len(self._lost) <= most:
            return
        self._lost = [lost for lost in self._lost if not self._pool.has_left(lost.node)]
        if len(self._lost) > most:
            text = f"{len(self._lost)} agents in a row died, the last with: {self._lost[-1].reason}"
            raise ClusterError(str(self._cluster), text)

    def _replace_silent(self, now: float) -> None:
        """Replace agents that are silent for too long.

        A silent agent may work again later, for example after its machine was suspended. Its spans
        then count if they are the first, and it ends after its work.
        """
        for handle, agent in list(self._agents.items()):
            if agent.silent or not agent.ready or now - agent.last_message_at < _SILENT_SECONDS:
                continue
            agent.silent = True
            self._schedule.revoke(agent)
            handle.send(Command.FINISH)
            self._sink.attempt.log(
                f"the agent on {agent.node} has been silent for {_SILENT_SECONDS:g} s; its "
                "unsettled records are done elsewhere as well"
            )
            self._start_agent()

    def _wait_and_share(self) -> None:
        """Wait for a node if no agent works, and share the nodes with other runs."""
        agents = [agent for agent in self._agents.values() if not agent.silent]
        ready = [agent for agent in agents if agent.works]
        pending = sum(not agent.placed for agent in agents)
        if ready:
            self._wait.reset()
        else:
            self._wait.check(placed=any(agent.placed for agent in agents))
        leaving = any(agent.leaving for agent in agents)
        change = self._share.check(len(ready), pending, leaving=leaving)
        if change < 0:
            ready[-1].leave()
            self._sink.attempt.log(
                f"the agent on {ready[-1].node} makes room for another run that waits"
            )
        elif change > 0:
            self._start_agent()

    def _supply(self) -> None:
        """Lease free bytes to agents with little work; if none is free, recall some."""
        some_idle = False
        for handle, agent in self._agents.items():
            if not agent.works:
                continue
            # At most a fair share of half of the rest: leases become smaller towards the end,
            # but not too small for its speed; what a slow one has not begun is recalled.
            share = max(1, self._schedule.free // (2 * self._count), agent.least_lease)
            size = min(_LEASE_BYTES, share)
            while self._schedule.leased(agent) <= size and self._lease(handle, size):
                pass
            some_idle = some_idle or not self._schedule.leased(agent)
        if some_idle and not self._schedule.free:
            max(self._agents.values(), key=self._schedule.leased).recall()

    def _lease(self, handle: AgentHandle, size: int) -> bool:
        lease = self._schedule.take(self._agents[handle], size)
        if lease is not None:
            handle.send(lease)
        return lease is not None

    def _end(self) -> None:
        """End the agents; after a failure or interrupt journal their finished records first.

        After a complete run they end while the result is published.
        """
        if not self._schedule and self._failure is None:
            for handle in self._agents:
                self._pool.finish(handle)
            self._sink.attempt.resources.callback(self._close)
            return
        try:
            drain = self._sink.attempt.settings.drain_seconds
            for handle in self._agents:
                handle.send(Command.STOP)
            self._await_ends(drain + _LAST_MESSAGES_SECONDS)
        finally:
            self._pool.close()

    def _close(self) -> None:
        """Wait a little for the agents, whose operators may have a ``close``; then end them."""
        try:
            self._await_ends(_GRACE_SECONDS)
        finally:
            self._pool.close()

    def _await_ends(self, seconds: float) -> None:
        """Wait for the agents that can be expected to end; journal the spans that they report."""
        agents = self._agents.items()
        waiting = {handle for handle, agent in agents if agent.ready and not agent.silent}
        until = time.monotonic() + seconds
        while waiting and time.monotonic() < until:
            for handle, message in self._pool.receive(_WAIT_SECONDS):
                if isinstance(message, Said) and handle in self._agents:
                    self._journal(self._agents[handle], message)
                elif isinstance(message, Ended):
                    self._last_failed += message.last_failed
                if isinstance(message, Ended | Lost):
                    waiting.discard(handle)
