"""Single mode: all work in the caller's thread, so that ``breakpoint()`` works."""

from typing import Final

from dagster_dataops.execution.attempt import Attempt
from dagster_dataops.execution.sink import Sink
from dagster_dataops.execution.work_list import WorkList
from dagster_dataops.execution.workplaces.range_worker import range_worker

_RANGE_BYTES: Final = 4 << 20


def run(attempt: Attempt, work: WorkList, sink: Sink) -> None:
    """Run the open ranges one after the other; errors are those of `range_worker`."""
    with range_worker(attempt, work, sink) as run_range:
        for interval in work.ranges(_RANGE_BYTES):
            run_range(interval)
