"""A long run against a server that fails, limits the rate, breaks connections and restarts."""

import json
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pydantic import BaseModel

from dagster_dataops import LLMOperator, ModelClient
from dagster_dataops.operators.registry import OperatorRegistry
from tests.models.running_server import running_server

RECORDS = 2000
RATES = "toolong=0.01,500=0.03,malformed=0.01,429ms=0.02,reset=0.002"


class Answer(BaseModel):
    """An answer."""

    words: str


class Ask(LLMOperator):
    """Asks for words."""

    prompt = "{{ text }}"
    response_format = Answer


@pytest.mark.slow
def test_every_record_is_right_or_in_the_error_file_by_class(
    registry: OperatorRegistry, root: Path
):
    options = ("--latency", "0.05", "--rates", RATES)
    rows: list[dict[str, Any]] = []

    def run(address: str) -> None:
        operator: Any = registry("data.storms")(Ask)
        client = ModelClient(base_url=address)
        records = [{"text": f"question number {n}"} for n in range(RECORDS)]
        rows.extend(operator(model="rule", client=client)(records))

    with running_server(*options) as first:
        port = str(urlsplit(first.address).port)
        runner = threading.Thread(target=run, args=(first.address,))
        runner.start()
        while first.stats()["answered"] < RECORDS / 3:
            time.sleep(0.02)
        first.kill()
    with running_server(*options, "--port", port):
        runner.join()

    (path,) = root.rglob("*_error.jsonl")
    errors = [json.loads(line) for line in path.read_text().splitlines()]
    assert {error["exception"] for error in errors} == {"ContextTooLongError"}
    assert RECORDS * 0.005 < len(errors) < RECORDS * 0.02
    failed = {error["input"]["text"] for error in errors}
    wanted = [f"question number {n}" for n in range(RECORDS)]
    assert [row["text"] for row in rows] == [text for text in wanted if text not in failed]
    # The few others were asked again, with their wrong reply.
    right = [row for row in rows if row["answer"]["words"].startswith(row["text"])]
    assert len(right) >= 0.97 * len(rows)
