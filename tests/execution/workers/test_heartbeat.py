import os
import time

import pytest

from dagster_dataops.execution.workers.heartbeat import Heartbeat
from tests.faults.crashing import in_child


def test_nobody_is_at_work_at_first() -> None:
    heartbeat = Heartbeat()
    assert heartbeat.read() == (0, 0.0)
    heartbeat.close()


def test_a_call_is_told_as_long_as_it_lasts() -> None:
    heartbeat = Heartbeat()
    heartbeat.announce(1234)
    before = time.monotonic()
    offset, since = heartbeat.around(lambda record: heartbeat.read())({})  # type: ignore[misc]
    assert offset == 1234
    assert before <= since <= time.monotonic()
    assert heartbeat.read() == (1234, 0.0)
    heartbeat.close()


def test_a_call_that_raises_is_over() -> None:
    heartbeat = Heartbeat()

    def fail(record: object) -> object:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        heartbeat.around(fail)({})
    assert heartbeat.read()[1] == 0.0
    heartbeat.close()


def test_another_process_reads_what_is_told(tmp_path: object) -> None:
    heartbeat = Heartbeat()

    def tell() -> None:
        mine = Heartbeat(heartbeat.descriptor)
        mine.announce(1 << 40)
        mine.around(lambda record: os._exit(0))({})

    assert in_child(tell) == 0
    offset, since = heartbeat.read()
    assert offset == 1 << 40
    assert 0 < since <= time.monotonic()
    heartbeat.close()


def test_the_memory_is_let_go_of() -> None:
    heartbeat = Heartbeat()
    heartbeat.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(heartbeat.descriptor)


def test_a_program_that_an_operator_starts_does_not_inherit_it() -> None:
    heartbeat = Heartbeat()
    assert not os.get_inheritable(heartbeat.descriptor)
    heartbeat.close()
