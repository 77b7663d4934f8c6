"""Items that are read ahead."""

import threading

from dagster_dataops import DataPipeline
from tests.faults.crashing import HANG_SECONDS


def test_prefetching_reads_ahead_and_no_further():
    read = []
    reached = threading.Event()

    def note(x):
        read.append(x)
        if x == 4:
            reached.set()
        return x

    stream = DataPipeline.count().map(note).prefetch(3).and_return()
    iterator = iter(stream)
    assert next(iterator) == 0
    assert reached.wait(HANG_SECONDS)
    assert max(read) <= 5
