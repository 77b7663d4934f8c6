"""The hand-written script with aiohttp: no limits, no tries, nothing kept.

``python -m benchmarks.bare_calls SPECIFICATION``, with the keys source, out, address and in_flight.
"""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import orjson

from benchmarks.chatting import ask_all, body_of
from benchmarks.reporting import Stopwatch


async def run(given: dict[str, Any], result: Path) -> None:
    """Ask over connections that stay open."""
    url = f"{given['address']}/chat/completions"
    headers = {"content-type": "application/json"}
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

        async def ask(text: str) -> str:
            async with session.post(url, data=orjson.dumps(body_of(text))) as response:
                reply = orjson.loads(await response.read())
            return str(reply["choices"][0]["message"]["content"])

        await ask_all(ask, Path(given["source"]), given["in_flight"], result)


if __name__ == "__main__":
    watch = Stopwatch()
    written = Path(watch.specification["out"]) / "result.jsonl"
    asyncio.run(run(watch.specification, written))
    watch.finish([written])
