"""An OpenAI-compatible server for tests. It answers by rule, and fails on request.

    python -m tests.models.fault_server --latency 0.05 --rpm 600 --rates 429=0.05,500=0.02

It prints its address, and ends when its standard input ends. A prompt chooses its faults by marks
such as ``[[fault:500*2]]``: the first two requests with this first user message fail; without a
number all do. ``--rates`` fails a share of the requests, chosen by a hash of the request and the
number of its try, so that a second run repeats exactly. ``--bursts 0.2`` refuses all requests of a
fifth of each two seconds with status 429.

Batches of requests are answered when they are submitted. ``--batches in_progress`` leaves them
open until ``POST /finish`` with a status. ``--hold`` names a point at which the server waits until
``POST /release``: ``file``, ``uploaded``, ``batch``, ``submitted``, ``status`` or ``content``.

``GET /stats`` counts the requests since ``POST /reset``: by status, by fault, answers that reached
the caller (``answered``), different questions among them (``distinct``), and their tokens.
"""

import argparse
import asyncio
import hashlib
import json
import os
import re
import sys
import time
from collections import Counter
from email.utils import formatdate
from typing import Any

from aiohttp import web

MARK = re.compile(r"\[\[fault:([a-z0-9]+)(?:\*(\d+))?\]\]")

TICK = 0.05  # seconds between two looks at the clock
STALL = 0.1  # seconds after which the server was not scheduled

# Status, code and headers of the faults that are replies with an error.
ERRORS: dict[str, tuple[int, str, dict[str, str]]] = {
    "429": (429, "rate_limit_exceeded", {"retry-after": "1"}),
    "429ms": (429, "rate_limit_exceeded", {"retry-after-ms": "50"}),
    "429bare": (429, "rate_limit_exceeded", {}),
    "429long": (429, "rate_limit_exceeded", {"retry-after": "3600"}),
    "quota": (429, "insufficient_quota", {}),
    "400": (400, "invalid_request_error", {}),
    "401": (401, "invalid_api_key", {}),
    "403": (403, "forbidden", {}),
    "404": (404, "model_not_found", {}),
    "408": (408, "timeout", {}),
    "409": (409, "conflict", {}),
    "500": (500, "server_error", {}),
    "503": (503, "overloaded", {}),
    "toolong": (400, "context_length_exceeded", {}),
    "filter400": (400, "content_filter", {}),
}

