"""Rehearsal: a worker's work done once on records of nobody, before there is any.

A forked process shares its parent's memory until one of them writes to it, and Python writes to
whatever it looks at. Every page is copied at that moment: a thousand of them, and a few
milliseconds, between the start of a worker and the end of its first records. What it frees of its
own it keeps, so that the first block of records finds room: half a megabyte is rehearsed.
"""

import os
from typing import Final

from dagster_dataops.execution.settling import settling
from dagster_dataops.execution.spanning import SpanLoop
from dagster_dataops.operators.registry import OperatorRegistry
from dagster_dataops.operators.shipping import receive, ship
from dagster_dataops.records import Record

_LINE: Final = b'{"id": 1, "score": 0.5, "tags": ["a"], "text": "%s"}\n' % (b"To be, or not " * 32)
_LINES: Final = _LINE * 1024


class Rehearsal:
    """What is rehearsed; made before the processes that do so are forked."""

    def __init__(self) -> None:
        registry = OperatorRegistry(lambda _operator, data: data)  # none that others know

        @registry("data.rehearsal")
        def rehearsed(record: Record) -> Record:  # local: sent with all it consists of
            return record

        self._payload = ship(registry.operator("rehearsal", "rehearsed")())

    def play(self) -> None:
        """Receive an operator and settle records with it; nothing is left of that."""
        operator = receive(self._payload)
        descriptor = os.memfd_create("rehearsal")
        try:
            os.write(descriptor, _LINES)
            with settling(operator, ()) as settle:
                loop = SpanLoop(
                    settle,
                    descriptor,
                    lambda _settled: None,
                    operator=operator.__dataops__.spec.qualified_name,
                    ignore_errors=True,
                    check_input=True,
                )
                loop.run(0, len(_LINES))
                loop.close()
        finally:
            os.close(descriptor)
