"""Cancel the batches of a node that the server has not answered."""

from pathlib import Path

from dagster_dataops.errors import ResultMissingError
from dagster_dataops.models.batches.batch_api import BatchApi
from dagster_dataops.models.batches.batch_delivery import BatchState
from dagster_dataops.models.calls.client import ModelClient


async def cancel_batches(folder: Path, client: ModelClient) -> list[str]:
    """Cancel the batches of a node that wait for the server, and return their ids.

    The server may have answered some of the requests; these are paid, and the next run collects
    them. That run submits the other requests again. No sensor launches it.

    Raises:
        ResultMissingError: The node has no batches.
        ModelError: The server refused it, or cannot be reached.
    """
    state = BatchState(folder)
    if not state.parts:
        raise ResultMissingError(str(folder), "it has no batches")
    cancelled = []
    async with BatchApi(client) as api:
        for part in state.open_parts:
            batch = part["id"] or await api.find(part["mark"])
            if batch is not None:
                await api.cancel(batch)
                cancelled.append(batch)
                part |= {"id": batch, "cancelled": True}
                state.save()
    return cancelled
