"""Replies of servers with odd habits, over HTTP, and what operators make of each."""

import base64
import json
import shutil
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import (
    LLMOperator,
    ModelClient,
    Price,
    chain,
    config,
    data,
    data_register,
    load_replies,
)
from dagster_dataops.errors import OutageError, RunStoppedError
from tests.each import each
from tests.models.odd_server import Answer, OddServer, chat_reply, odd_server, with_usage

TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
CALL = {"id": "1", "type": "function", "function": {"name": "weather", "arguments": '{"c": 1}'}}


@data_register("data.odd")
class Ask(LLMOperator):
    prompt = "Capital of {{ q }}?"


@data_register("data.odd")
class Picture(LLMOperator):
    def messages(self, record: dict[str, Any]) -> list[dict[str, Any]]:
        return list(record["messages"])


@pytest.fixture
def server() -> Iterator[OddServer]:
    with odd_server() as started:
        yield started


@pytest.fixture(autouse=True)
def client(server: OddServer, monkeypatch: pytest.MonkeyPatch, root: Path) -> ModelClient:
    made = ModelClient(base_url=server.address, api_key="k", tries=4, prices={"m": Price(1.0, 4.0)})
    monkeypatch.setitem(config.clients, "default", made)
    monkeypatch.setattr("dagster_dataops.models.model_session._FIRST_PAUSE_SECONDS", 0.01)
    return made


def ask(**options: Any) -> Any:
    return Ask(model="m", _stop_after_failures=0, **options)


def rows_of(answer: Any, server: OddServer, root: Path, **options: Any) -> list[dict[str, Any]]:
    """Ask about one record that gets an answer, and then about another one that is well."""
    server.requests.clear()
    shutil.rmtree(root, ignore_errors=True)
    server.answer = lambda sent: (
        answer if "odd" in json.dumps(sent.body) else with_usage(chat_reply("well"))
    )
    found: list[dict[str, Any]] = ask(_max_workers=1, **options)([{"q": "odd"}, {"q": "other"}])
    return found


def error_of(root: Path) -> dict[str, Any]:
    (path,) = root.rglob("*_error.jsonl")
    (line,) = path.read_text().splitlines()
    return dict(json.loads(line))


def counts_of(root: Path) -> dict[str, float]:
    (path,) = root.rglob("*_results.jsonl.json")
    return dict(json.loads(path.read_bytes())["counts"])