# Texts of replies that are not what was asked for.
SPOILED = {
    "malformed": lambda text: text[: len(text) // 2] + ",,}",
    "fenced": lambda text: f"Sure, here it is:\n```json\n{text}\n```",
    "prose": lambda _: "I think the answer is probably forty-two.",
    "wrong": lambda _: json.dumps({"unexpected": [1, None]}),
    "truncated": lambda text: text[: max(1, len(text) // 2)],
}


class Bucket:
    """A limit a minute, strict: at most what one second allows may come at once.

    While the server is not scheduled, requests wait unread, and may have come at any time of this
    stall. So what the limit allowed during a stall is not cut at one second's worth.
    """

    def __init__(self, per_minute: float) -> None:
        self.rate = per_minute / 60
        self.size = max(self.rate, 1.0)
        self.level, self.at = self.size, time.monotonic()

    def tick(self, stall: float) -> None:
        """Note that the server is scheduled, after a stall of some seconds."""
        now = time.monotonic()
        self.level = min(self.size, self.level + max(0.0, now - stall - self.at) * self.rate)
        self.level += stall * self.rate
        self.at = now

    def take(self, amount: float) -> float:
        """Return the seconds until there is room; 0 if the amount was taken."""
        if not self.rate:
            return 0.0
        now = time.monotonic()
        earned = (now - self.at) * self.rate
        self.level = max(self.level, min(self.size, self.level + earned))
        self.at = now
        wanted = min(amount, self.size)
        if self.level < wanted:
            return (wanted - self.level) / self.rate
        self.level -= amount
        return 0.0


class Server:
    """The state of the server."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        pairs = [one.split("=") for one in options.rates.split(",") if one]
        self.rates = {name: float(share) for name, share in pairs}
        self.requests, self.tokens = Bucket(options.rpm), Bucket(options.tpm)
        self.reset()

    def tick(self, due: float) -> None:
        """Measure how late this call is, which comes before what waits in the sockets is read."""
        now = time.monotonic()
        late = now - due
        for bucket in (self.requests, self.tokens):
            bucket.tick(late if late > STALL else 0.0)
        loop = asyncio.get_running_loop()
        loop.call_at(now + TICK, self.tick, now + TICK)

    def reset(self) -> None:
        self.tries: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.by_status: Counter[str] = Counter()
        self.sums: Counter[str] = Counter()
        self.authorizations: set[str] = set()
        self.in_flight = self.most_in_flight = self.held = 0
        self.files: dict[str, bytes] = {}
        self.batches: list[dict[str, Any]] = []

    def stats(self) -> dict[str, Any]:
        return {
            "answered": self.answered.total(),
            "distinct": len(self.answered),
            "by_status": dict(self.by_status),
            "faults": dict(self.faults),
            "requests": self.by_status.total(),
            "in_flight": self.in_flight,
            "held": self.held,
            "files": sum(name.startswith("file-") for name in self.files),
            "batches": len(self.batches),
            "most_in_flight": self.most_in_flight,
            "authorizations": sorted(self.authorizations),
            **self.sums,
        }

    def fault_of(self, question: str, marked: str) -> str:
        """Return the fault of this try of a question; empty for none."""
        self.tries[question] += 1
        number = self.tries[question]
        end = 0
        for name, count in MARK.findall(marked):
            end += int(count or 1 << 30)
            if number <= end:
                return str(name)
        share = int(hashlib.sha256(f"{question}{number}".encode()).hexdigest()[:8], 16) / 2**32
        for name, rate in self.rates.items():
            if share < rate:
                return name
            share -= rate
        return ""

    def limited(self, tokens: int) -> web.Response | None:
        """Return the refusal of a request beyond the limits."""
        if time.monotonic() % 2 < 2 * self.options.bursts:
            self.faults["burst"] += 1
            return refusal(429, "rate_limit_exceeded", {"retry-after-ms": "50"})
        wait = self.requests.take(1) or self.tokens.take(tokens)
        if not wait:
            return None
        self.faults["limit"] += 1
        headers = {"retry-after": "1", "retry-after-ms": str(int(wait * 1000) + 1)}
        return refusal(429, "rate_limit_exceeded", headers)

    async def failed(self, fault: str, request: web.Request) -> web.Response | None:
        """Return the reply of a fault, or ``None`` if the request is to be answered."""
        if fault:
            self.faults[fault] += 1
        if fault in ERRORS:
            return refusal(*ERRORS[fault])
        match fault:
            case "429date":
                date = formatdate(time.time() + 2, usegmt=True)
                return refusal(429, "rate_limit_exceeded", {"retry-after": date})
            case "hang":
                await asyncio.sleep(3600)
            case "reset":
                broken(request)
            case "html":
                return web.Response(text="<html>504 gateway</html>", content_type="text/html")
        return None


def broken(request: web.Request) -> None:
    """Break the connection of a request."""
    assert request.transport is not None
    request.transport.abort()
    raise asyncio.CancelledError


def refusal(status: int, code: str, headers: dict[str, str]) -> web.Response:
    error = {"message": f"fault {code}", "type": code, "param": None, "code": code}
    return web.json_response(
        {"error": error}, status=status, headers={**headers, "x-request-id": f"req-{code}"}
    )


def text_of(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else " ".join(map(text_of_part, content))


def text_of_part(part: dict[str, Any]) -> str:
    """Return the text of a part; of a file its type and a digest of what was sent."""
    if part["type"] == "text":
        return str(part["text"])
    kind = part["type"].removesuffix("_url").removeprefix("input_")
    return f"{kind}_{hashlib.sha256(json.dumps(part, sort_keys=True).encode()).hexdigest()[:8]}"


def instance(  # noqa: C901 - one case a type
    schema: dict[str, Any], words: list[str], defs: dict[str, Any] | None = None
) -> Any:
    """Return an instance of a JSON Schema, made of the words of the prompt."""
    defs = defs if defs is not None else schema.get("$defs", {})
    if "$ref" in schema:
        return instance(defs[schema["$ref"].rsplit("/", 1)[1]], words, defs)
    if "enum" in schema:
        return schema["enum"][len(" ".join(words)) % len(schema["enum"])]
    if "anyOf" in schema:
        return instance(schema["anyOf"][0], words, defs)
    low = schema.get("minimum", 0)
    match schema.get("type"):
        case "object":
            properties = schema.get("properties", {})
            return {name: instance(one, words, defs) for name, one in properties.items()}
        case "array":
            count = max(1, schema.get("minItems", 2))
            return [instance(schema.get("items", {}), words, defs) for _ in range(count)]
        case "integer":
            return low + len(words) % (schema.get("maximum", 100) - low + 1)
        case "number":
            return low + 0.5
        case "boolean":
            return len(words) % 2 == 0
    return " ".join(words[:6]) or "nothing"


def answer_to(body: dict[str, Any]) -> str:
    """Return the text of the reply: an instance of the schema asked for, or the last words."""
    words = re.findall(r"\w+", text_of(body["messages"][-1]))
    wanted = body.get("response_format") or {}
    if words[-13:-10] == ["Think", "step", "by"]:  # the end of the prompt of llm.SelfConsistency
        return f"I count words.\n{len(words)}"
    if wanted.get("type") == "json_schema":
        return json.dumps(instance(wanted["json_schema"]["schema"], words))
    if wanted.get("type") == "json_object":
        return json.dumps({"answer": " ".join(words[:6])})
    return "echo: " + " ".join(words[-(body.get("max_tokens") or 12) :])


def spoiled(fault: str, text: str) -> tuple[dict[str, Any], str]:
    """Return the message and the finish reason of a reply."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    ends = {"truncated": "length", "filtered": "content_filter", "aborted": "abort"}
    finish = ends.get(fault, "stop")
    if fault in SPOILED:
        message["content"] = SPOILED[fault](text)
    elif fault == "refusal":
        message |= {"content": None, "refusal": "I cannot help with that."}
    elif fault in {"null", "filtered"}:
        message["content"] = None
    elif fault == "blank":
        message["content"] = ""
    return message, finish


def adapted_refusal(body: dict[str, Any], first: str) -> web.Response | None:
    """Refuse the fields of the marks ``[[no:max_tokens]]``, ``[[no:seed]]``, ``[[no:schema]]``."""
    if "[[no:max_tokens]]" in first and "max_tokens" in body:
        return refused_field("'max_tokens' is unsupported; use 'max_completion_tokens' instead")
    if "[[no:seed]]" in first and "seed" in body:
        return refused_field("unknown field 'seed'")
    wanted = body.get("response_format") or {}
    if "[[no:schema]]" in first and wanted.get("type") == "json_schema":
        return refused_field("response_format of type json_schema is not supported")
    return None


def refused_field(message: str) -> web.Response:
    error = {"message": message, "type": "invalid_request_error", "code": "unsupported_parameter"}
    return web.json_response({"error": error}, status=400)


def usage_of(body: dict[str, Any], text: str) -> dict[str, Any]:
    """Return the usage of a chat."""
    prompt = sum(len(text_of(one)) // 4 + 4 for one in body["messages"])
    completion = len(text) // 4 + 1
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": prompt // 2},
        "completion_tokens_details": {"reasoning_tokens": 1},
    }


def question_of(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


async def chat(request: web.Request) -> web.StreamResponse:
    server: Server = request.app["server"]
    body = await request.json()
    server.authorizations.add(request.headers.get("authorization", ""))
    first = next((text_of(one) for one in body["messages"] if one["role"] == "user"), "")
    question = question_of(body)
    tried = hashlib.sha256(f"{body.get('model')}{first}".encode()).hexdigest()
    prompt = sum(len(text_of(one)) // 4 + 4 for one in body["messages"])
    no = server.limited(prompt + (body.get("max_tokens") or 16))
    fault = "" if no else server.fault_of(tried, first)
    no = no or adapted_refusal(body, first) or await server.failed(fault, request)
    if no:
        return no
    await asyncio.sleep(server.options.latency)
    message, finish = spoiled(fault, answer_to(body))
    usage = usage_of(body, message["content"] or "")
    completion = usage["completion_tokens"]
    choice = {"index": 0, "message": message, "finish_reason": finish}
    reply = {
        "id": f"chatcmpl-{question[:12]}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": body.get("model"),
        "choices": [] if fault == "empty" else [choice],
        **({} if fault == "nousage" else {"usage": usage}),
    }
    return await answered(request, reply, question, {"tokens_in": prompt, "tokens_out": completion})


def vector_of(text: str) -> list[float]:
    return [byte / 255 - 0.5 for byte in hashlib.sha256(text.encode()).digest()[:16]]


async def embed(request: web.Request) -> web.StreamResponse:
    server: Server = request.app["server"]
    body = await request.json()
    texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
    tokens = sum(len(text) // 4 + 1 for text in texts)
    question = hashlib.sha256(json.dumps(texts).encode()).hexdigest()
    marked = next((text for text in texts if MARK.search(text)), "")
    no = server.limited(tokens)
    no = no or await server.failed(server.fault_of(question, marked), request)
    if no:
        return no
    await asyncio.sleep(server.options.latency)
    vectors = [{"index": at, "embedding": vector_of(text)} for at, text in enumerate(texts)]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    reply = {"object": "list", "data": vectors, "model": body.get("model"), "usage": usage}
    return await answered(request, reply, question, {"tokens_in": tokens, "tokens_out": 0})


async def transcribe(request: web.Request) -> web.StreamResponse:
    server: Server = request.app["server"]
    form = await request.post()
    sound = form["file"]
    assert isinstance(sound, web.FileField)
    data = sound.file.read()
    question = hashlib.sha256(data).hexdigest()
    fields = {name: value for name, value in form.items() if isinstance(value, str)}
    fault = server.fault_of(question, fields.get("prompt", ""))
    no = server.limited(1) or await server.failed(fault, request)
    if no:
        return no
    told = {"name": sound.filename, "type": sound.content_type, "digest": question[:8], **fields}
    text = "" if fields.get("prompt") == "silence" else json.dumps(told, sort_keys=True)
    return await answered(request, {"text": text}, question, {"tokens_in": 1, "tokens_out": 1})


async def answered(
    request: web.Request, reply: dict[str, Any], question: str, sums: dict[str, int]
) -> web.StreamResponse:
    """Send an answer, and count it if the caller is still there."""
    server: Server = request.app["server"]
    if request.transport is not None and not request.transport.is_closing():
        server.answered[question] += 1
        server.sums.update(sums)
    headers = {"x-request-id": question[:8]}
    if server.options.announce:
        headers["x-ratelimit-limit-requests"] = str(server.options.announce)
    return web.json_response(reply, headers=headers)


async def held(request: web.Request, point: str) -> None:
    """Wait until ``POST /release`` if the server was told to hold at a point."""
    server: Server = request.app["server"]
    if server.options.hold == point:
        server.held += 1
        while server.options.hold == point:
            await asyncio.sleep(0.01)


async def upload(request: web.Request) -> web.Response:
    server: Server = request.app["server"]
    fields = await request.post()
    await held(request, "file")
    name = f"file-{len(server.files)}"
    server.files[name] = fields["file"].file.read()  # type: ignore[union-attr]
    await held(request, "uploaded")
    return web.json_response({"id": name, "object": "file", "purpose": fields["purpose"]})


async def submit(request: web.Request) -> web.Response:
    """Create a batch, and answer its requests at once."""
    server: Server = request.app["server"]
    body = await request.json()
    await held(request, "batch")
    batch = {
        "id": f"batch-{len(server.batches)}",
        "object": "batch",
        "metadata": body["metadata"],
        "status": server.options.batches,
        "output_file_id": f"out-{len(server.batches)}",
        "error_file_id": f"errors-{len(server.batches)}",
    }
    server.batches.append(batch)
    if batch["status"] == "failed":
        batch["errors"] = {"data": [{"message": "the file is no good"}]}
    lines = [json.loads(one) for one in server.files[body["input_file_id"]].splitlines()]
    if batch["status"] == "expired":
        lines = lines[: (len(lines) + 1) // 2]
    answers = [line_of_batch(server, one) for one in lines]
    for kind, failed in (("output", False), ("error", True)):
        chosen = [one for one in answers if (one["response"]["status_code"] >= 400) is failed]
        server.files[str(batch[f"{kind}_file_id"])] = "".join(
            json.dumps(one) + "\n" for one in chosen
        ).encode()
    await held(request, "submitted")
    return web.json_response(batch)


def line_of_batch(server: Server, asked: dict[str, Any]) -> dict[str, Any]:
    """Return the line of a request in the output of its batch."""
    body = asked["body"]
    first = text_of(body["messages"][0])
    question = question_of(body)
    fault = server.fault_of(question, first)
    status, reply = 200, None
    if fault in ERRORS:
        status, code, _ = ERRORS[fault]
        reply = {"error": {"message": f"fault {code}", "code": code}}
    elif adapted_refusal(body, first):
        status = 400
        reply = {"error": {"message": "'max_tokens': use 'max_completion_tokens' instead"}}
    elif fault == "error200":
        reply = {"error": {"message": "upstream lost", "code": 502}}
    else:
        message, finish = spoiled(fault, answer_to(body))
        usage = usage_of(body, message["content"] or "")
        choice = {"index": 0, "message": message, "finish_reason": finish}
        reply = {"model": body["model"], "choices": [choice], "usage": usage}
        server.answered[question] += 1
        tokens = {"tokens_in": usage["prompt_tokens"], "tokens_out": usage["completion_tokens"]}
        server.sums.update(tokens)
    return {"custom_id": asked["custom_id"], "response": {"status_code": status, "body": reply}}


async def listed(request: web.Request) -> web.Response:
    server: Server = request.app["server"]
    batches = server.batches[::-1]
    after = request.query.get("after")
    if after:
        batches = batches[[one["id"] for one in batches].index(after) + 1 :]
    page = batches[:2]
    return web.json_response({"data": page, "has_more": len(batches) > len(page)})


async def batch_of(request: web.Request) -> web.Response:
    server: Server = request.app["server"]
    await held(request, "status")
    (found,) = [one for one in server.batches if one["id"] == request.match_info["id"]]
    return web.json_response(found)


async def cancel(request: web.Request) -> web.Response:
    """Cancel a batch; half of its requests were answered."""
    server: Server = request.app["server"]
    (found,) = [one for one in server.batches if one["id"] == request.match_info["id"]]
    lines = server.files[found["output_file_id"]].splitlines(keepends=True)
    server.files[found["output_file_id"]] = b"".join(lines[: len(lines) // 2])
    found["status"] = "cancelled"
    return web.json_response(found)


async def content(request: web.Request) -> web.StreamResponse:
    server: Server = request.app["server"]
    whole = server.files[request.match_info["id"]]
    response = web.StreamResponse()
    await response.prepare(request)
    half = whole.find(b"\n", len(whole) // 2) + 1
    await response.write(whole[:half])
    await held(request, "content")
    await response.write(whole[half:])
    await response.write_eof()
    return response


async def finish(request: web.Request) -> web.Response:
    """Change the status of all batches."""
    for batch in request.app["server"].batches:
        batch["status"] = (await request.json())["status"]
    return web.json_response({})


async def release(request: web.Request) -> web.Response:
    request.app["server"].options.hold = ""
    return web.json_response({})


async def stats(request: web.Request) -> web.Response:
    return web.json_response(request.app["server"].stats())


async def reset(request: web.Request) -> web.Response:
    server: Server = request.app["server"]
    server.reset()
    options = await request.json() if request.can_read_body else {}
    vars(server.options).update(options)
    server.__init__(server.options)  # type: ignore[misc]
    return web.json_response({})


@web.middleware
async def counted(request: web.Request, handler: Any) -> web.StreamResponse:
    if not request.path.startswith("/v1"):
        return await handler(request)
    server: Server = request.app["server"]
    server.in_flight += 1
    server.most_in_flight = max(server.most_in_flight, server.in_flight)
    try:
        response = await handler(request)
        server.by_status[str(response.status)] += 1
        return response
    finally:
        server.in_flight -= 1


async def serve(options: argparse.Namespace) -> None:
    app = web.Application(middlewares=[counted], client_max_size=1 << 28)
    app["server"] = Server(options)
    app.router.add_post("/v1/chat/completions", chat)
    app.router.add_post("/v1/embeddings", embed)
    app.router.add_post("/v1/audio/transcriptions", transcribe)
    app.router.add_post("/v1/files", upload)
    app.router.add_get("/v1/files/{id}/content", content)
    app.router.add_post("/v1/batches", submit)
    app.router.add_get("/v1/batches", listed)
    app.router.add_get("/v1/batches/{id}", batch_of)
    app.router.add_post("/v1/batches/{id}/cancel", cancel)
    app.router.add_post("/finish", finish)
    app.router.add_post("/release", release)
    app.router.add_get("/stats", stats)
    app.router.add_post("/reset", reset)
    app["server"].tick(time.monotonic())
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", options.port, backlog=4096)
    await site.start()
    host, port = runner.addresses[0][:2]
    sys.stdout.write(f"http://{host}:{port}\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)  # ends with the caller
    os._exit(0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--rpm", type=float, default=0)
    parser.add_argument("--tpm", type=float, default=0)
    parser.add_argument("--rates", default="")
    parser.add_argument("--bursts", type=float, default=0, help="share of two seconds with 429s")
    parser.add_argument("--announce", type=int, default=0, help="requests a minute, in headers")
    parser.add_argument("--hold", default="", help="point of a batch at which to wait")
    parser.add_argument("--batches", default="completed", help="status of new batches")
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
