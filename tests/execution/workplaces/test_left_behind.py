"""Tests of calls that leave something behind in the event loop that all calls share.

Each costs at most its own record.
"""

import asyncio
import contextlib
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from dagster_dataops.data import data_register
from dagster_dataops.errors import OperatorOpenError
from tests.each import each
from tests.execution.helpers import error_rows, node, run, write_input
from tests.faults.crashing import wait_until

pytestmark = [  # of coroutines that were lost with a loop
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning"),
]
_COUNT: Final = 24
_RUDE: Final = 9
Deed = Callable[[], Awaitable[object]]


def _current() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task


async def _cancels_itself() -> None:
    _current().cancel()


async def _cancels_itself_and_waits() -> None:
    _current().cancel()
    await asyncio.sleep(0)


async def _cancels_itself_often() -> None:
    for _ in range(5):
        _current().cancel()


async def _cancels_all() -> None:
    for task in asyncio.all_tasks():
        task.cancel()


async def _cancels_all_and_waits() -> None:
    await _cancels_all()
    await asyncio.sleep(0.01)


async def _cancels_all_later() -> None:
    asyncio.get_running_loop().call_later(0.005, lambda: [t.cancel() for t in asyncio.all_tasks()])


async def _leaves_a_timeout() -> None:
    await asyncio.timeout(0.003).__aenter__()


async def _leaves_a_task_group() -> None:
    async def fails() -> None:
        await asyncio.sleep(0.003)
        raise ValueError("late")

    group = asyncio.TaskGroup()
    await group.__aenter__()
    group.create_task(fails())


async def _cancels_itself_later() -> None:
    asyncio.get_running_loop().call_later(0.003, _current().cancel)


async def _raises_cancelled() -> None:
    raise asyncio.CancelledError


async def _swallows() -> None:
    _current().cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(1)


async def _stops_the_loop() -> None:
    asyncio.get_running_loop().stop()


async def _stops_the_loop_and_waits() -> None:
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0.01)


async def _stops_the_loop_later() -> None:
    asyncio.get_running_loop().call_soon(asyncio.get_running_loop().stop)


async def _closes_the_running_loop() -> None:
    asyncio.get_running_loop().close()


async def _closes_the_loop() -> None:
    loop = asyncio.get_running_loop()
    loop.is_running = lambda: False  # type: ignore[method-assign]
    loop.close()
    await asyncio.sleep(0)


def _selector() -> Any:
    return asyncio.get_running_loop()._selector  # type: ignore[attr-defined]


async def _closes_the_selector() -> None:
    _selector().close()


async def _breaks_the_selector() -> None:
    _selector().select = None


async def _closes_the_sockets() -> None:
    asyncio.get_running_loop()._ssock.close()  # type: ignore[attr-defined]


async def _takes_its_cancellation_back() -> None:
    _current().cancel()
    _current().uncancel()


async def _exits_in_a_task() -> None:
    asyncio.get_running_loop().create_task(_exit())


async def _exit() -> None:
    sys.exit(3)


async def _runs_another_loop() -> None:
    asyncio.run(asyncio.sleep(0))


async def _sets_a_closed_loop() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    asyncio.set_event_loop(loop)


async def _sets_a_bad_task_factory() -> None:
    asyncio.get_running_loop().set_task_factory(lambda *_args, **_named: 1 / 0)


async def _sets_a_handler_that_fails() -> None:
    asyncio.get_running_loop().set_exception_handler(lambda *_: 1 / 0)


async def _blocks() -> None:
    time.sleep(0.05)


DEEDS: Final[tuple[Deed, ...]] = (
    _cancels_itself,
    _cancels_itself_and_waits,
    _cancels_itself_often,
    _cancels_all,
    _cancels_all_and_waits,
    _cancels_all_later,
    _leaves_a_timeout,
    _leaves_a_task_group,
    _cancels_itself_later,
    _raises_cancelled,
    _swallows,
    _stops_the_loop,
    _stops_the_loop_and_waits,
    _stops_the_loop_later,
    _closes_the_running_loop,
    _closes_the_loop,
    _closes_the_selector,
    _breaks_the_selector,
    _closes_the_sockets,
    _takes_its_cancellation_back,
    _exits_in_a_task,
    _runs_another_loop,
    _sets_a_closed_loop,
    _sets_a_bad_task_factory,
    _sets_a_handler_that_fails,
    _blocks,
)
_deed: list[Deed] = [_blocks]


async def _work(record: dict[str, Any]) -> dict[str, Any]:
    await asyncio.sleep(0.001)
    if record["n"] == _RUDE:
        await _deed[0]()
    await asyncio.sleep(0.001)
    return record


@data_register("data.left_behind", _max_workers=4)
async def one(record):
    await asyncio.sleep(0.001)
    if record["n"] == _RUDE:
        await _deed[0]()
        return record
    await asyncio.sleep(0.001)
    return record