USAGE = {"usage": {"prompt_tokens": 10, "completion_tokens": 5}}
# What servers send, by their names, and the answer in it.
GOOD = {
    "openai": with_usage(chat_reply("Paris")),
    "gemini": with_usage(chat_reply("Paris", "STOP")),
    "together": with_usage(chat_reply("Paris", "eos")),
    "tgi": with_usage(chat_reply("Paris", "eos_token")),
    "bedrock gateway": with_usage(chat_reply("Paris", "end_turn")),
    "mistral": with_usage(
        chat_reply(
            [
                {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                {"type": "text", "text": "Paris"},
            ]
        )
    ),
    "deepseek": with_usage(chat_reply("Paris", reasoning_content="hm")),
    "vllm": with_usage(chat_reply("Paris", reasoning=None, tool_calls=[], function_call=None)),
    "openrouter": with_usage(chat_reply("Paris", reasoning="hm")) | {"error": None},
    "ollama": with_usage(chat_reply("Paris")) | {"system_fingerprint": "fp_ollama"},
    "llama.cpp": chat_reply("Paris") | {"timings": {"prompt_n": 10, "predicted_n": 5}},
    "no reason": with_usage(chat_reply("Paris", "absent")),
    "null reason": with_usage(chat_reply("Paris", None)),
    "completion": {"choices": [{"text": "Paris", "finish_reason": "stop"}], **USAGE},
    "mark": Answer(b"\xef\xbb\xbf" + json.dumps(with_usage(chat_reply("Paris"))).encode()),
    "blank lines": Answer(b"\n\n  \n" + json.dumps(with_usage(chat_reply("Paris"))).encode()),
    "nan": Answer(
        json.dumps(with_usage(chat_reply("Paris")) | {"logprobs": float("nan")}).encode()
    ),
    "litellm": with_usage(chat_reply("Paris"))
    | {"usage": {"prompt_tokens": "10", "completion_tokens": 5.0}},
}


@pytest.mark.slow
@each("name", list(GOOD))
def test_an_answer_is_read_from_the_forms_of_servers(name: str, server: OddServer, root: Path):
    odd, well = rows_of(GOOD[name], server, root)

    assert (odd["answer"], well["answer"]) == ("Paris", "well")
    assert len(server.requests) == 2
    assert counts_of(root)["tokens_in"] == 20
    assert "calls_without_usage" not in counts_of(root)


BAD = {
    "vllm": (chat_reply("The answer is", "abort"), "UnfinishedReplyError", "'abort'"),
    "sglang": (chat_reply("", "abort"), "UnfinishedReplyError", "'abort'"),
    "deepseek": (
        chat_reply("The", "insufficient_system_resource"),
        "UnfinishedReplyError",
        "insufficient_system_resource",
    ),
    "z.ai": (chat_reply("The", "network_error"), "UnfinishedReplyError", "network_error"),
    "z.ai filter": (chat_reply("The", "sensitive"), "UnfinishedReplyError", "sensitive"),
    "gemini": (chat_reply("The", "MAX_TOKENS"), "UnfinishedReplyError", "MAX_TOKENS"),
    "mistral": (chat_reply("The", "model_length"), "UnfinishedReplyError", "model_length"),
    "cohere": (chat_reply("The", "ERROR_TOXIC"), "UnfinishedReplyError", "ERROR_TOXIC"),
    "openrouter": (chat_reply("", "error"), "UnfinishedReplyError", "'error'"),
    "tools": (chat_reply(None, "tool_calls", tool_calls=[CALL]), "UnaskedToolCallError", "weather"),
    "tools, stop": (chat_reply("", "stop", tool_calls=[CALL]), "UnaskedToolCallError", "weather"),
    "ollama load": (chat_reply("", "load"), "UnfinishedReplyError", "'load'"),
    "empty": (chat_reply(""), "EmptyReplyError", "content ''"),
    "blank": (chat_reply(" \n"), "EmptyReplyError", "no text"),
    "null": (chat_reply(None), "EmptyReplyError", "content None"),
    "reasoning": (chat_reply(None, reasoning_content="I think"), "EmptyReplyError", "I think"),
    "image": (
        chat_reply([{"type": "text", "text": "See:"}, {"type": "image_url"}]),
        "InvalidOutputError",
        "'image_url'",
    ),
    "length": (chat_reply("The", "length"), "TruncatedError", "cut"),
    "filter": (chat_reply("", "content_filter"), "ContentFilteredError", "filter"),
    "bad request": (
        {"object": "error", "message": "max_tokens is too large", "code": 400},
        "BadRequestError",
        "max_tokens is too large",
    ),
}


@pytest.mark.slow
@each("name", list(BAD))
def test_what_is_no_answer_fails_its_record_after_one_call(
    name: str, server: OddServer, root: Path
):
    reply, exception, message = BAD[name]

    (well,) = rows_of(with_usage(reply), server, root)

    assert well["answer"] == "well"
    error = error_of(root)
    assert error["exception"] == exception
    assert message in error["message"]
    assert len(server.requests) == 2
    assert counts_of(root)["tokens_in"] == 20  # what it cost counts
    assert counts_of(root)["cost"] == pytest.approx((20 + 4 * 10) / 1e6)


def test_an_unfinished_reply_is_not_kept_and_is_asked_for_again(server: OddServer, root: Path):
    rows_of(chat_reply("The", "abort"), server, root)

    assert [one.text for one in load_replies(root / "Ask")] == ["well"]
    assert error_of(root)["reply"] == "The"
    assert error_of(root)["finish_reason"] == "abort"
    server.answer = lambda _: chat_reply("Paris")
    assert [row["answer"] for row in ask()([{"q": "odd"}, {"q": "other"}])] == ["Paris", "well"]
    assert len(server.requests) == 3


def test_an_empty_reply_is_paid_once_and_may_be_kept(server: OddServer, root: Path):
    rows_of(chat_reply(""), server, root)
    records = [{"q": "odd"}, {"q": "other"}]

    assert [row["answer"] for row in ask(empty="keep")(records)] == ["", "well"]
    assert len(ask()(records)) == 1
    assert len(server.requests) == 2
    with config.temporary(data_process_resume="failed_records"):
        server.answer = lambda _: chat_reply("Paris")
        assert [row["answer"] for row in ask()(records)] == ["Paris", "well"]
    assert len(server.requests) == 3


def test_a_stored_reply_that_is_no_answer_by_todays_rules_is_asked_for_again(
    server: OddServer, root: Path
):
    rows_of(with_usage(chat_reply("The")), server, root)
    (path,) = root.rglob("replies.jsonl")
    path.write_bytes(
        path.read_bytes().replace(
            b'"content":"The"},"finish_reason":"stop"', b'"content":"The"},"finish_reason":"abort"'
        )
    )
    server.answer = lambda _: chat_reply("Paris")

    rows = ask(output_key="said")([{"q": "odd"}, {"q": "other"}])

    assert [row["said"] for row in rows] == ["Paris", "well"]
    assert len(server.requests) == 3
    assert len(list(load_replies(root / "Ask"))) == 3


def test_a_reply_that_calls_tools_is_a_message_if_the_request_offers_tools(
    server: OddServer, root: Path
):
    server.answer = lambda _: chat_reply(None, "tool_calls", tool_calls=[CALL])

    (row,) = ask(params={"tools": TOOLS})([{"q": "x"}])

    assert row["answer"] == {"role": "assistant", "content": None, "tool_calls": [CALL]}
    assert server.requests[0].body["tools"] == TOOLS


def test_thinking_in_the_text_is_cut_on_request(server: OddServer, root: Path):
    server.answer = lambda _: chat_reply("<think>France...</think>\n\nParis")

    assert ask()([{"q": "x"}])[0]["answer"].startswith("<think>")
    assert ask(thinking="cut")([{"q": "x"}])[0]["answer"] == "Paris"
    assert len(server.requests) == 1


def test_thinking_alone_is_no_answer(server: OddServer, root: Path):
    (well,) = rows_of(chat_reply("<think>France"), server, root, thinking="cut")

    assert well["answer"] == "well"
    assert "reasoning: France" in error_of(root)["message"]


@each(
    "case",
    [
        ({"error": {"message": "Insufficient credits", "code": 402}}, "QuotaExhausted"),
        ({"error": {"message": "no credit", "code": "insufficient_quota"}}, "QuotaExhausted"),
        ({"error": {"message": "No auth", "code": 401}}, "AuthenticationFailed"),
        ({"error": {"message": "No auth", "code": "401"}}, "AuthenticationFailed"),
        ({"error": {"message": "x", "type": "authentication_error"}}, "AuthenticationFailed"),
        ({"error": {"message": "x", "status": "UNAUTHENTICATED"}}, "AuthenticationFailed"),
        ({"error": "invalid_api_key"}, "AuthenticationFailed"),
        (
            {"type": "error", "error": {"type": "permission_error", "message": "x"}},
            "Authentication",
        ),
        ({"message": "Unauthorized", "code": 401}, "AuthenticationFailed"),
        ({"detail": "Not authenticated", "status": 401}, "AuthenticationFailed"),
        ({"errors": [{"code": "invalid_api_key", "message": "x"}]}, "AuthenticationFailed"),
        ({"error": [{"message": "x", "code": 404}]}, "ModelMissing"),
        ({"error": {"message": "x", "code": "model_not_found"}}, "ModelMissing"),
        (chat_reply("a") | {"error": {"message": "x", "code": 402}}, "QuotaExhausted"),
        (
            {"choices": [{"message": {"content": ""}, "error": {"code": 402, "message": "x"}}]},
            "QuotaExhausted",
        ),
    ],
)
def test_an_error_with_status_200_stops_the_run_if_no_other_request_can_succeed(
    case: tuple[dict[str, Any], str], server: OddServer
):
    body, named = case
    server.requests.clear()
    server.answer = lambda _: body

    with pytest.raises(RunStoppedError, match=named):
        ask(_max_workers=1)([{"q": str(n)} for n in range(5)])
    assert len(server.requests) == 1


@pytest.mark.slow
@each(
    "body",
    [
        {"error": {"message": "slow down", "code": 429}},
        {"error": {"message": "slow down", "type": "rate_limit_error"}},
        {"error": {"message": "slow down", "status": "RESOURCE_EXHAUSTED"}},
        {"error": {"message": "upstream lost", "code": 502}},
        {"error": {"message": "unheard of", "code": "brand_new"}},
        {"error": "as a text"},
        {"message": "try later", "code": 503},
        {"choices": [{"message": {"content": "x"}, "error": {"code": 502, "message": "lost"}}]},
        {"choices": []},
        {"choices": None},
        {},
    ],
)
def test_another_error_with_status_200_is_a_try(
    body: dict[str, Any], server: OddServer, root: Path
):
    shutil.rmtree(root, ignore_errors=True)
    replies = iter([body, body])
    server.requests.clear()
    server.answer = lambda _: next(replies, chat_reply("Paris"))

    assert ask()([{"q": "x"}])[0]["answer"] == "Paris"
    assert len(server.requests) == 3


def test_the_words_of_the_server_are_in_the_error_row(server: OddServer, root: Path):
    rows_of({"error": {"message": "upstream lost", "code": "E42"}}, server, root)

    assert error_of(root)["message"] == "an error with status 200: upstream lost (e42)"
    assert error_of(root)["attempts"] == 4


def test_a_rate_limit_with_status_200_pauses_as_long_as_the_server_asks(server: OddServer):
    body = json.dumps({"error": {"message": "slow down", "code": 429}}).encode()
    limited = Answer(body, 200, (("retry-after", "0.5"),))
    replies = iter([limited])
    server.answer = lambda _: next(replies, chat_reply("Paris"))
    begun = time.monotonic()

    assert ask()([{"q": "x"}])[0]["answer"] == "Paris"
    assert time.monotonic() - begun >= 0.5


def redirecting(status: int, location: str) -> Answer:
    return Answer(b"", status, (("location", location),))


@each("status", [301, 302, 307, 308])
def test_a_redirect_is_followed_with_method_and_body(status: int, server: OddServer, root: Path):
    shutil.rmtree(root, ignore_errors=True)
    server.requests.clear()
    server.answer = lambda sent: (
        chat_reply("Paris") if sent.path.startswith("/new") else redirecting(status, "/new/v1")
    )

    assert ask()([{"q": "x"}])[0]["answer"] == "Paris"
    first, second = server.requests
    assert (second.method, second.path, second.body) == ("POST", "/new/v1", first.body)
    assert second.headers["authorization"] == "Bearer k"


@each(
    "case",
    [
        *((302, location, r"redirects to .* set base_url") for location in ("", "ftp://x/y")),
        (302, "/v1/chat/completions", r"redirects to .* set base_url"),
        (303, "/result", "with status 303"),  # a result to be fetched
    ],
)
def test_a_redirect_that_leads_nowhere_stops_the_run(case: tuple[int, str, str], server: OddServer):
    status, location, said = case
    server.requests.clear()
    server.answer = lambda _: redirecting(status, location)

    with pytest.raises(RunStoppedError, match=said):
        ask(_max_workers=1)([{"q": str(n)} for n in range(5)])
    assert len(server.requests) == 1 or status == 302


def test_no_key_is_sent_to_another_server(server: OddServer):
    with odd_server() as other:
        server.answer = lambda _: redirecting(307, f"{other.address}/chat/completions")

        assert ask()([{"q": "x"}])[0]["answer"] == "Paris"
    assert "authorization" in server.requests[0].headers
    assert "authorization" not in other.requests[0].headers
    assert other.requests[0].body == server.requests[0].body


EVENTS = b'data: {"choices":[{"delta":{"content":"Paris"}}]}\n\ndata: [DONE]\n\n'


@each(
    "case",
    [
        (Answer(EVENTS, 200, (("content-type", "text/event-stream"),)), "stream of events"),
        (Answer(EVENTS), "stream of events"),
        (Answer(b"<!doctype html><title>Welcome</title>" + b"x" * 5000), "page of HTML"),
        (Answer(b"Hello", 200, (("content-type", "text/html"),)), "page of HTML"),
    ],
)
def test_a_server_that_never_sends_json_stops_the_run_after_three_replies(
    case: tuple[Answer, str], server: OddServer
):
    answer, named = case
    server.requests.clear()
    server.answer = lambda _: answer

    with pytest.raises(RunStoppedError, match=named) as raised:
        ask(_max_workers=1)([{"q": str(n)} for n in range(50)])
    assert len(server.requests) == 3
    shown = answer.body[:30].decode().strip()
    assert json.dumps(shown)[1:-1] in str(raised.value).replace("\\\\", "\\") or shown in str(
        raised.value
    )
    assert len(str(raised.value)) < 1000


def test_pages_after_json_are_tries(server: OddServer, root: Path):
    server.answer = lambda sent: (
        Answer(b"<html>504</html>") if "odd" in json.dumps(sent.body) else chat_reply("well")
    )
    assert len(ask(_max_workers=1)([{"q": "first"}, {"q": "odd"}])) == 1
    assert "504" in error_of(root)["message"]


def test_a_cost_without_usage_is_estimated_and_holds_max_cost(
    server: OddServer, root: Path, monkeypatch: pytest.MonkeyPatch
):
    server.answer = lambda _: chat_reply("x" * 3500)
    prices = {"m": Price(0.0, 1e6)}  # one a token
    client = ModelClient(base_url=server.address, prices=prices, max_cost=2500)
    operator = ask(client=client, _max_workers=1)
    records = [{"q": str(n)} for n in range(10)]

    with pytest.raises(RunStoppedError, match="max_cost"):
        operator(records)
    with (
        config.temporary(data_process_resume=True),
        pytest.raises(RunStoppedError, match="have cost 3000"),
    ):
        operator(records)
    assert len(server.requests) == 3


def test_estimated_tokens_and_costs_are_counted_as_such(server: OddServer, root: Path):
    odd = chat_reply("x" * 35) | {"usage": {"prompt_tokens": 0, "completion_tokens": 0}}
    rows_of(odd, server, root)

    counts = counts_of(root)
    assert counts["calls_without_usage"] == 1
    assert counts["tokens_estimated"] == 4 + 10
    assert (counts["tokens_in"], counts["tokens_out"]) == (4 + 10, 10 + 5)
    assert counts["cost_estimated"] == pytest.approx((4 + 40) / 1e6)
    assert counts["cost"] == pytest.approx((4 + 40 + 10 + 20) / 1e6)


def test_max_cost_needs_a_price_of_the_model(server: OddServer):
    client = ModelClient(base_url=server.address, prices={"other": Price(1.0)}, max_cost=1)

    with pytest.raises(RunStoppedError, match="no price of model 'm'; its prices are of: other"):
        ask(client=client)([{"q": "x"}])
    assert server.requests == []


def picture(size: int) -> dict[str, Any]:
    content = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 512, 512) + bytes(size)
    url = f"data:image/png;base64,{base64.b64encode(content).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}


