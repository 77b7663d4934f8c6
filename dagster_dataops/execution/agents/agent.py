"""Agent: process mode over leased parts of an input, on a node."""

import queue
import socket
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from dagster_dataops.checkpoints.journal.segments import SEND_BYTES
from dagster_dataops.checkpoints.journal.sent_pieces import place_of_facts
from dagster_dataops.datasets.file_values.result_roots import keeper_in_run
from dagster_dataops.errors import WorkerError
from dagster_dataops.execution.agent_pool import (
    AgentEnvironment,
    AgentOrder,
    Command,
    Ended,
    Instruction,
    Message,
    Ready,
    Said,
)
from dagster_dataops.execution.agents.leased_work import (
    FailedRecordError,
    LeasedWork,
    LeaseSink,
    StopAgentError,
)
from dagster_dataops.execution.agents.outbox import outputs_folder
from dagster_dataops.execution.attempt import Attempt
from dagster_dataops.execution.workplaces import processes
from dagster_dataops.operators.definition.operator import Operator, keeping_files
from dagster_dataops.operators.pickling import receive

_REPORT_SECONDS: Final = 0.5
_SEND_SECONDS: Final = 1.0  # to a bucket, where each report with outputs takes a request
_ALIVE_SECONDS: Final = 2.0
_LOOK_SECONDS: Final = 0.1


class Agent:
    """An agent. `run` works until the end; other threads call the other methods.

    Attributes:
        messages: Its messages to the head. `Ended` is the last message.
        rests: Whether its process is to wait for the order of another run then.
    """

    def __init__(self, order: AgentOrder) -> None:
        self._order = order
        self._work: LeasedWork | None = None
        self._sink: LeaseSink
        self._stopped = self.rests = False
        self._ended = threading.Event()
        self.messages: queue.SimpleQueue[Message] = queue.SimpleQueue()

    def follow(self, instruction: Instruction) -> None:
        """Follow an instruction of the head; a lease only comes after `Ready`."""
        self._stopped = self._stopped or instruction is Command.STOP
        self.rests = self.rests or instruction is Command.REST
        if self._work is not None:
            self._work.follow(instruction)

    def receive(self, seconds: float) -> list[Message]:
        """Wait up to ``seconds`` for messages, and return them."""
        messages: list[Message] = []
        with suppress(queue.Empty):
            messages.append(self.messages.get(timeout=seconds))
            while True:
                messages.append(self.messages.get_nowait())
        return messages

    def run(self) -> None:
        """Work until the end; errors become messages."""
        try:
            with outputs_folder(self._order.folder, place_of_facts(self._order.outputs)) as folder:
                operator = self._loaded(folder)
                ended = Ended() if operator is None else self._run(operator)  # the head ends it
        except BaseException as error:  # noqa: BLE001 - reported to the head
            ended = Ended(error=_sent(error, self._order))
        self.messages.put(ended)

    def _loaded(self, folder: Path) -> Operator | None:
        """Say that the agent is ready; return its operator, if the environments agree."""
        operator: Operator | None = None
        expected, here = self._order.environment, AgentEnvironment.here("")
        if here[:2] == expected[:2]:  # else the bytes of the operator mean something else
            operator = receive(self._order.operator)
            here = here._replace(code=_code_version(operator, expected.code))
            self._work = LeasedWork(self._order, operator)
            self._sink = LeaseSink(self._order, self._work, folder)
            self._sink.check_shared()
            if self._stopped:  # meanwhile
                self._work.follow(Command.STOP)
        self.messages.put(Ready(here, socket.gethostname()))
        return operator if here == expected else None

    def _run(self, operator: Operator) -> Ended:
        keeper = keeper_in_run(self._order.keeper)
        attempt, sink = Attempt(operator=keeping_files(operator, keeper)), self._sink
        reporter = threading.Thread(target=self._report, daemon=True)
        reporter.start()
        ended = Ended()
        try:
            with attempt.resources, sink.accepting():
                processes.run(attempt, sink.work, sink)
        except FailedRecordError as failed:
            ended = Ended(failure=failed.failure, last_failed=sorted(sink.last_failed or ()))
        except StopAgentError:
            ended = Ended(last_failed=sorted(sink.last_failed or ()))
        finally:
            self._ended.set()
            reporter.join()
            self.messages.put(self._next_report())
        return ended

    def _report(self) -> None:
        """Report news once or twice a second, or once many outputs are to be sent.

        Otherwise report that the agent is alive.
        """
        sink, reported_at = self._sink, time.monotonic()
        sends = bool(self._order.outputs)
        seconds = _SEND_SECONDS if sends else _REPORT_SECONDS
        while not self._ended.wait(_LOOK_SECONDS):
            since = time.monotonic() - reported_at
            many = sends and sink.unsent_bytes >= SEND_BYTES
            due = since >= seconds or sink.work.idle or many
            if since >= _ALIVE_SECONDS or (due and sink.has_news()):
                try:
                    self.messages.put(self._next_report())
                except Exception as error:  # noqa: BLE001 - reported to the head
                    self.messages.put(Ended(error=error))
                    sink.work.follow(Command.STOP)
                    return
                reported_at = time.monotonic()

    def _next_report(self) -> Said:
        """Return the next report; say that the agent is alive while a store is slow."""
        if not self._order.outputs:
            return self._sink.report()
        with ThreadPoolExecutor(1) as pool:
            report = pool.submit(self._sink.report)
            while not wait([report], _ALIVE_SECONDS).done:
                self.messages.put(Said())
            return report.result()


def _sent(error: BaseException, order: AgentOrder) -> BaseException:
    """Return an error that can be sent to the head, which knows all errors of this package."""
    if type(error).__module__.startswith("dagster_dataops."):
        return error
    text = "".join(traceback.format_exception(error))
    reason = f"the agent on {socket.gethostname()} failed over {order.location}:\n{text}"
    return WorkerError("on a cluster", reason)


def _code_version(operator: Operator, sent: str) -> str:
    """Return the code version of a received operator, from the source on this machine.

    If no module of this machine has its code, the version that was sent is returned.
    """
    spec = operator.__dataops__.spec
    by_reference = all(_is_module_attribute(target) for target in spec.targets)
    return spec.code_version if by_reference else sent


def _is_module_attribute(target: Any) -> bool:
    attribute: Any = sys.modules.get(target.__module__)
    for name in target.__qualname__.split("."):
        attribute = getattr(attribute, name, None)
    return target in (attribute, getattr(attribute, "function", None))
