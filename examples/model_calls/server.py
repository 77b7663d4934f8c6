"""A server with the interface of OpenAI's, and two small models in numpy behind it.

``python examples/model_calls/server.py`` prints its address. It needs what ``requirements.txt`` and
``weights.txt`` name, and no network.
"""

import argparse
import asyncio
import os
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any

from aiohttp import web
from minilm import MiniLM
from smollm import SmolLM

PORT = 8096
chat_model = cache(SmolLM)  # loaded by the first request
text_model = cache(MiniLM)
worker = ThreadPoolExecutor(1)  # one request at a time: numpy uses all cores


async def chat(request: web.Request) -> web.Response:
    """Answer ``POST /v1/chat/completions``."""
    body = await request.json()
    answer = partial(
        in_turn,
        chat_model,
        "chat",
        body["messages"],
        max_tokens=body.get("max_tokens") or body.get("max_completion_tokens") or 64,
        temperature=body.get("temperature") or 0.0,
        seed=body.get("seed") or 0,
    )
    found = await asyncio.get_running_loop().run_in_executor(worker, answer)
    message = {"role": "assistant", "content": found.text}
    choice = {"index": 0, "message": message, "finish_reason": found.finish_reason}
    usage = usage_of(found.tokens_in, found.tokens_out)
    return web.json_response(
        {
            "id": f"chatcmpl-{uuid.uuid4().hex}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": "SmolLM2-135M-Instruct",
            "choices": [choice],
            "usage": usage,
        }
    )


async def embed(request: web.Request) -> web.Response:
    """Answer ``POST /v1/embeddings``."""
    body = await request.json()
    texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
    answer = partial(in_turn, text_model, "embed", texts)
    vectors, tokens = await asyncio.get_running_loop().run_in_executor(worker, answer)
    data = [
        {"object": "embedding", "index": at, "embedding": [round(float(one), 6) for one in vector]}
        for at, vector in enumerate(vectors)
    ]
    usage = usage_of(tokens, 0)
    return web.json_response(
        {"object": "list", "data": data, "model": "all-MiniLM-L6-v2", "usage": usage}
    )


def in_turn(model: Any, method: str, *args: Any, **keywords: Any) -> Any:
    """Call a method of a model, which is loaded if it is not."""
    return getattr(model(), method)(*args, **keywords)


def usage_of(tokens_in: int, tokens_out: int) -> dict[str, int]:
    """Return the usage of a call."""
    total = tokens_in + tokens_out
    return {"prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": total}


async def serve(port: int, *, until_input_ends: bool) -> None:
    """Serve until the process ends, or its standard input, which the caller holds."""
    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    app.router.add_post("/v1/embeddings", embed)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", flush=True)
    if until_input_ends:
        await asyncio.to_thread(sys.stdin.read)
        os._exit(0)  # also in the middle of an answer
    await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Serve two small models.")
    parser.add_argument("--port", type=int, default=PORT, help="0 for any that is free")
    parser.add_argument("--until-input-ends", action="store_true", help="end with the caller")
    given = parser.parse_args()
    try:
        asyncio.run(serve(given.port, until_input_ends=given.until_input_ends))
    except KeyboardInterrupt:
        sys.exit(0)
