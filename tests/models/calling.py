"""Sessions outside of a run, for tests."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from dagster_dataops.models.calls.client import ModelClient
from dagster_dataops.models.model_session import ModelSession
from dagster_dataops.operators.outcomes.record_context import (
    OperatorContext,
    RunFacts,
    Tally,
    plain_counts,
)


def context_at(root: Path, agent: tuple[int, int] = (0, 1)) -> OperatorContext:
    """Return a context of a node ``node`` in a folder of that name."""
    facts = RunFacts(
        folder=str(root / "node"),
        root=str(root),
        run="a run",
        node="node",
        input="input.jsonl",
        agent=agent,
    )
    return OperatorContext(facts, {}, lambda at: at)


def chat(text: str, **fields: Any) -> dict[str, Any]:
    """Return a request."""
    return {"model": "rule", "messages": [{"role": "user", "content": text}], **fields}


def in_session(
    root: Path,
    client: ModelClient,
    work: Callable[[ModelSession], Awaitable[Any]],
    position: int = 0,
) -> tuple[Any, dict[str, float]]:
    """Return what ``work`` returns for the record at a position, and the sums that it counts."""
    returned, counts = in_counted_session(root, client, work, position)
    return returned, plain_counts(counts)


def in_counted_session(
    root: Path,
    client: ModelClient,
    work: Callable[[ModelSession], Awaitable[Any]],
    position: int = 0,
    agent: tuple[int, int] = (0, 1),
) -> tuple[Any, dict[str, float]]:
    """Return what ``work`` returns for the record at a position, and all that it counts."""
    tally = Tally()
    tally.start = position

    async def run() -> Any:
        session = ModelSession(client, "default", context_at(root, agent))
        tally.begin()
        try:
            return await work(session)
        finally:
            await session.close()

    returned = asyncio.run(run())
    return returned, tally.take_counts()
