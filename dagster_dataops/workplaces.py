"""Where operators run: what a workplace of your own is given, and how it is registered.

A workplace runs what is open of one input, and hands finished spans to a sink::

    class InTheCaller:
        def run(self, attempt: Attempt, work: WorkList, sink: Sink) -> None:
            with range_worker(attempt, work, sink) as run_range:
                for interval in work.ranges(1 << 20):
                    run_range(interval)


    register_workplace("caller", InTheCaller(), default_workers=1)

Operators with ``_concurrency_mode="caller"`` then run there. The package decides where a run
starts, publishes the result, and checks that every record has one outcome.
"""

from dagster_dataops.datasets.lines import Interval
from dagster_dataops.execution.attempt import Attempt
from dagster_dataops.execution.sink import Sink
from dagster_dataops.execution.work_list import WorkList
from dagster_dataops.execution.workplaces.range_worker import range_worker
from dagster_dataops.execution.workplaces.span_file import SpanFile, SpanReader
from dagster_dataops.operators.options.concurrency_modes import Workplace, register_workplace
from dagster_dataops.operators.pickling import receive, ship

__all__ = [
    "Attempt",
    "Interval",
    "Sink",
    "SpanFile",
    "SpanReader",
    "WorkList",
    "Workplace",
    "range_worker",
    "receive",
    "register_workplace",
    "ship",
]