def test_pictures_reserve_the_tokens_of_their_size(server: OddServer, root: Path):
    client = ModelClient(base_url=server.address, tokens_per_minute=100_000)
    records = [
        {"messages": [{"role": "user", "content": [picture(300_000 + n)]}]} for n in range(8)
    ]
    begun = time.monotonic()

    assert len(Picture(model="m", client=client)(records)) == 8
    assert time.monotonic() - begun < 20  # by the length of their base64: minutes


def test_messages_without_content_are_sent(server: OddServer):
    messages = [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "1", "content": "18"},
    ]

    assert Picture(model="m")([{"messages": messages}])[0]["answer"] == "Paris"
    assert server.requests[0].body["messages"] == messages


def test_a_label_in_prose_costs_one_call(server: OddServer):
    server.answer = lambda _: chat_reply('{"label":"food"}\n\nHope this helps!')

    rows = data.llm.Classify(["food", "travel"], model="m")([{"text": "x"}])

    assert rows[0]["label"] == "food"
    assert len(server.requests) == 1


def vectors(*items: Any) -> dict[str, Any]:
    return {"data": [{"index": at, "embedding": one} for at, one in enumerate(items)]}


def packed(*numbers: float) -> str:
    return base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()


def test_vectors_may_be_base64(server: OddServer):
    server.answer = lambda sent: vectors(*[packed(1, 0.5) for _ in sent.body["input"]])

    rows = data.llm.Embed(model="m")([{"text": "a"}, {"text": "b"}])

    assert [row["embedding"] for row in rows] == [[1.0, 0.5]] * 2


