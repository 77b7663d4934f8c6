"""AgentPool: the interface between a run and the agents on the nodes of a cluster.

An agent is a process on a node. It runs process mode over leased parts of the input, with worker
processes of its own, and reports the settled spans. The head is the run: it keeps the lock, the
journal and the publication.
"""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from dagster_dataops.checkpoints.journal.sent_pieces import SentObject
from dagster_dataops.checkpoints.journal.span import Span
from dagster_dataops.checkpoints.journal.span_notes import SpanNotes
from dagster_dataops.datasets.lines import Interval
from dagster_dataops.execution.records.record_failures import Failure
from dagster_dataops.foundation.places.bucket import Location, location_of


class AgentEnvironment(NamedTuple):
    """Versions that must be equal on the head and on each node.

    Attributes:
        python: The version of Python, without its patch level: code is sent as byte code.
        package: The version of dagster-dataops.
        code: The code version of the operator.
    """

    python: str
    package: str
    code: str

    @classmethod
    def here(cls, code: str) -> "AgentEnvironment":
        """Return the environment of this process, where the operator has this code version."""
        from dagster_dataops import __version__

        major, minor, _ = platform.python_version_tuple()
        return cls(f"{major}.{minor}", __version__, code)


@dataclass(frozen=True, kw_only=True)
class AgentOrder:
    """The description of a run that an agent receives.

    Attributes:
        operator: The pickled operator, from `ship`, with the settings of the agent.
        environment: The environment of the head.
        input: Path of the input, or the key of the object.
        size: The size of its file in bytes.
        text_bytes: The size of its lines; another one than that of a compressed file.
        modified_ns: Its time of the last change.
        fingerprint: Its digest; ``None`` if it is not known.
        folder: The folder of the segments on the machine of the run.
        segments: The numbers of segments that the agent may use, which no other agent may ever
            use. The last one is the number of an empty file, which the head has created.
        bucket: Facts about the bucket of an object, from `facts_of_location`; none for a file.
        outputs: Facts about where to put outputs; none if the agent writes them to the folder.
        keeper: Facts about the `FileKeeper` of the run, from `facts_of_keeper`; none without one.
        resources: Resources of its node that the agent reserves, by the cluster's names;
            ``num_cpus`` is the number of its worker processes by default.
    """

    operator: bytes
    environment: AgentEnvironment
    input: str
    size: int
    text_bytes: int
    modified_ns: int
    fingerprint: str | None
    folder: Path
    segments: range
    bucket: tuple[Any, ...] = field(default=(), repr=False)
    outputs: tuple[Any, ...] = field(default=(), repr=False)
    keeper: tuple[Any, ...] = field(default=(), repr=False)
    resources: Mapping[str, Any] = field(default_factory=dict)

    @property
    def location(self) -> Location:
        """Where the input is."""
        return location_of(self.input, self.bucket)


class Lease(NamedTuple):
    """A part of the input for one agent.

    Attributes:
        stretches: Byte ranges of the input.
        batch_starts: Where batches begin in them, if the operator takes batches.
    """

    stretches: list[Interval]
    batch_starts: list[int]


class Command(Enum):
    """An order to an agent.

    Attributes:
        RECALL: Return the stretches that no worker was given.
        FINISH: End after the work: no lease follows.
        REST: End the run after the work, and wait for the order of another run.
        STOP: Write the finished records and end.
    """

    RECALL = "recall"
    FINISH = "finish"
    REST = "rest"
    STOP = "stop"


Instruction: TypeAlias = Lease | Command


class Ready(NamedTuple):
    """The first message of an agent.

    Attributes:
        environment: Its environment. The code version is empty if the rest differs.
        node: The name of its machine.
    """

    environment: AgentEnvironment
    node: str


class SpanBatch(NamedTuple):
    """Settled spans whose outputs lie one after the other in a segment.

    Attributes:
        segment: Number of the segment.
        offset: Where in it the first output starts.
        spans: The spans.
        notes: Of each span.
    """

    segment: int
    offset: int
    spans: list[Span]
    notes: list[SpanNotes | None]


