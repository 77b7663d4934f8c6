"""Tests of dagster_dataops.models.model_session, replies.call_counts and replies.latency."""

import asyncio
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from dagster_dataops import ModelClient, Price, errors
from dagster_dataops.models import model_session
from dagster_dataops.models.model_session import ModelSession
from dagster_dataops.models.replies.latency import latency_count, latency_quantile
from dagster_dataops.operators.outcomes.record_context import count_tables
from tests.models.calling import chat, in_counted_session, in_session
from tests.models.running_server import RunningServer


def text_of(reply: dict[str, Any]) -> str:
    return str(reply["choices"][0]["message"]["content"])


def asking(*texts: str, **fields: Any) -> Any:
    """Return work that asks several questions at once."""

    async def work(session: ModelSession) -> list[Any]:
        asked = [session.complete(chat(text, **fields)) for text in texts]
        return await asyncio.gather(*asked, return_exceptions=True)

    return work


@pytest.fixture
def client(server: RunningServer) -> ModelClient:
    return ModelClient(base_url=server.address, api_key="k", prices={"rule": Price(1.0, 4.0)})


def test_a_reply_is_stored_and_counted(tmp_path: Path, client: ModelClient, server: RunningServer):
    ((reply, stored),), counts = in_session(tmp_path, client, asking("say hello"))

    assert text_of(reply) == "echo: say hello"
    assert not stored
    usage = reply["usage"]
    assert counts == {
        "calls": 1,
        "tokens_in": usage["prompt_tokens"],
        "tokens_cached": usage["prompt_tokens_details"]["cached_tokens"],
        "tokens_out": usage["completion_tokens"],
        "tokens_reasoning": 1,
        "cost": (usage["prompt_tokens"] + 4 * usage["completion_tokens"]) / 1e6,
    }
    assert server.stats()["authorizations"] == ["Bearer k"]


def test_a_reply_counts_in_the_tables_of_models_finish_reasons_and_seconds(
    tmp_path: Path, client: ModelClient, server: RunningServer
):
    server.reset(latency=0.2)
    _, counts = in_counted_session(tmp_path, client, asking("a", "b", "c [[fault:truncated]]"))
    tables = count_tables(counts)

    assert tables["model"] == {"rule": 3}
    assert tables["finish_reasons"] == {"stop": 2, "length": 1}
    assert 0.19 <= latency_quantile(tables["latency"], 0.5) < 5


def rows_of(*seconds: float) -> dict[str, float]:
    return dict(Counter(latency_count(one).partition("/")[2] for one in seconds))


FEW_SLOW = Counter(rows_of(*[0.1] * 94)) + Counter(rows_of(*[3.0] * 6))  # of two runs
UP_TO_TEN = rows_of(*(0.01 * number for number in range(1, 1001)))


@pytest.mark.parametrize(
    ("rows", "share", "seconds"),
    [
        *((UP_TO_TEN, share, 10 * share) for share in (0.5, 0.95, 1.0)),
        (FEW_SLOW, 0.5, 0.1),
        (FEW_SLOW, 0.95, 3.0),
        (rows_of(0.0), 0.5, 0.001),
        ({}, 0.5, 0),
    ],
)
def test_quantiles_are_exact_to_five_percent(rows: Any, share: float, seconds: float):
    assert latency_quantile(rows, share) == pytest.approx(seconds, rel=0.06)


def test_an_interrupted_record_counts_its_stored_reply_once_and_others_do_not(
    tmp_path: Path, client: ModelClient, server: RunningServer
):
    _, first = in_session(tmp_path, client, asking("one"), position=7)
    ((reply, stored),), again = in_session(tmp_path, client, asking("one"), position=7)
    _, twice = in_session(tmp_path, client, asking("one", "one"), position=7)
    _, other = in_session(tmp_path, client, asking("one"), position=9)

    assert stored
    assert text_of(reply) == "echo: one"
    assert first == again
    assert twice == first | {"calls_replayed": 1}
    assert other == {"calls_replayed": 1}
    assert server.stats()["answered"] == 1


def test_a_stored_reply_costs_nothing_once_a_result_is_published(
    tmp_path: Path, client: ModelClient
):
    in_session(tmp_path, client, asking("one"))
    (tmp_path / "node" / "node_results.jsonl.json").write_text("{}")

    assert in_session(tmp_path, client, asking("one"))[1] == {"calls_replayed": 1}