def test_a_text_whose_vector_is_none_fails_alone(server: OddServer, root: Path):
    server.answer = lambda sent: vectors(
        *[[1.0, float("inf")] if "odd" in text else [1.0, 0.5] for text in sent.body["input"]]
    )

    rows = data.llm.Embed(model="m", batch_size=4)([{"text": t} for t in ("a", "b", "odd", "c")])

    assert [row["text"] for row in rows] == ["a", "b", "c"]
    assert error_of(root)["exception"] == "InvalidOutputError"


def test_vectors_of_a_result_have_one_length_over_batches_and_further_runs(
    server: OddServer, root: Path
):
    server.answer = lambda sent: (
        Answer(b'{"error": {"code": 401}}', 401)
        if "stop" in sent.body["input"]
        else vectors(*[[1.0] * (3 if "long" in text else 2) for text in sent.body["input"]])
    )
    embed = data.llm.Embed(model="m", batch_size=1, _max_workers=1)
    records = [{"text": t} for t in ("a", "long", "b", "stop", "c")]

    with config.temporary(data_process_resume=True):
        with pytest.raises(RunStoppedError):
            embed(records)
        server.answer = lambda sent: vectors([1.0] * (2 if "c" in sent.body["input"] else 3))
        rows = embed(records)

    assert [row["text"] for row in rows] == ["a", "b", "c"]
    assert {len(row["embedding"]) for row in rows} == {2}