class Batched(data_register.new_group("left_behind_batches")):
    async def forward_batch(self, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [await _work(record) for record in records]


def _settled(tmp_path: Path, deed: Deed, operator: Any) -> tuple[list[int], list[dict[str, Any]]]:
    """Return what an operator that does this keeps of its records, and what fails."""
    _deed[0] = deed
    place = tmp_path / deed.__name__
    place.mkdir()
    dataset = write_input(place / "input.jsonl", [{"n": n} for n in range(_COUNT)])
    folder = node(place)
    run(operator, dataset, folder)
    kept = [orjson.loads(line)["n"] for line in folder.result.read_bytes().splitlines()]
    return kept, error_rows(folder)


@pytest.mark.slow
@each("deed", DEEDS)
@pytest.mark.parametrize("limit", [None, 20.0])
@pytest.mark.parametrize("mode", ["async", "single"])
def test_it_costs_at_most_its_own_record(
    tmp_path: Path, deed: Deed, limit: float | None, mode: str
) -> None:
    kept, failed = _settled(tmp_path, deed, one(_timeout=limit, _concurrency_mode=mode))
    assert [n for n in kept if n != _RUDE] == [n for n in range(_COUNT) if n != _RUDE]
    assert [row["index"] for row in failed] == [_RUDE] * (_RUDE not in kept)


@each("deed", [_closes_the_selector, _closes_the_loop, _stops_the_loop])
@pytest.mark.parametrize("mode", ["async", "single"])
def test_the_last_record_may_do_it_too(
    tmp_path: Path, deed: Deed, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "_RUDE", _COUNT - 1)
    kept, failed = _settled(tmp_path, deed, one(_concurrency_mode=mode, _max_workers=1))
    assert kept[: _COUNT - 1] == list(range(_COUNT - 1))
    assert [row["index"] for row in failed] == [_RUDE] * (_RUDE not in kept)


async def _interrupts_in_a_task() -> None:
    asyncio.get_running_loop().create_task(_interrupt())


async def _interrupt() -> None:
    raise KeyboardInterrupt


async def _exits_in_a_callback() -> None:
    asyncio.get_running_loop().call_soon(sys.exit, 3)


async def _stops_the_loop_for_ever() -> None:
    loop = asyncio.get_running_loop()

    def stop() -> None:
        loop.stop()
        loop.call_soon(stop)

    stop()


@each("deed", [_interrupts_in_a_task, _exits_in_a_callback, _stops_the_loop_for_ever])
def test_it_costs_at_most_its_own_record_in_a_loop_of_a_thread(tmp_path: Path, deed: Deed) -> None:
    kept, failed = _settled(tmp_path, deed, one())
    assert (len(kept), failed) == (_COUNT, [])


class Opening(data_register.new_group("left_behind_opening")):
    async def open(self, context: Any) -> None:
        await _deed[0]()

    async def forward(self, record: dict[str, Any]) -> dict[str, Any]:
        return record


@each("deed", [_cancels_itself, _cancels_all, _raises_cancelled])
def test_a_cancellation_in_open_is_an_error_of_open(tmp_path: Path, deed: Deed) -> None:
    with pytest.raises(OperatorOpenError, match="open.. failed: CancelledError"):
        _settled(tmp_path, deed, Opening())


@pytest.mark.slow
@each("deed", DEEDS)
def test_a_batch_is_divided_until_only_the_record_is_left(tmp_path: Path, deed: Deed) -> None:
    batched = Batched(_batch_size=4, _max_workers=2, _concurrency_mode="async")
    kept, failed = _settled(tmp_path, deed, batched)
    assert [n for n in kept if n != _RUDE] == [n for n in range(_COUNT) if n != _RUDE]
    assert {row["index"] for row in failed} <= {_RUDE}


def test_the_error_row_says_what_the_call_has_left(tmp_path: Path) -> None:
    _, (row,) = _settled(tmp_path, _cancels_itself, one())
    assert row["exception"] == "CancelledError"
    assert "current_task().cancel()" in row["message"]
    assert "process" not in row["message"]


def test_a_timeout_that_ends_in_its_call_works(tmp_path: Path) -> None:
    async def limited() -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.002):
                await asyncio.sleep(60)
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(0.001))

    kept, failed = _settled(tmp_path, limited, one())
    assert (len(kept), failed) == (_COUNT, [])


def test_a_thread_that_cancels_all_tasks_costs_only_calls_in_flight(tmp_path: Path) -> None:
    async def from_a_thread() -> None:
        loop, done = asyncio.get_running_loop(), threading.Event()

        def cancel() -> None:
            tasks = asyncio.all_tasks(loop)
            for task in tasks:
                loop.call_soon_threadsafe(task.cancel)
            done.set()

        threading.Thread(target=cancel).start()
        wait_until(done.is_set, 60, "the tasks are cancelled")

    kept, failed = _settled(tmp_path, from_a_thread, one())
    assert len(kept) + len(failed) == _COUNT
    assert len(failed) <= 4