def test_an_interrupted_record_counts_replies_without_an_answer_too(
    tmp_path: Path, client: ModelClient, server: RunningServer
):
    question = "one [[fault:empty*2]]"
    few = replace(client, tries=2)

    async def twice(session: ModelSession) -> None:
        await asking(question)(session)
        await asking("other")(session)

    _, first = in_session(tmp_path, few, twice, position=7)
    assert first["tokens_in"] == server.stats()["tokens_in"]
    _, again = in_session(tmp_path, client, asking(question, "other"), position=7)
    _, other = in_session(tmp_path, client, asking("two"), position=9)

    stats = server.stats()
    assert again["tokens_in"] + other["tokens_in"] == stats["tokens_in"]
    assert again["tokens_out"] + other["tokens_out"] == stats["tokens_out"]


def test_the_limit_of_the_cost_heeds_replies_without_an_answer(
    tmp_path: Path, client: ModelClient, server: RunningServer
):
    limited = replace(client, max_cost=1e-9)
    (error,), _ = in_session(tmp_path, limited, asking("one [[fault:empty]]"))

    assert isinstance(error, errors.BudgetSpentError)
    assert server.stats()["answered"] == 1


def test_equal_requests_at_the_same_time_are_sent_once(
    tmp_path: Path, client: ModelClient, server: RunningServer
):
    server.reset(latency=0.2)

    replies, counts = in_session(tmp_path, client, asking("one", "one", "one"))

    assert {text_of(reply) for reply, _ in replies} == {"echo: one"}
    assert (counts["calls"], counts["calls_replayed"]) == (1, 2)
    assert server.stats()["answered"] == 1


@pytest.mark.parametrize("fault", ["429ms", "429bare", "500", "503", "408", "409", "reset", "html"])
def test_a_passing_fault_costs_a_further_try(
    fault: str, tmp_path: Path, client: ModelClient, server: RunningServer
):
    ((reply, _),), counts = in_session(tmp_path, client, asking(f"one [[fault:{fault}*2]]"))

    assert text_of(reply).startswith("echo: one")
    assert (counts["calls"], counts["calls_repeated"]) == (1, 2)
    assert counts["rate_limited_seconds"] > 0
    assert server.stats()["answered"] == 1


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("400", errors.BadRequestError),
        ("toolong", errors.ContextTooLongError),
        ("filter400", errors.ContentFilteredError),
        ("401", errors.AuthenticationFailedError),
        ("403", errors.AuthenticationFailedError),
        ("404", errors.ModelMissingError),
        ("quota", errors.QuotaExhaustedError),
        ("429long", errors.RateLimitedError),
    ],
)
def test_a_lasting_fault_is_not_tried_again(
    fault: str, error: type, tmp_path: Path, client: ModelClient, server: RunningServer
):
    (raised,), _ = in_session(tmp_path, client, asking(f"one [[fault:{fault}]]"))

    assert type(raised) is error
    assert server.stats()["requests"] == 1


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("500", errors.ServerFaultError),
        ("reset", errors.UnreachableError),
        ("html", errors.BadReplyError),
        ("hang", errors.CallTimeoutError),
        ("not there", errors.UnreachableError),
    ],
)
def test_a_fault_that_does_not_pass_fails_after_the_last_try(
    fault: str, error: type, tmp_path: Path, server: RunningServer
):
    address = "http://127.0.0.1:9/v1" if fault == "not there" else server.address
    client = ModelClient(base_url=address, tries=2, timeout=0.3)

    (raised,), _ = in_session(tmp_path, client, asking(f"one [[fault:{fault}]]"))

    assert type(raised) is error
    assert server.stats()["faults"] == ({} if fault == "not there" else {fault: 2})
    assert raised.details["attempts"] == 2
    assert fault != "not there" or "127.0.0.1:9" in str(raised)


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "seconds"), [("429", 1.0), ("429date", 0.5)])
def test_a_pause_that_the_server_asks_for_is_kept(
    fault: str, seconds: float, tmp_path: Path, client: ModelClient
):
    begun = time.monotonic()

    ((reply, _),), counts = in_session(tmp_path, client, asking(f"one [[fault:{fault}*1]]"))

    assert time.monotonic() - begun >= seconds
    assert counts["rate_limited_seconds"] >= seconds
    assert text_of(reply).startswith("echo")


@pytest.mark.slow
def test_a_pause_that_was_too_short_grows(tmp_path: Path, client: ModelClient):
    begun = time.monotonic()
    in_session(tmp_path, client, asking("one [[fault:429ms*3]]"))  # each asks for 0.05 s

    assert time.monotonic() - begun >= 0.05 + 0.25 + 0.5


