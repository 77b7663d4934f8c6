"""Single mode: everything in the caller's own thread, so that ``breakpoint()`` works."""

import os

from dagster_dataops.checkpoints.spans import Span
from dagster_dataops.datasets.lines import next_line_start
from dagster_dataops.execution.job import Job
from dagster_dataops.execution.settling import settler
from dagster_dataops.execution.spanning import SpanLoop

_RANGE_BYTES = 4 << 20


def run_single(job: Job) -> None:
    """Settle everything that is to do.

    Raises:
        RecordError: A record failed and failures are not ignored; its cause is what the
            operator raised.
    """
    segment = job.checkpoint.new_segment()

    def write(span: Span, output: bytes) -> None:
        job.settle(segment.number, segment.append(output), [span])
        job.tick()

    descriptor = os.open(job.dataset.path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        loop = SpanLoop(
            settler(job.operator, job.interrupts),
            descriptor,
            write,
            operator=job.name,
            ignore_errors=job.settings.ignore_errors,
            check_input=job.check_input,
        )
        for interval in job.todo:
            start = interval.start
            while start < interval.end:
                end = next_line_start(
                    descriptor, min(start + _RANGE_BYTES, interval.end), interval.end
                )
                failed = loop.run(start, end)
                if failed is not None:
                    raise job.error_of(failed) from failed.failure.error
                start = end
    finally:
        os.close(descriptor)
        segment.close()
