"""A chat server that counts: it answers after a time, and adds the record's number to the ledger.

``python -m benchmarks.counting_server SECONDS`` prints its address. A prompt begins with the number
of its record. Requests without one, such as a check of the model's health, are not counted. It ends
with its standard input.
"""

import asyncio
import re
import sys

from aiohttp import web

from benchmarks import ledger

_NUMBER = re.compile(r"(\d+) ")


async def answer(request: web.Request) -> web.Response:
    """Answer a chat request."""
    body = await request.json()
    content = body["messages"][-1]["content"] if body["messages"] else ""  # one peer only asks
    text = content if isinstance(content, str) else content[0]["text"]
    await asyncio.sleep(request.app["seconds"])
    counted = _NUMBER.match(text)
    if counted:
        ledger.add(int(counted[1]))
    choice = {"role": "assistant", "content": f"answer to {text[:20]}"}
    return web.json_response(
        {
            "id": "chat",
            "object": "chat.completion",
            "created": 0,
            "model": body["model"],
            "choices": [{"index": 0, "message": choice, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105},
        }
    )


async def serve(seconds: float) -> None:
    """Serve until the standard input ends."""
    app = web.Application()
    app["seconds"] = seconds
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1])))