@pytest.mark.slow
def test_a_pause_that_the_server_asks_for_holds_for_other_requests(
    tmp_path: Path, client: ModelClient, server: RunningServer
):
    async def work(session: ModelSession) -> float:
        limited = asyncio.create_task(session.complete(chat("one [[fault:429*1]]")))
        while not server.stats()["faults"]:
            await asyncio.sleep(0.01)
        begun = time.monotonic()
        await session.complete(chat("two"))
        await limited
        return time.monotonic() - begun

    waited, _ = in_session(tmp_path, client, work)

    assert waited > 0.7


@pytest.mark.slow
@pytest.mark.parametrize("slow_connections", [False, True])
def test_a_limit_of_requests_is_kept_without_refusals(
    tmp_path: Path,
    server: RunningServer,
    monkeypatch: pytest.MonkeyPatch,
    slow_connections: bool,
):
    server.reset(rpm=6000)
    client = ModelClient(base_url=server.address, requests_per_minute=6000)
    connect = aiohttp.TCPConnector._create_connection

    async def work(session: ModelSession) -> Any:
        opened = asyncio.get_running_loop().time() + 1.5  # when the server begins to accept

        async def slow(*given: Any) -> Any:
            await asyncio.sleep(opened - asyncio.get_running_loop().time())
            return await connect(*given)

        if slow_connections:
            monkeypatch.setattr(aiohttp.TCPConnector, "_create_connection", slow)
        return await asking(*(f"text {n}" for n in range(200)))(session)

    begun = time.monotonic()
    replies, _ = in_session(tmp_path, client, work)

    assert len(replies) == 200
    assert all(text_of(reply).startswith("echo") for reply, _ in replies)
    assert server.stats()["faults"].get("limit", 0) <= 10
    assert time.monotonic() - begun > 1.4


def test_lower_limits_that_the_server_announces_are_kept(tmp_path: Path, server: RunningServer):
    server.reset(announce=600)
    client = ModelClient(base_url=server.address, requests_per_minute=60_000)

    async def work(session: ModelSession) -> float:
        await session.complete(chat("first"))
        begun = time.monotonic()
        await asking(*(f"text {n}" for n in range(15)))(session)
        return time.monotonic() - begun

    seconds, _ = in_session(tmp_path, client, work)

    assert seconds > 0.8  # 5 at once, then one each 0.1 s


def test_after_a_fatal_error_no_request_is_sent(
    tmp_path: Path, client: ModelClient, server: RunningServer
):
    async def work(session: ModelSession) -> None:
        for number in range(20):
            with pytest.raises(errors.AuthenticationFailedError):
                await session.complete(chat(f"{number} [[fault:401]]"))

    in_session(tmp_path, client, work)

    assert server.stats()["requests"] == 1


def test_many_failures_in_a_row_pause_all_calls_and_then_stop(
    tmp_path: Path, server: RunningServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(model_session, "_BREAK_AFTER", 5)
    monkeypatch.setattr(model_session, "_BREAK_SECONDS", (0.1, 0.1))
    client = ModelClient(base_url=server.address, tries=1)

    async def work(session: ModelSession) -> list[type]:
        found = []
        for number in range(40):
            with pytest.raises(errors.ModelError) as caught:
                await session.complete(chat(f"{number} [[fault:500]]"))
            found.append(caught.type)
        return found

    found, _ = in_session(tmp_path, client, work)

    assert found[0] is errors.ServerFaultError
    assert found[-1] is errors.EndpointFailingError
    assert 15 <= server.stats()["requests"] <= 25


def test_tries_while_the_server_is_down_do_not_count_once_all_calls_have_paused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(model_session, "_BREAK_AFTER", 5)
    monkeypatch.setattr(model_session, "_BREAK_SECONDS", (0.1, 0.1, 0.1, 0.1))
    monkeypatch.setattr(model_session, "_LONGEST_PAUSE_SECONDS", 0.01)
    client = ModelClient(base_url="http://127.0.0.1:9/v1", tries=4)

    raised, counts = in_session(tmp_path, client, asking(*"abcdef"))

    assert {type(error) for error in raised} == {errors.EndpointFailingError}
    assert counts["calls_repeated"] > 6 * 3


def test_max_cost_counts_the_calls_of_earlier_sessions(tmp_path: Path, server: RunningServer):
    prices = {"rule": Price(1e6)}  # one a token
    client = ModelClient(base_url=server.address, prices=prices, max_cost=8)
    in_session(tmp_path, client, asking("one"))
    in_session(tmp_path, client, asking("two"))

    (raised,), _ = in_session(tmp_path, client, asking("three"))

    assert type(raised) is errors.BudgetSpentError
    assert "max_cost" in str(raised)
    assert server.stats()["answered"] == 2
    larger = ModelClient(base_url=server.address, prices=prices, max_cost=100)
    assert in_session(tmp_path, larger, asking("three"))[1]["calls"] == 1


@pytest.mark.parametrize(
    ("mark", "fields"),
    [
        ("max_tokens", {"max_tokens": 5}),
        ("seed", {"seed": 5}),
        (
            "schema",
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "x", "schema": {"type": "object"}},
                }
            },
        ),
    ],
)
def test_a_field_that_the_server_refuses_is_replaced_from_then_on_and_the_log_says_so(
    mark: str,
    fields: dict[str, Any],
    tmp_path: Path,
    client: ModelClient,
    server: RunningServer,
    caplog: pytest.LogCaptureFixture,
):
    async def work(session: ModelSession) -> None:
        for number in range(3):
            await session.complete(chat(f"{number} [[no:{mark}]]", **fields))

    in_session(tmp_path, client, work)

    assert server.stats()["by_status"] == {"400": 1, "200": 3}
    assert caplog.text.count("node: requests get another form") == 1


