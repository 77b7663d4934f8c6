"""Runs of model operators that are killed or stopped: no call is paid twice, counts are exact."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import load_replies
from tests.each import slow_but
from tests.faults.crashing import HANG_SECONDS, wait_until
from tests.faults.warm_starts import StartedProcess
from tests.models.running_server import RunningServer, started_script
from tests.subprocesses import killed_at_exit

CALLS = 4
RECORDS = 60
SCRIPT = f"""
import sys
from dagster_dataops import LLMOperator, ModelClient, Price, config, data_register

@data_register("data.killed")
class Steps(LLMOperator):
    async def forward(self, record: dict):
        texts = []
        for step in range({CALLS}):
            texts.append((await self.ask(f"{{record['n']}} step {{step}} of {{texts[-1:]}}")).text)
        return record | {{"texts": texts}}

config.data_process_path, config.data_process_resume = sys.argv[2], True
config.clients["default"] = ModelClient(base_url=sys.argv[1], prices={{"rule": Price(1.0, 4.0)}})
Steps(model="rule", _max_workers=20, _concurrency_mode=sys.argv[3])(
    [{{"n": n}} for n in range({RECORDS})]
)
"""


def started(server: RunningServer, root: Path, mode: str) -> StartedProcess:
    return started_script(SCRIPT, root, server.address, str(root), mode)


def wait_for_answers(server: RunningServer, number: int) -> None:
    wait_until(lambda: server.stats()["answered"] >= number, 60, f"{number} answers")


def counts_of(root: Path) -> dict[str, Any]:
    (manifest,) = root.rglob("Steps_results.jsonl.json")
    return dict(json.loads(manifest.read_bytes())["counts"])


def stored_in(root: Path) -> dict[str, int]:
    """Return the sums of the replies that were read, whichever run read them."""
    (path,) = root.rglob("replies.jsonl")
    usages = [stored.reply["usage"] for stored in load_replies(path.parent.parent)]
    return {
        "calls": len(usages),
        "tokens_in": sum(usage["prompt_tokens"] for usage in usages),
        "tokens_out": sum(usage["completion_tokens"] for usage in usages),
    }


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["async", "process"])
def test_kills_cost_the_calls_in_flight_alone_and_the_cost_is_exact(
    tmp_path: Path, server: RunningServer, mode: str
):
    server.reset(latency=0.05)
    kills = 3
    for number in range(1, kills + 1):
        with killed_at_exit(started(server, tmp_path, mode)):
            wait_for_answers(server, 45 * number)
        wait_until(lambda: server.stats()["in_flight"] == 0, 60, "the end of calls in flight")

    assert started(server, tmp_path, mode).wait() == 0

    stats, counts, stored = server.stats(), counts_of(tmp_path), stored_in(tmp_path)
    assert stats["distinct"] == CALLS * RECORDS
    assert stats["answered"] - stats["distinct"] <= 20 * kills
    assert stored["calls"] == CALLS * RECORDS
    assert {name: counts[name] for name in stored} == stored
    cost = (stored["tokens_in"] + 4 * stored["tokens_out"]) / 1e6
    assert counts["cost"] == pytest.approx(cost, rel=1e-9)


@pytest.mark.parametrize("mode", slow_but("async", ["async", "thread", "process"]))
def test_a_polite_stop_wastes_no_call(tmp_path: Path, server: RunningServer, mode: str):
    server.reset(latency=0.3 if mode == "process" else 0.05)
    with killed_at_exit(started(server, tmp_path, mode)) as process:
        wait_for_answers(server, 60)
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(HANG_SECONDS) != 0

    assert started(server, tmp_path, mode).wait() == 0

    stats, counts = server.stats(), counts_of(tmp_path)
    assert stats["answered"] == stats["distinct"] == CALLS * RECORDS
    assert counts["calls"] == CALLS * RECORDS
    assert (counts["tokens_in"], counts["tokens_out"]) == (stats["tokens_in"], stats["tokens_out"])
