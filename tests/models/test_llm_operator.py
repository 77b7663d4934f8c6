"""Tests of dagster_dataops.models.llm_operator."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from dagster_dataops import LLMOperator, ModelClient, Price, Reply, config, load_result
from dagster_dataops.errors import (
    AbsentColumnError,
    OperatorContextError,
    OperatorOptionError,
    RunStoppedError,
)
from tests.models.running_server import RunningServer
from tests.registries import OperatorRegistry


class City(BaseModel):
    """A city."""

    name: str
    population: int


class Cities(LLMOperator):
    """Cities that a text is about."""

    system = "You extract facts."
    prompt = "{{ text }}\n\nWhich city is this about?"
    response_format = City

    def parse(self, record, reply):
        return record | reply.parsed.model_dump()


class Debate(LLMOperator):
    """Several calls a record."""

    async def forward(self, record: dict):
        first = await self.ask(f"For: {record['claim']}")
        second = await self.ask(
            f"Against: {record['claim']}\nThey say: {first.text}", response_format=City
        )
        votes = await self.asks("Who wins?", n=5, temperature=1.0)
        return record | {
            "for": first.text,
            "against": second.parsed.name,
            "votes": [v.text for v in votes],
        }


class Echo(LLMOperator):
    """Repeats a text."""

    prompt = "{{ text }}"


@pytest.fixture
def made(
    registry: OperatorRegistry, server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
    """Register a class, and return its operator."""
    client = ModelClient(base_url=server.address, prices={"rule": Price(1.0, 4.0)})
    monkeypatch.setitem(config.clients, "default", client)

    def make(cls: type, **options: Any) -> Any:
        registered: Any = registry("data.demo")(cls)
        return registered(**{"model": "rule"} | options)

    return make


def error_rows(root: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for path in sorted(root.rglob("*_error.jsonl"))
        for line in path.read_text().splitlines()
    ]


def counts_of(root: Path) -> dict[str, Any]:
    (manifest,) = root.rglob("*_results.jsonl.json")
    return dict(json.loads(manifest.read_bytes())["counts"])


def test_an_operator_is_a_prompt_with_a_format(made, server):
    (found,) = made(Cities, max_tokens=200, temperature=0)([{"text": "Paris"}])

    assert found == {"text": "Paris", "name": "Paris Which city is this about", "population": 6}


def test_a_column_of_the_prompt_that_no_record_has_stops_before_a_call(made, server):
    for operator in (made(Echo), made(Cities)):
        with pytest.raises(AbsentColumnError, match="'text'"):
            operator([{"txet": "a"}])
    assert server.stats()["answered"] == 0
    assert made(Echo, prompt="{{ txet }}")([{"txet": "a"}])


def test_an_operator_asks_as_often_as_it_needs(made, server, root):
    (found,) = made(Debate)([{"claim": "cats are best"}])

    assert found["for"] == "echo: For cats are best"
    assert found["against"].startswith("Against cats are best")
    assert found["votes"] == ["echo: Who wins"] * 5
    assert server.stats()["answered"] == 7
    assert counts_of(root)["calls"] == 7


def test_the_text_of_the_reply_is_the_answer(made):
    assert made(Echo, output_key="said")([{"text": "hello"}]) == [
        {"text": "hello", "said": "echo: hello"}
    ]


def test_tokens_and_cost_are_those_of_the_server(made, server, root):
    made(Echo)([{"text": f"number {n} [[fault:500*1]]"} for n in range(30)])

    stats, counts = server.stats(), counts_of(root)
    assert counts["calls"] == stats["answered"] == 30
    assert counts["calls_repeated"] == 30
    assert (counts["tokens_in"], counts["tokens_out"]) == (stats["tokens_in"], stats["tokens_out"])
    assert counts["cost"] == pytest.approx((stats["tokens_in"] + 4 * stats["tokens_out"]) / 1e6)


@pytest.mark.parametrize(
    ("fault", "exception", "finish"),
    [
        ("truncated", "TruncatedError", "length"),
        ("refusal", "RefusedError", "stop"),
        ("filtered", "ContentFilteredError", "content_filter"),
        ("prose", "InvalidOutputError", "stop"),
        ("toolong", "ContextTooLongError", None),
        ("malformed", "InvalidOutputError", "stop"),
        ("wrong", "InvalidOutputError", "stop"),
        ("400", "BadRequestError", None),
    ],
)
def test_a_reply_that_is_of_no_use_fails_its_record_alone(made, root, fault, exception, finish):
    rows = made(Cities)([{"text": f"x [[fault:{fault}]]"}, {"text": "Paris"}])

    assert [row["text"] for row in rows] == ["Paris"]
    (error,) = error_rows(root)
    assert error["exception"] == exception
    assert error["message"]
    assert error.get("finish_reason") == finish
    assert error["request_id"].startswith("chatcmpl-" if finish else "req-")
    if finish:
        assert error["usage"]["tokens_in"] > 0
        assert error["attempts"] == (3 if exception == "InvalidOutputError" else 1)
        assert ("forty-two" in error["reply"]) == (fault == "prose")


@pytest.mark.parametrize("seed", [None, 7])
def test_samples_have_different_seeds_which_are_the_same_in_each_run(made, root, seed):
    seen: list[list[Any]] = []

    class Stub:
        def complete(self, request: dict[str, Any]) -> str:
            seen[-1].append(request.get("seed"))
            return "a"

    class Samples(LLMOperator):
        async def forward(self, record: dict):
            await self.asks("Who wins?", n=3)
            return record

    given = {"params": {"seed": seed}} if seed else {}
    operator = made(Samples, client=ModelClient(complete=Stub()), **given)
    for _ in range(2):
        seen.append([])
        operator([{"n": 1}])
        shutil.rmtree(root)  # with the stored replies

    assert seen[0] == seen[1]
    assert seen[0][0] == seed
    assert len(set(seen[0])) == 3
    assert all(0 <= one < 2**31 for one in seen[0][1:])
    assert seed is None or seen[0] == [7, 8, 9]


@pytest.mark.parametrize("fault", ["malformed", "prose", "wrong", "fenced"])
def test_a_wrong_reply_is_asked_for_again_with_its_fault(made, server, fault):
    (found,) = made(Cities)([{"text": f"Paris [[fault:{fault}*1]]"}])

    assert isinstance(found["population"], int)
    assert server.stats()["answered"] == (1 if fault == "fenced" else 2)


def test_a_truncated_reply_may_be_kept(made):
    (found,) = made(Echo, truncated="keep")([{"text": "one two [[fault:truncated]]"}])

    assert found["answer"].startswith("echo")


def test_a_plain_schema_is_checked_too(made, root):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

    rows = made(Echo, response_format=schema)([{"text": "a b"}, {"text": "a [[fault:wrong]]"}])

    assert rows == [{"text": "a b", "answer": {"n": 2}}]
    assert error_rows(root)[0]["exception"] == "InvalidOutputError"


def form_with(name: str) -> dict[str, Any]:
    """Return a schema of an object with one number."""
    return {"type": "object", "properties": {name: {"type": "integer"}}, "required": [name]}


def test_each_call_may_have_a_format_of_its_own(made):
    class Both(LLMOperator):
        async def forward(self, record: dict):
            found = {}
            for name in record["names"]:
                reply = await self.ask(f"Give {name}.", response_format=form_with(name))
                found.update(reply.parsed)
            return found

    (found,) = made(Both)([{"names": list("abcdefgh")}])

    assert list(found) == list("abcdefgh")


def test_examples_are_messages_before_the_prompt(made, monkeypatch):
    asked = []

    def reply(request):
        asked.append(request["messages"])
        return {"choices": [{"message": {"content": "c"}, "finish_reason": "stop"}]}

    client = type("Stub", (), {"complete": staticmethod(reply)})()
    examples = [{"text": "one", "reply": "1"}, {"text": "two", "reply": {"n": 2}}]
    made(Echo, system="Count {{ text }}.", examples=examples, client=client)([{"text": "three"}])

    assert [(one["role"], one["content"]) for one in asked[0]] == [
        ("system", "Count three."),
        ("user", "one"),
        ("assistant", "1"),
        ("user", "two"),
        ("assistant", '{"n":2}'),
        ("user", "three"),
    ]


def test_an_unknown_column_is_the_error_of_its_record(made, server, root):
    rows = made(Echo, prompt="{{ textt }}")([{"text": "a"}, {"textt": "b"}])

    assert len(rows) == 1
    (error,) = error_rows(root)
    assert error["exception"] == "UnfitRecordError"
    assert "'textt' is undefined" in error["message"]
    assert "known: text, record" in error["message"]


def test_a_fatal_error_stops_the_run_and_the_next_one_continues(made, server, root):
    records = [{"text": f"{n}"} for n in range(20)] + [{"text": "[[fault:401*1]]"}] * 50
    operator = made(Echo, _max_workers=10)

    with pytest.raises(RunStoppedError, match="AuthenticationFailed"):
        operator(records)

    assert not list(root.rglob("*_error.jsonl"))
    answered = server.stats()["answered"]
    assert 20 <= server.stats()["requests"] <= 30 + 1
    with config.temporary(data_process_resume=True):
        assert len(operator(records)) == 70
    stats = server.stats()
    assert stats["answered"] == stats["distinct"]
    assert counts_of(root)["tokens_in"] == stats["tokens_in"]
    assert answered >= 20


def test_replies_are_used_again_after_a_change_of_parse(registry, made, server, root):
    records = [{"text": f"city {n}"} for n in range(50)]
    made(Cities)(records)
    before = server.stats()["answered"]

    class Changed(Cities):
        def parse(self, record, reply):
            return {"named": reply.parsed.name}

    Changed.__name__ = "Cities"
    other = OperatorRegistry(registry._runner)
    changed: Any = other("data.demo")(Changed)
    rows = changed(model="rule")(records)

    assert [sorted(row) for row in rows] == [["named"]] * 50
    assert server.stats()["answered"] == before == 50
    assert counts_of(root) == {"calls_replayed": 50}


def test_only_a_retry_of_failed_records_asks_again_for_what_was_of_no_use(made, server, root):
    operator = made(Cities)
    records = [{"text": "a [[fault:wrong*3]]"}, {"text": "b"}]
    operator(records)
    assert len(error_rows(root)) == 1
    assert server.stats()["answered"] == 4

    operator(records)
    assert server.stats()["answered"] == 4
    with config.temporary(data_process_resume="failed_records"):
        assert len(operator(records)) == 2
    assert server.stats()["answered"] == 5


def test_nothing_of_the_client_is_part_of_the_identity(made, server, monkeypatch, root):
    records = [{"text": f"{n}"} for n in range(5)]
    first = made(Echo)
    rows = first(records)
    other = ModelClient(base_url=server.address, api_key="other", timeout=5, max_in_flight=3)

    with config.temporary(data_process_resume=True):
        assert type(first)(model="rule", client=other)(records) == rows

    assert server.stats()["answered"] == 5
    digests = [
        type(first)(model="rule", **given).__dataops__.options_digest
        for given in ({}, {"client": other}, {"client": "judge"}, {"temperature": 1})
    ]
    assert digests[0] == digests[1] == digests[2] != digests[3]


@pytest.mark.parametrize("mode", ["single", "thread", "process", "async"])
def test_every_mode_gives_the_same_result(made, server, root, mode):
    records = [{"text": f"{n}"} for n in range(20)]

    rows = made(Echo, _concurrency_mode=mode, _max_workers=2)(records)

    assert [row["answer"] for row in rows] == [f"echo: {n}" for n in range(20)]
    assert server.stats()["answered"] == 20
    assert counts_of(root)["calls"] == 20


@pytest.mark.slow
def test_waiting_for_a_limit_does_not_count_as_time_of_the_record(made, server):
    client = ModelClient(base_url=server.address, requests_per_minute=300)

    rows = made(Echo, client=client, _timeout=1.5)([{"text": f"{n}"} for n in range(20)])

    assert len(rows) == 20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prompt": ""}, "prompt"),
        ({"prompt": "{{ a"}, "line 1"),
        ({"reasks": -1}, "0 or more"),
        ({"truncated": "maybe"}, "'keep'"),
        ({"empty": "maybe"}, "'keep'"),
        ({"thinking": "maybe"}, "'cut'"),
        ({"params": {"stream": True}}, "read whole"),
        ({"wait": "never"}, "sensor or step"),
        ({"examples": [{"text": "a"}]}, "'reply'"),
        ({"_retries": 3}, "tries=..."),
    ],
)
def test_invalid_options_are_refused(made, options, message):
    with pytest.raises(OperatorOptionError, match=message):
        made(Echo, **options)


def test_a_call_outside_of_a_run_says_what_to_do(made):
    with pytest.raises(OperatorContextError, match="call the operator with records"):
        made(Echo).forward({"text": "a"}).send(None)


def test_the_default_client_is_taken_from_the_environment(made, server, monkeypatch):
    monkeypatch.delitem(config.clients, "default")
    monkeypatch.setenv("DATAOPS_LLM_BASE_URL", server.address)
    monkeypatch.setenv("OPENAI_API_KEY", "from the environment")

    assert made(Echo)([{"text": "a"}])[0]["answer"] == "echo: a"
    assert server.stats()["authorizations"] == ["Bearer from the environment"]


def test_the_reply_is_a_public_type():
    assert Reply.__module__ == "dagster_dataops.models.replies.reply"
    assert load_result is not None
