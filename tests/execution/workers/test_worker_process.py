import os
import signal
import subprocess
import time
from collections.abc import Iterator
from multiprocessing.connection import Pipe

import pytest

from dagster_dataops.execution.workers.heartbeat import Heartbeat
from tests.execution.engine import WorkerProcess
from tests.faults.crashing import in_child


@pytest.fixture
def worker() -> Iterator[WorkerProcess]:
    """Yield a handle of a process that does nothing for a minute."""
    process = subprocess.Popen(["sleep", "60"])
    mine, theirs = Pipe()
    handle = WorkerProcess(process.pid, mine, segment=1)
    yield handle
    handle.signal(signal.SIGKILL)
    handle.wait(10)
    process.returncode = 0  # reaped by the handle
    handle.close()
    theirs.close()


def test_an_ended_process_stays_ended(worker: WorkerProcess) -> None:
    assert not worker.poll()
    assert not worker.wait(0.0)
    worker.signal(signal.SIGKILL)
    assert worker.wait(10)
    assert worker.poll()
    assert worker.status == -signal.SIGKILL
    worker.signal(signal.SIGKILL)  # a late signal reaches no process


def test_a_process_reaped_by_other_code_has_ended() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    mine, theirs = Pipe()
    handle = WorkerProcess(process.pid, mine, segment=1)
    assert handle.poll()
    assert handle.status == 0
    handle.close()
    theirs.close()


def test_the_end_of_a_process_can_be_waited_for_by_descriptor(worker: WorkerProcess) -> None:
    import select

    if len(worker.descriptors) < 2:
        pytest.skip("this system has no process descriptors")
    _, ended = worker.descriptors
    assert not select.select([ended], [], [], 0)[0]
    worker.signal(signal.SIGKILL)
    assert select.select([ended], [], [], 10)[0]


def test_a_message_whose_reading_was_interrupted_leaves_a_mark(worker: WorkerProcess) -> None:
    class Interrupted(BaseException):
        pass

    def interrupt(_number: int, _frame: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(Interrupted):
            worker.receive()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert worker.receiving


def test_a_message_that_was_read_leaves_no_mark() -> None:
    mine, theirs = Pipe()
    handle = WorkerProcess(os.getpid(), mine, segment=1)
    theirs.send_bytes(b"said")
    assert handle.receive() == b"said"
    assert not handle.receiving
    theirs.close()
    with pytest.raises(EOFError):
        handle.receive()
    handle.close()


def test_nothing_is_left_open_once_a_handle_is_closed(worker: WorkerProcess) -> None:
    mine, theirs = Pipe()
    handle = WorkerProcess(worker.pid, mine, segment=2)
    numbers = handle.descriptors
    handle.close()
    theirs.close()
    for number in numbers:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(number)


def test_no_worker_is_busy_at_first() -> None:
    heartbeat = Heartbeat()
    assert heartbeat.read() == (0, 0.0)
    heartbeat.close()


def test_a_call_is_announced_while_it_runs() -> None:
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


def test_another_process_reads_the_announced_position(tmp_path: object) -> None:
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


def test_closing_releases_the_memory() -> None:
    heartbeat = Heartbeat()
    heartbeat.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(heartbeat.descriptor)


def test_a_program_that_an_operator_starts_does_not_inherit_it() -> None:
    heartbeat = Heartbeat()
    assert not os.get_inheritable(heartbeat.descriptor)
    heartbeat.close()


def test_every_cause_of_death_has_a_text() -> None:
    worker = WorkerProcess(0, None, 1)  # type: ignore[arg-type]
    words = {}
    for status in (0, 3, -9, -11, -40):
        worker.status = status
        words[status] = worker.cause_of_death
    assert words == {
        0: "exit status 0",
        3: "exit status 3",
        -9: "killed by SIGKILL",
        -11: "killed by SIGSEGV",
        -40: "killed by signal 40",
    }