def test_a_cassette_answers_without_a_server_and_names_a_missing_request(
    tmp_path: Path, server: RunningServer
):
    cassette = tmp_path / "cassette.jsonl"
    live = ModelClient(base_url=server.address, api_key="secret", mode="record", replies=cassette)
    in_session(tmp_path, live, asking("one", "a song of three"))
    replay = ModelClient(base_url="http://nowhere", mode="replay", replies=cassette)

    ((reply, stored), missing), counts = in_session(
        tmp_path, replay, asking("one", "a song of two")
    )

    assert (text_of(reply), stored) == ("echo: one", True)
    assert type(missing) is errors.ReplyNotRecordedError
    assert "a song of two" in str(missing)
    assert "the nearest recorded message is 'a song of three'" in str(missing)
    assert counts == {"calls_replayed": 1}
    assert "secret" not in cassette.read_text()


def test_a_cassette_records_the_replies_of_each_address(tmp_path: Path, server: RunningServer):
    cassette = tmp_path / "cassette.jsonl"
    for address in (server.address, server.address, f"{server.address}/", f"{server.address}?v=2"):
        live = ModelClient(base_url=address, mode="record", replies=cassette)
        in_session(tmp_path, live, asking("one"))

    assert server.stats()["answered"] == 2


class Stub:
    """A client of the user."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    async def complete(self, request: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(request)
        message = {"role": "assistant", "content": "by a stub"}
        return {"choices": [{"message": message, "finish_reason": "stop"}]}


class StatusError(Exception):
    """An error as client libraries raise it."""

    status_code = 401


def test_an_object_with_complete_takes_requests(tmp_path: Path):
    stub = Stub()

    ((reply, _),), counts = in_session(tmp_path, ModelClient(complete=stub), asking("one"))

    assert text_of(reply) == "by a stub"
    assert stub.asked == [chat("one")]
    estimated = {"tokens_in": 1, "tokens_out": 3, "tokens_estimated": 4}
    assert counts == {"calls": 1, "calls_without_usage": 1, **estimated}


def test_a_function_takes_the_prompt(tmp_path: Path):
    ((reply, _),), _ = in_session(tmp_path, ModelClient(complete=str.upper), asking("one"))

    assert text_of(reply) == "ONE"


def test_an_error_with_a_status_of_a_client_library_is_understood(tmp_path: Path):
    def refuse(prompt: str) -> str:
        raise StatusError(prompt)

    (raised,), _ = in_session(tmp_path, ModelClient(complete=refuse), asking("one"))

    assert type(raised) is errors.AuthenticationFailedError


@pytest.mark.parametrize("agents", [1, 4])
def test_each_agent_keeps_to_its_share_of_the_limits(tmp_path: Path, agents: int):
    at_work, most = 0, 0

    async def complete(request: dict[str, Any]) -> dict[str, Any]:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        await asyncio.sleep(0.02)
        at_work -= 1
        return {"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}

    client = ModelClient(complete=SimpleNamespace(complete=complete), max_in_flight=8)
    questions = asking(*map(str, range(20)))

    in_counted_session(tmp_path, client, questions, agent=(agents - 1, agents))

    assert most == 8 // agents
