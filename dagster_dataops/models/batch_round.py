"""A round of batches: find the requests of all records that have no reply yet, and submit them."""

import asyncio
import itertools
import logging
from contextlib import suppress
from itertools import islice
from typing import Any, Final, Protocol

from dagster_dataops.datasets.lines import Line, iterate_lines, opened_content
from dagster_dataops.errors import OperatorContextError
from dagster_dataops.models.batches.batch_delivery import BatchDelivery, DeferredRequest
from dagster_dataops.models.model_session import ModelSession
from dagster_dataops.operators.outcomes.record_context import OperatorContext, StopRun, Tally
from dagster_dataops.records import Record, decode

_AT_ONCE: Final = 512  # records
_PAUSES: Final = (1.0, 5.0, 15.0, 60.0)  # seconds before the server is asked again; the last lasts
_LOG: Final = logging.getLogger("dagster_dataops")


class Asking(Protocol):
    """An operator that asks a model about each record."""

    __dataops__: Any
    wait: Any

    @property
    def session(self) -> ModelSession:
        """The calls of this run."""
        ...

    async def forward(self, record: Record) -> Any:
        """Ask about a record."""
        ...


async def deliver_in_batches(operator: Asking, context: OperatorContext) -> None:
    """Return once every reply that the records of the input need is in the reply store.

    Each record is processed once more than without batches: to find its requests. The result of
    such a call is not used. Retries of failed records, previews, and clients that are objects make
    their calls online.

    Raises:
        StopRun: The server has not answered everything, and the run is not to wait for it.
    """
    session = operator.session
    if context.retries_failed or context.folder.name.startswith(".") or not session.over_http:
        return
    _check(operator)
    batches = session.deliver_in_batches()
    pauses = itertools.chain(_PAUSES, itertools.repeat(_PAUSES[-1]))
    while True:
        try:
            await _round(operator, context, batches)
        except StopRun as stop:
            if not (stop.waits and operator.wait == "step"):
                raise
            _LOG.info("%s: %s", context.node, batches.progress())
        else:
            return
        await asyncio.sleep(next(pauses))


async def _round(operator: Asking, context: OperatorContext, batches: BatchDelivery) -> None:
    """Collect what the server has answered, and submit what is still missing."""
    await batches.advance()
    path = context.input
    with (
        operator.session.noting(batches.parts()) as requests,
        opened_content(path) as (source, interval),
    ):
        lines = iterate_lines(source, [interval])
        while block := list(islice(lines, _AT_ONCE)):
            await asyncio.gather(*[_note(operator, line) for line in block])
    await batches.send(requests)


async def _note(operator: Asking, line: Line) -> None:
    """Process a record as far as its replies go."""
    tally = Tally()
    tally.start = line.start
    tally.begin()
    with suppress(Exception, DeferredRequest):
        await operator.forward(decode(line.text))


def _check(operator: Asking) -> None:
    """Raise an `OperatorContextError` if batches cannot be made."""
    invocation = operator.__dataops__
    if invocation.link is None:
        reason = "needs a node of its own; take the operator out of the chain"
        raise OperatorContextError("delivery='batch'", reason)
    if invocation.resolved.concurrency_mode != "async":
        reason = "needs the usual concurrency mode; leave out _concurrency_mode"
        raise OperatorContextError("delivery='batch'", reason)