def test_replies_of_one_address_are_not_those_of_another(server: OddServer, root: Path):
    with odd_server() as other:
        other.answer = lambda _: chat_reply("real")
        server.answer = lambda _: chat_reply("fake")
        real = ModelClient(base_url=other.address, api_key="new")
        records = [{"q": "x"}]

        with config.temporary(data_process_resume=True):
            assert ask()(records)[0]["answer"] == "fake"
            assert ask(client=real)(records)[0]["answer"] == "real"
            assert ask(output_key="again")(records)[0]["again"] == "fake"
            slashed = ModelClient(base_url=f"{other.address}/", api_key="other", timeout=9)
            assert ask(client=slashed, output_key="last")(records)[0]["last"] == "real"
        assert (len(server.requests), len(other.requests)) == (1, 1)


def test_an_unfinished_run_of_one_server_is_not_continued_with_another(
    server: OddServer, root: Path
):
    server.answer = lambda sent: (
        Answer(b"{}", 401) if "stop" in json.dumps(sent.body) else chat_reply("fake")
    )
    records = [{"q": "a"}, {"q": "b"}, {"q": "stop"}]
    with config.temporary(data_process_resume=True), odd_server() as other:
        with pytest.raises(RunStoppedError):
            ask(_max_workers=1)(records)
        other.answer = lambda _: chat_reply("real")
        real = ModelClient(base_url=other.address)
        rows = ask(client=real)(records)

        assert [row["answer"] for row in rows] == ["real"] * 3
        assert len(other.requests) == 3


