"""Tasks of worker processes, their outcomes, and how both are sent."""

import pickle
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from dagster_dataops.errors import DataPipelineError
from dagster_dataops.foundation.concurrency.sent_code import pickled
from dagster_dataops.foundation.override import override
from dagster_dataops.records import text_of
from dagster_dataops.streams.core.item_failures import OnError
from dagster_dataops.streams.core.stage import Stage


class ItemFailure(NamedTuple):
    """A failed item.

    Attributes:
        at: The number of items of the result before it.
        counter: The number of the stage's counter.
        failed: The value of that counter after it, in the worker.
        in_a_row: Whether the stage failed on the item before it, too; ``None`` if that was not an
            item of the same task.
        item: The item.
        error: The error.
    """

    at: int
    counter: int
    failed: int
    in_a_row: bool | None
    item: Any
    error: Any


class StreamJob(NamedTuple):
    """Facts that all worker processes of a stream share.

    Attributes:
        chain: The stages that they run, upon a feed.
        seed: The root seed of the stream.
        on_error: The handling of failed items.
        max_errors: The largest number of failures to accept; ``None`` for no limit.
        tolerance: The number of items in a row on which a stage may fail; ``None`` for no limit.
    """

    chain: Stage
    seed: int
    on_error: OnError
    max_errors: int | None = None
    tolerance: int | None = None


class Start(NamedTuple):
    """Where a worker process starts.

    Attributes:
        job: The stages that it runs.
        state: The encoded state at which it starts.
        at: The number of the next element there.
    """

    job: StreamJob
    state: bytes
    at: int


@dataclass
class TaskResult:
    """The results of some elements.

    Attributes:
        items: The items that the elements became.
        states: The list of the states after each item, encoded.
        failures: The failed items, in order.
        end_state: The encoded state after all elements.
        ended: Whether there are no more elements.
        error: The error that ended the stream.
        seconds: The time that the elements took.
        passed: The numbers of the counters of the stages that did not fail on their last item.
    """

    items: list[Any]
    states: bytes
    failures: list[ItemFailure]
    end_state: bytes
    ended: bool = False
    error: BaseException | None = None
    seconds: float = 0.0
    passed: Sequence[int] = ()


@dataclass
class Task:
    """Some elements that one worker processes.

    Attributes:
        first: The number of the first element.
        count: The number of elements.
        payload: The elements; ``None`` where workers read them.
        deaths: The number of workers that died on these elements.
        result: The result, once it is there.
        exit_code: The exit code of the last worker that died, if no other one is tried.
    """

    first: int
    count: int
    payload: list[Any] | None = None
    deaths: int = 0
    result: TaskResult | None = None
    exit_code: int | None = None

    def split(self) -> "list[Task]":
        """Return a task for each element."""
        elements = self.payload
        return [
            Task(self.first + at, 1, None if elements is None else [elements[at]])
            for at in range(self.count)
        ]

    def request(self) -> bytes:
        """Return the task as bytes for a worker."""
        return dumps((self.first, self.count if self.payload is None else self.payload))


def dumps(value: object) -> bytes:
    """Return a value as bytes for another process; local functions and classes by value."""
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except Exception:  # noqa: BLE001 - objects raise anything here
        return pickled(value)


def loads(data: bytes) -> Any:
    """Return the value that `dumps` converted."""
    return pickle.loads(data)  # noqa: S301 - bytes of a process of this stream


def encode_result(result: TaskResult) -> bytes:
    """Return a result as bytes. An item that cannot be sent becomes an error at its place."""
    result.error = result.error and sendable_error(result.error)
    result.failures = [
        failure._replace(error=sendable_error(failure.error)) for failure in result.failures
    ]
    try:
        return dumps(result)
    except Exception:  # noqa: BLE001 - objects raise anything here
        return dumps(_sendable(result))


def _sendable(result: TaskResult) -> TaskResult:
    failures = [
        failure if _fault(failure.item) is None else failure._replace(item=repr(failure.item))
        for failure in result.failures
    ]
    for at, item in enumerate(result.items):
        fault = _fault(item)
        if fault is not None:
            error = DataPipelineError(
                f"an item of type {type(item).__name__} cannot be sent from a worker process: "
                f"{fault}. Make it of plain values, or after workers()"
            )
            kept = [failure for failure in failures if failure.at <= at]
            return replace(result, items=result.items[:at], failures=kept, error=error)
    return replace(result, failures=failures)


def _fault(value: object) -> str | None:
    try:
        dumps(value)
    except Exception as error:  # noqa: BLE001 - objects raise anything here
        return f"{type(error).__name__}: {text_of(error)}"
    return None


def sendable_error(error: Any) -> Any:
    """Return an error that survives pickling, with the traceback of this process as a note."""
    note = "In a worker process:\n" + "".join(traceback.format_exception(error))
    for sent in (error, _WithoutConstructor(error)):
        if _is_kept(sent, error):
            error.add_note(note)
            return sent
    error = DataPipelineError(f"{type(error).__name__}: {text_of(error)}")
    error.add_note(note)
    return error


def _is_kept(sent: object, error: Exception) -> bool:
    """Return whether pickling keeps the type and the text of an error."""
    try:
        copied = loads(dumps(sent))
        return type(copied) is type(error) and str(copied) == str(error)
    except Exception:  # noqa: BLE001 - errors of users raise anything here
        return False


class _WithoutConstructor:
    """Pickled as an error whose constructor takes other arguments than ``args``."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    @override
    def __reduce__(self) -> Any:
        return _made_anew, (type(self._error), self._error.args, vars(self._error))


def _made_anew(kind: type[Exception], args: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    error = kind.__new__(kind, *args)
    vars(error).update(attributes)
    return error
