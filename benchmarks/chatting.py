"""Ask a model about each record: the ways to do it, without the calls themselves.

Every contender asks the same questions of the same server with as many in flight, and writes each
record with the reply, in order.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import orjson

MODEL = "rule"
LATENCY_SECONDS = 0.05

Ask = Callable[[str], Awaitable[str]]


def body_of(text: str) -> dict[str, Any]:
    """Return the request for a text."""
    return {"model": MODEL, "messages": [{"role": "user", "content": text}]}


async def ask_all(ask: Ask, source: Path, in_flight: int, result: Path) -> None:
    """Ask about all records of a file, and write the result."""
    with source.open("rb") as file:
        records = [orjson.loads(line) for line in file]
    numbers = iter(range(len(records)))

    async def work() -> None:
        for number in numbers:
            records[number]["answer"] = await ask(records[number]["text"])

    await asyncio.gather(*[work() for _ in range(in_flight)])
    with result.open("wb", buffering=1 << 20) as file:
        file.writelines(orjson.dumps(one, option=orjson.OPT_APPEND_NEWLINE) for one in records)