def test_clients_of_one_deployment_use_the_same_replies_and_runs(server: OddServer, root: Path):
    with odd_server() as other:
        one = ModelClient(base_url=server.address, deployment="m-1")
        two = ModelClient(base_url=other.address, deployment="m-1")
        unnamed = ModelClient(base_url=server.address)
        records = [{"q": "x"}]

        ask(client=one)(records)
        assert ask(client=two, output_key="b")(records)[0]["b"] == "Paris"
        assert ask(client=unnamed, output_key="c")(records)[0]["c"] == "Paris"
        assert (len(server.requests), len(other.requests)) == (1, 0)
        three = ModelClient(base_url=other.address, deployment="m-2")
        ask(client=three, output_key="d")(records)
        assert len(other.requests) == 1


def test_replies_that_do_not_name_their_server_need_a_word_of_the_user(
    server: OddServer, root: Path
):
    records = [{"q": "x"}]
    server.answer = lambda _: chat_reply("before")
    ask()(records)
    (path,) = root.rglob("replies.jsonl")
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    for line in lines:
        line.pop("address", None)
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    server.answer = lambda _: chat_reply("now")
    address = {"base_url": server.address}

    with pytest.raises(RunStoppedError, match="replies_without_address='use'"):
        ask(output_key="a")(records)
    used = ModelClient(**address, replies_without_address="use")
    assert ask(output_key="b", client=used)(records)[0]["b"] == "before"
    assert len(server.requests) == 1
    ignored = ModelClient(**address, replies_without_address="ignore")
    assert ask(output_key="c", client=ignored)(records)[0]["c"] == "now"
    assert ask(output_key="d")(records)[0]["d"] == "now"
    assert len(server.requests) == 2


