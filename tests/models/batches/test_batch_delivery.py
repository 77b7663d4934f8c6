"""Tests of dagster_dataops.models.batches.batch_delivery, batch_round and batch_api."""

import asyncio
import json
import re
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import (
    LLMOperator,
    ModelClient,
    Price,
    config,
    data_register,
    load_replies,
)
from dagster_dataops.errors import RunStoppedError, RunWaitingError
from tests.faults.crashing import HANG_SECONDS, wait_until
from tests.faults.warm_starts import StartedProcess
from tests.models.odd_server import Answer, Sent, chat_reply, odd_server
from tests.models.running_server import RunningServer, started_script
from tests.subprocesses import killed_at_exit

RECORDS = 30
SCRIPT = f"""
import sys
from dagster_dataops import LLMOperator, ModelClient, config, data_register
from dagster_dataops.errors import RunWaitingError
from dagster_dataops.models.batches import batch_delivery

batch_delivery.MOST_REQUESTS = 12

@data_register("data.batched")
class Echo(LLMOperator):
    prompt = "say {{{{ n }}}}"

config.data_process_path, config.data_process_resume = sys.argv[2], True
config.clients["default"] = ModelClient(base_url=sys.argv[1])
try:
    Echo(model="rule", delivery="batch")([{{"n": n}} for n in range({RECORDS})])
except RunWaitingError:
    sys.exit(3)
"""


@data_register("data.batched")
class Echo(LLMOperator):
    prompt = "say {{ n }}"


@data_register("data.batched")
class Two(LLMOperator):
    async def forward(self, record: dict[str, Any]) -> dict[str, Any]:
        first = await self.ask(f"first {record['n']}")
        votes = await self.asks(f"then {first.text}", n=2)
        return {**record, "votes": [one.text for one in votes]}


@pytest.fixture
def client(server: RunningServer, monkeypatch: pytest.MonkeyPatch, root: Path) -> ModelClient:
    made = ModelClient(base_url=server.address, api_key="k", prices={"rule": Price(1.0, 4.0)})
    monkeypatch.setitem(config.clients, "default", made)
    monkeypatch.setattr(config, "data_process_resume", True)
    return made


def records(count: int = 5) -> list[dict[str, Any]]:
    return [{"n": number} for number in range(count)]


def waiting(operator: Any, given: list[dict[str, Any]]) -> str:
    with pytest.raises(RunWaitingError) as raised:
        operator(given)
    return str(raised.value)


def manifest_in(root: Path) -> dict[str, Any]:
    (path,) = root.rglob("*_results.jsonl.json")
    found: dict[str, Any] = json.loads(path.read_bytes())
    return found


def test_a_run_submits_and_a_later_one_collects(
    client: ModelClient, server: RunningServer, root: Path
):
    server.reset(batches="in_progress")
    echo = Echo(model="rule", delivery="batch")

    assert "answered batches: 0 of 1; requests without a reply: 5" in waiting(echo, records())
    assert "answered batches: 0 of 1" in waiting(echo, records())
    server.finish()
    rows = echo(records())

    assert [row["answer"] for row in rows] == [f"echo: say {n}" for n in range(5)]
    stats, counts = server.stats(), manifest_in(root)["counts"]
    assert (stats["batches"], stats["answered"]) == (1, 5)
    assert stats["authorizations"] == []  # no call online
    assert counts["calls"] == 5
    cost = (stats["tokens_in"] + 4 * stats["tokens_out"]) / 1e6
    assert counts["cost"] == pytest.approx(cost / 2)
    assert not [name for name in counts if name.startswith("latency")]


def test_a_run_can_wait_for_the_server(
    client: ModelClient, server: RunningServer, root: Path, monkeypatch: pytest.MonkeyPatch
):
    server.reset(batches="in_progress")
    pauses: list[float] = []

    async def finish(seconds: float) -> None:
        pauses.append(seconds)
        server.finish()

    monkeypatch.setattr(asyncio, "sleep", finish)

    found = Two(model="rule", delivery="batch", wait="step")(records(2))

    votes = [f"echo: then echo first {number}" for number in range(2)]
    assert [row["votes"] for row in found] == [[vote, vote] for vote in votes]
    assert pauses == [1.0, 5.0]  # a batch of the first calls, and one of those that follow
    assert server.stats()["batches"] == 2


def test_batches_are_made_of_an_input_in_parts(
    client: ModelClient, server: RunningServer, tmp_path: Path
):
    server.reset(batches="in_progress")
    echo, parts = Echo(model="rule", delivery="batch"), tmp_path / "parts"
    parts.mkdir()
    for number, row in enumerate(records(3)):
        (parts / f"docs-{number:05d}.jsonl").write_text(json.dumps(row) + "\n")

    with pytest.raises(RunWaitingError, match="requests without a reply: 3"):
        echo(parts)
    server.finish()

    assert [row["answer"] for row in echo(parts)] == [f"echo: say {n}" for n in range(3)]