class Said(NamedTuple):
    """A report of an agent, also a sign of life. The outputs of its spans survive a power loss.

    Attributes:
        batches: The settled spans.
        finished: Byte ranges of the input without unsettled records.
        returned: Stretches that no worker was given, after a recall.
        sent: The objects with the outputs of the spans, if they are in a bucket.
    """

    batches: Sequence[SpanBatch] = ()
    finished: Sequence[Interval] = ()
    returned: Sequence[Interval] = ()
    sent: Sequence[SentObject] = ()


PLACED: Final = Said()  # the first report of an agent, as soon as it is on a node


class Ended(NamedTuple):
    """The last message of an agent.

    Attributes:
        failure: The failure of a record that ends the run, if any.
        last_failed: Byte positions of the failed records after which none succeeded.
        error: The error that ended the agent, if any.
    """

    failure: Failure | None = None
    last_failed: Sequence[int] = ()
    error: BaseException | None = None


class Lost(NamedTuple):
    """An agent that has died, or can no longer be reached.

    Attributes:
        reason: The cause, as far as it is known.
        node: The id of its node, for `AgentPool.has_left`; empty if it is not known.
    """

    reason: str
    node: str = ""


Message: TypeAlias = Ready | Said | Ended | Lost


class AgentHandle(Protocol):
    """One agent, on the head."""

    def send(self, instruction: Instruction) -> None:
        """Send an instruction; never wait for the agent, or fail if it has died."""


class Room(Enum):
    """Whether a cluster has room for one more agent.

    Attributes:
        FREE: A node has room, as far as the cluster can tell.
        BUSY: A node is large enough, but others use it.
        NONE: No node is large enough.
    """

    FREE = "free"
    BUSY = "busy"
    NONE = "none"


class AgentPool(Protocol):
    """The agents of one run."""

    def start(self, order: AgentOrder) -> AgentHandle:
        """Start an agent, without waiting for it.

        Raises:
            ClusterError: The cluster cannot start agents.
        """

    def receive(self, seconds: float) -> list[tuple[AgentHandle, Message]]:
        """Wait up to ``seconds`` for messages, and return them; `Lost` comes last of an agent."""

    def again(self, agent: AgentHandle, order: AgentOrder) -> bool:  # noqa: ARG002 - by default none
        """Give the order of another run to an agent that rests; return whether that is possible.

        If the agent has died, `Lost` follows.
        """
        return False

    def finish(self, agent: AgentHandle) -> None:
        """Tell an agent that no lease of the run follows."""
        agent.send(Command.FINISH)

    def has_left(self, node: str) -> bool:
        """Return whether a node has left the cluster, so that it took its agents with it."""

    def ask(self, resources: Mapping[str, Any], agents: int | None) -> None:
        """Show the other runs of the cluster whether this one waits for agents.

        Args:
            resources: Resources that each agent reserves.
            agents: The number of agents that it has while it waits for more; ``None`` if it does
                not wait.
        """

    def asked(self, resources: Mapping[str, Any]) -> list[int]:
        """Return the number of agents of each other run that waits for more.

        Args:
            resources: Resources that each agent of this run reserves. Runs whose agents would
                not fit in their place are left out.
        """

    def close(self) -> None:
        """End every agent at once."""


class Cluster(Protocol):
    """Machines that agents run on."""

    @property
    def start_seconds(self) -> float:
        """How long to wait, while no agent works, for a node that can hold one."""

    @property
    def cpus_per_agent(self) -> int | None:
        """The number of worker processes that is set for an agent; ``None`` if none is set."""

    def open(self) -> AgentPool:
        """Connect to the cluster.

        Raises:
            ClusterError: No cluster answers.
            MissingExtraError: A package is not installed.
        """

    def describe(self) -> str:
        """Return the resources of the cluster, in words."""

    def room(self, resources: Mapping[str, Any]) -> Room:
        """Return whether there is room for one more agent; called after `open`.

        Args:
            resources: Resources that each reserves; see `AgentOrder`.
        """

    def count(self, resources: Mapping[str, Any]) -> int:
        """Return the number of agents to start; called after `open`.

        Args:
            resources: Resources that each reserves; see `AgentOrder`.

        Raises:
            ClusterError: No node has as much.
        """

    def workers(self, most: int | None) -> int:
        """Return the number of worker processes of an agent; called after `open`.

        Args:
            most: The largest number, if the operator sets it.
        """