def test_everything_that_fails_publishes_nothing(server: OddServer):
    server.answer = lambda _: chat_reply("The answer is", "abort")

    with pytest.raises(OutageError, match="'abort'"):
        Ask(model="m")([{"q": str(n)} for n in range(3)])


def test_stored_vectors_are_judged_as_new_ones_are(server: OddServer, root: Path):
    server.answer = lambda sent: vectors(*[[1.0, 0.5] for _ in sent.body["input"]])
    records = [{"text": "a"}]
    data.llm.Embed(model="m")(records)
    (path,) = root.rglob("replies.jsonl")
    path.write_bytes(path.read_bytes().replace(b"[1.0,0.5]", b"[1.0,null]"))

    rows = data.llm.Embed(output_key="v", model="m")(records)

    assert rows[0]["v"] == [1.0, 0.5]
    assert len(server.requests) == 2


def test_a_chain_asks_the_servers_of_its_parts():
    one, two = (ModelClient(base_url=f"http://{name}/v1") for name in "ab")
    adopting = ModelClient(base_url="http://a/v1", replies_without_address="use")

    def served(*clients: ModelClient) -> tuple[str, bool]:
        parts = [Ask(model="m", client=given, output_key=str(n)) for n, given in enumerate(clients)]
        plain = data.text.LengthFilter(input_key="q")
        found: tuple[str, bool] = chain(plain, *parts, plain).__dataops_server__({})
        return found

    assert served() == ("", False)
    assert served(one, two) == ("http://a/v1 http://b/v1", False)
    assert served(adopting) == ("http://a/v1", True)
    assert served(adopting, two) == ("http://a/v1 http://b/v1", False)


def test_a_key_in_the_address_is_sent_and_never_shown_or_stored(server: OddServer, root: Path):
    keyed = ModelClient(base_url=f"{server.address}?key=hush-1&api-version=2", tries=1)
    rotated = ModelClient(base_url=f"{server.address}?key=hush-2&api-version=2", tries=1)
    records = [{"q": "x"}]

    assert ask(client=keyed)(records)[0]["answer"] == "Paris"
    assert ask(client=rotated, output_key="b")(records)[0]["b"] == "Paris"
    (sent,) = server.requests
    assert sent.path == "/v1/chat/completions?key=hush-1&api-version=2"
    for answer in (Answer(b"no JSON"), redirecting(303, "/x?key=hush-3"), redirecting(302, "")):
        server.answer = lambda _, answer=answer: answer
        with pytest.raises((OutageError, RunStoppedError)) as raised:
            Ask(model="m", client=keyed)([{"q": "y"}])
        assert "hush" not in str(raised.value)
    text = "".join(path.read_text(errors="replace") for path in root.rglob("*") if path.is_file())
    assert "hush" not in text
