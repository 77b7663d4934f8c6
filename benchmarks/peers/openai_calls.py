"""The openai client, in a plain loop: tries failed calls again, keeps nothing.

``transport`` is that of the client: ``httpx``, its default, or ``aiohttp``.
"""

import asyncio
from pathlib import Path
from typing import Any

import openai

from benchmarks.chatting import ask_all, body_of
from benchmarks.reporting import Stopwatch


async def run(given: dict[str, Any], result: Path) -> None:
    """Ask through one client."""
    client = openai.DefaultAioHttpClient() if given["transport"] == "aiohttp" else None
    async with openai.AsyncOpenAI(
        base_url=given["address"], api_key="none", http_client=client
    ) as server:

        async def ask(text: str) -> str:
            reply = await server.chat.completions.create(**body_of(text))
            return str(reply.choices[0].message.content)

        await ask_all(ask, Path(given["source"]), given["in_flight"], result)


if __name__ == "__main__":
    watch = Stopwatch()
    written = Path(watch.specification["out"]) / "result.jsonl"
    asyncio.run(run(watch.specification, written))
    watch.finish([written])
