"""Settlement: the records of a run in process mode, and where their outcomes go.

`Job` is the settlement of a run on this machine. On a node of a cluster it is `LeasedJob`.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple, Protocol

from dagster_dataops.byte_ranges import Readable
from dagster_dataops.checkpoints.journal.span import Span
from dagster_dataops.checkpoints.journal.span_notes import SpanNotes
from dagster_dataops.datasets.batches import BatchStarts
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.lines import Interval
from dagster_dataops.errors import DataOpsError
from dagster_dataops.execution.records.record_failures import Failure
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.options.settings import ResolvedSettings


class Orders(NamedTuple):
    """Changes of the work.

    Attributes:
        more: Stretches of the input to settle as well.
        give_back: Gets the stretches that no worker was given, if others are to have them.
    """

    more: list[Interval]
    give_back: Callable[[list[Interval]], None] | None = None


class Settlement(Protocol):
    """The records of a run in process mode, and where their outcomes go.

    Attributes:
        operator: The operator.
        settings: Its settings.
        name: Its qualified name.
        dataset: Its input.
        todo: The unsettled intervals, in order.
        last_failed: Set after an outage: byte positions of the failed records after which none
            succeeded.
    """

    operator: Operator
    settings: ResolvedSettings
    name: str
    dataset: JsonlDataset
    todo: list[Interval]
    last_failed: set[int] | None

    @property
    def growing(self) -> bool:
        """Whether records may be added."""
        ...

    @property
    def folder(self) -> Path:
        """The folder of the segments."""
        ...

    @property
    def batches(self) -> bool:
        """Whether the operator takes batches of records."""
        ...

    @property
    def check_input(self) -> bool:
        """Whether spans need a checksum of their input."""
        ...

    @property
    def keeps_outcomes(self) -> bool:
        """Whether every record must be a separate span."""
        ...

    @property
    def unshared(self) -> tuple[int, ...]:
        """Descriptors that forked workers must close."""
        ...

    @property
    def resources(self) -> ExitStack:
        """Closed some time after a complete run."""
        ...

    def batch_starts(self, descriptor: Readable) -> BatchStarts | None:
        """Return where ranges may begin if the operator takes batches; otherwise ``None``."""
        ...

    def take_segment_number(self) -> int:
        """Return a number that no other segment of the folder has, or had."""
        ...

    def take_orders(self) -> Orders:
        """Return the changes of the work since the last call; only called while it grows."""
        ...

    def settle(
        self, segment: int, offset: int, spans: list[Span], notes: Sequence[SpanNotes | None] = ()
    ) -> None:
        """Settle finished spans; their outputs start at ``offset`` of ``segment``, in a row."""
        ...

    def finish(self, start: int, end: int) -> None:
        """Mark bytes [start, end) of the input as settled."""
        ...

    def tick(self) -> None:
        """Do periodic work; called at least ten times a second.

        Raises:
            RunStoppedError: A stop was requested.
        """
        ...

    def note(self, text: str) -> None:
        """Show a line to the user."""
        ...

    def check_input_unchanged(self) -> None:
        """Check that the input is the same file as at the start.

        Raises:
            InputError: It is not.
        """
        ...

    def error_of(self, failure: Failure) -> DataOpsError:
        """Return the error for the failure that ended the run."""
        ...