@pytest.mark.slow
def test_a_run_that_waits_ends_when_it_is_stopped_and_a_later_one_collects(
    server: RunningServer, tmp_path: Path
):
    server.reset(batches="in_progress")
    script = SCRIPT.replace('delivery="batch"', 'delivery="batch", wait="step"')

    def start() -> StartedProcess:
        return started_script(script, tmp_path, server.address, str(tmp_path))

    with killed_at_exit(start()) as process:
        wait_until(lambda: server.stats()["batches"] >= 3, 60, "the batches")
        process.send_signal(signal.SIGINT)
        assert process.wait(HANG_SECONDS) != 0

    server.finish()
    assert start().wait() == 0
    assert server.stats()["batches"] == 3


def test_delivery_is_no_part_of_the_identity(client: ModelClient, server: RunningServer):
    rows = Echo(model="rule")(records())

    assert Echo(model="rule", delivery="batch")(records()) == rows
    assert server.stats()["batches"] == 0


def test_further_calls_of_a_record_are_further_batches(
    client: ModelClient, server: RunningServer, root: Path
):
    two = Two(model="rule", delivery="batch")

    waiting(two, records())
    waiting(two, records())
    rows = two(records())

    assert rows[1]["votes"] == ["echo: then echo first 1"] * 2
    assert (server.stats()["batches"], manifest_in(root)["counts"]["calls"]) == (2, 15)


def test_requests_that_fail_are_errors_of_their_records_and_passing_faults_are_sent_again(
    client: ModelClient, server: RunningServer, root: Path
):
    given = [
        {"n": "fine"},
        {"n": "[[fault:400]]"},
        {"n": "[[fault:500*1]]"},
        {"n": "[[fault:500]]"},
    ]
    echo = Echo(model="rule", delivery="batch")

    for _ in range(3):
        waiting(echo, given)
    rows = echo(given)

    assert [row["n"] for row in rows] == ["fine", "[[fault:500*1]]"]
    (path,) = root.rglob("*_error.jsonl")
    kinds = [json.loads(line)["exception"] for line in path.read_text().splitlines()]
    assert kinds == ["BadRequestError", "ServerFaultError"]
    assert server.stats()["batches"] == 3


def test_fields_that_the_server_does_not_know_are_replaced(
    client: ModelClient, server: RunningServer
):
    given = [{"n": f"{n} [[no:max_tokens]]"} for n in range(3)]
    echo = Echo(model="rule", delivery="batch", max_tokens=5)

    waiting(echo, given)
    waiting(echo, given)

    assert len(echo(given)) == 3


def test_an_expired_batch_gives_what_it_has_and_the_rest_is_submitted_again(
    client: ModelClient, server: RunningServer
):
    server.reset(batches="expired")
    echo = Echo(model="rule", delivery="batch")

    for _ in range(3):  # of 4, 2 and 1 requests
        waiting(echo, records(4))

    assert [row["n"] for row in echo(records(4))] == [0, 1, 2, 3]
    assert server.stats()["answered"] == 4


def test_a_refused_batch_stops_the_run_with_its_reason(client: ModelClient, server: RunningServer):
    server.reset(batches="failed")
    echo = Echo(model="rule", delivery="batch")
    waiting(echo, records())

    with pytest.raises(RunStoppedError, match="the file is no good"):
        echo(records())

    server.reset()
    waiting(echo, records())
    assert len(echo(records())) == 5


