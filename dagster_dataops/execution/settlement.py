"""Settlement: the open records of a run, and where their outcomes go.

`Job` is the settlement of a run on this machine. On a node of a cluster it is `LeasedJob`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from dagster_dataops.checkpoints.journal.span import Span
from dagster_dataops.checkpoints.journal.span_notes import SpanNotes
from dagster_dataops.datasets.batches import BatchStarts
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.lines import Interval
from dagster_dataops.errors import DataOpsError
from dagster_dataops.execution.records.record_failures import Failure
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.places.range_source import Readable


class Orders(NamedTuple):
    """Changes of the work.

    Attributes:
        more: Stretches of the input to settle as well.
        give_back: Gets the stretches that no worker was given, if others are to have them.
    """

    more: list[Interval]
    give_back: Callable[[list[Interval]], None] | None = None


class Settlement(ABC):
    """The open records of a run, and where their outcomes go.

    The arguments are attributes.

    Attributes:
        operator: The operator.
        settings: Its settings.
        name: Its qualified name.
        dataset: Its input.
        folder: The folder of the segments.
        resources: Closed some time after a complete run, or when the run fails.
        todo: The unsettled intervals, in order.
        last_failed: After an outage: byte positions of the failed records after which none
            succeeded; ``None`` for all failed records.
    """

    def __init__(
        self, operator: Operator, dataset: JsonlDataset, folder: Path, resources: ExitStack
    ) -> None:
        self.operator = operator
        self.settings = operator.__dataops__.resolved
        self.name = operator.__dataops__.spec.qualified_name
        self.dataset = dataset
        self.folder = folder
        self.resources = resources
        self.todo: list[Interval] = []
        self.last_failed: set[int] | None = None

    @property
    def growing(self) -> bool:
        """Whether records may be added."""
        return False

    @property
    def batches(self) -> bool:
        """Whether the operator takes batches of records."""
        return bool(self.operator.__dataops__.spec.batch)

    @property
    def check_input(self) -> bool:
        """Whether spans need a checksum of their input, because the dataset has no digest."""
        return self.dataset.fingerprint is None

    @property
    def keeps_outcomes(self) -> bool:
        """Whether every record must be a separate span, so that its digest identifies it."""
        return self.settings.reuse_outcomes

    @property
    def unshared(self) -> tuple[int, ...]:
        """Descriptors that forked workers must close."""
        return ()

    @abstractmethod
    def batch_starts(self, descriptor: Readable) -> BatchStarts | None:
        """Return where ranges may begin if the operator takes batches; otherwise ``None``."""

    @abstractmethod
    def take_segment_number(self) -> int:
        """Return a number that no other segment of the folder has, or had."""

    def take_orders(self) -> Orders:
        """Return the changes of the work since the last call."""
        return Orders([])

    @abstractmethod
    def settle(
        self, segment: int, offset: int, spans: list[Span], notes: Sequence[SpanNotes | None] = ()
    ) -> None:
        """Settle finished spans; their outputs start at ``offset`` of ``segment``, in a row."""

    def finish(self, start: int, end: int) -> None:  # noqa: B027 - few need it
        """Mark bytes [start, end) of the input as settled."""

    @abstractmethod
    def tick(self) -> None:
        """Do periodic work; called at least ten times a second.

        Raises:
            RunStoppedError: A stop was requested.
        """

    @abstractmethod
    def note(self, text: str) -> None:
        """Show a line to the user."""

    @abstractmethod
    def check_input_unchanged(self) -> None:
        """Check that the input is the same file as at the start.

        Raises:
            InputError: It is not.
        """

    @abstractmethod
    def error_of(self, failure: Failure) -> DataOpsError:
        """Return the error for the failure that ended the run."""