def test_a_prompt_that_changes_in_each_run_is_named(
    client: ModelClient, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("dagster_dataops.models.batches.batch_delivery._MOST_ROUNDS", 2)
    for number in range(2):
        waiting(Echo(model="rule", delivery="batch", prompt=f"{number} {{{{ n }}}}"), records())

    with pytest.raises(RunStoppedError, match="must be the same in each run"):
        Echo(model="rule", delivery="batch", prompt="new {{ n }}")(records())


def test_a_client_that_is_an_object_is_called_online(client: ModelClient):
    echo = Echo(model="rule", delivery="batch", client=lambda prompt: prompt.upper())

    assert echo(records(1))[0]["answer"] == "SAY 0"


def test_batches_need_a_node_of_their_own(client: ModelClient):
    with pytest.raises(Exception, match="leave out _concurrency_mode"):
        Echo(model="rule", delivery="batch", _concurrency_mode="single")(records())


def held(server: RunningServer) -> bool:
    """Whether the server waits at the point of a test."""
    return bool(server.stats()["held"])


def run(server: RunningServer, root: Path) -> StartedProcess:
    return started_script(SCRIPT, root, server.address, str(root))


@pytest.mark.slow
@pytest.mark.parametrize("point", ["file", "uploaded", "batch", "submitted", "status", "content"])
def test_a_kill_at_any_point_submits_no_batch_twice(
    tmp_path: Path, server: RunningServer, point: str
):
    server.reset(hold=point)
    for _ in range(2):  # the first submits, the second collects
        with killed_at_exit(run(server, tmp_path)) as process:
            wait_until(lambda: held(server) or process.poll() is not None, 60, "the point")
        if held(server):
            server.release()
            break
    codes = [run(server, tmp_path).wait()]
    while codes[-1] == 3 and len(codes) < 6:
        codes.append(run(server, tmp_path).wait())

    stats = server.stats()
    assert codes[-1] == 0
    (result,) = tmp_path.rglob("Echo_results.jsonl")
    assert [json.loads(line)["n"] for line in result.read_text().splitlines()] == list(
        range(RECORDS)
    )
    assert (stats["answered"], stats["distinct"]) == (RECORDS, RECORDS)
    assert stats["batches"] == 3
    assert len(list(load_replies(tmp_path / "Echo"))) == RECORDS
    (manifest,) = tmp_path.rglob("Echo_results.jsonl.json")
    counts = json.loads(manifest.read_bytes())["counts"]
    assert (counts["calls"], counts["tokens_in"]) == (RECORDS, stats["tokens_in"])


def error_rows(root: Path) -> dict[str, dict[str, Any]]:
    (path,) = root.rglob("*_error.jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {row["input"]["n"]: row for row in rows}


@pytest.mark.slow
def test_a_reply_of_a_batch_counts_only_if_it_is_an_answer(
    client: ModelClient, server: RunningServer, root: Path
):
    names = ("fine", "[[fault:aborted]]", "[[fault:blank]]", "[[fault:error200*1]]")
    given = [{"n": name} for name in names]
    echo = Echo(model="rule", delivery="batch", wait="step", _stop_after_failures=0)

    rows = echo(given)

    assert [row["n"] for row in rows] == ["fine", "[[fault:error200*1]]"]
    errors = error_rows(root)
    assert errors["[[fault:aborted]]"]["exception"] == "UnfinishedReplyError"
    assert "'abort'" in errors["[[fault:aborted]]"]["message"]
    assert errors["[[fault:blank]]"]["exception"] == "EmptyReplyError"
    stats = server.stats()
    assert stats["batches"] == 2  # only what passes is sent again
    (path,) = root.rglob("replies.jsonl")
    assert (
        len([line for line in path.read_text().splitlines() if line.startswith('{"spent":')]) == 1
    )
    counts = manifest_in(root)["counts"]
    assert (counts["tokens_in"], counts["tokens_out"]) == (stats["tokens_in"], stats["tokens_out"])


@pytest.mark.slow
def test_no_further_batch_is_submitted_once_max_cost_is_spent(
    client: ModelClient, server: RunningServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(config.clients, "default", replace(client, max_cost=1e-9))
    two = Two(model="rule", delivery="batch", wait="step")

    with pytest.raises(RunStoppedError, match="max_cost"):
        two(records())
    assert server.stats()["batches"] == 1


@pytest.mark.slow
def test_batches_follow_redirects_with_their_files(root: Path, monkeypatch: pytest.MonkeyPatch):
    with odd_server() as server:
        paths: list[tuple[str, str, bool]] = []

        def answer(sent: Sent) -> Any:
            paths.append((sent.method, sent.path, "authorization" in sent.headers))
            if sent.path.startswith("/v1"):
                return Answer(b"", 307, (("location", sent.path.replace("/v1", "/v2", 1)),))
            if sent.path.endswith("/content"):
                key = re.search(rb'"custom_id":"([^"]+)"', uploads[-1])
                assert key is not None
                body = {"status_code": 200, "body": chat_reply("Paris")}
                return {"custom_id": key[1].decode(), "response": body}
            return {"id": "b", "status": "completed", "output_file_id": "f", "data": []}

        uploads = server.uploads
        server.answer = answer
        monkeypatch.setitem(
            config.clients, "default", ModelClient(base_url=server.address, api_key="k")
        )

        (row,) = Echo(model="m", delivery="batch", wait="step")([{"n": 1}])

    assert row["answer"] == "Paris"
    assert len(uploads[-1]) == len(uploads[-2]) > 100
    assert all(authorized for *_, authorized in paths)
    assert ("POST", "/v2/files", True) in paths


def test_batches_of_another_address_are_named_and_not_asked_for(
    client: ModelClient, server: RunningServer, root: Path
):
    server.reset(batches="in_progress")
    waiting(Echo(model="rule", delivery="batch"), records())
    (path,) = root.rglob("state.json")
    path.write_text(path.read_text().replace(server.address, "http://elsewhere/v1"))

    with pytest.raises(RunStoppedError, match="waits at http://elsewhere/v1"):
        Echo(model="rule", delivery="batch")(records())
    assert server.stats()["batches"] == 1


def test_batches_of_version_0_2_which_name_no_address_are_collected(
    client: ModelClient, server: RunningServer, root: Path
):
    server.reset(batches="in_progress")
    echo = Echo(model="rule", delivery="batch")
    waiting(echo, records())
    (path,) = root.rglob("state.json")
    state = json.loads(path.read_bytes())
    for part in state["parts"].values():
        del part["address"]
    path.write_text(json.dumps(state))
    server.finish()

    assert len(echo(records())) == 5
    assert server.stats()["batches"] == 1
