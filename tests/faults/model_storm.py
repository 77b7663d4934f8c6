"""Ask a model about many records while its server fails in every way; check each record.

    python -m tests.faults.model_storm --records 20000

Of the requests 3 % get a 500, 1 % a malformed reply, 0.2 % a broken connection, 1 % an error that
no further try can mend, and 0.5 % a refusal. All requests of a fifth of each two seconds get a 429.
The server is killed after a third of the records, and another one takes its place. Each record must
be in the result, in order, with the right answer, or in the error file with the class of its error.
"""

import argparse
import json
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel

from dagster_dataops import LLMOperator, ModelClient, config, data_register
from tests.models.running_server import running_server

LATENCY = 0.05
IN_FLIGHT = 200
RATES = "toolong=0.01,refusal=0.005,500=0.03,malformed=0.01,reset=0.002"
CLASSES = {"ContextTooLongError": 0.01, "RefusedError": 0.005}
ASKED_AGAIN = "That is not valid"  # begins the message after a malformed reply


class Answer(BaseModel):
    """An answer."""

    words: str


class Ask(LLMOperator):
    """Asks for words."""

    prompt = "{{ text }}"
    response_format = Answer


@dataclass(frozen=True)
class Storm:
    """What became of the records.

    Attributes:
        records: Number of records.
        seconds: Duration of the run.
        mended: Number of records whose malformed reply was asked for again.
        failed: Number of failed records by class of the error.
        faults: What was wrong; empty if nothing was.
    """

    records: int
    seconds: float
    mended: int
    failed: dict[str, int]
    faults: list[str]

    @property
    def ideal(self) -> float:
        """Seconds of as many calls without any fault or overhead."""
        return self.records * LATENCY / IN_FLIGHT


def storm(operator: Any, count: int, root: Path) -> Storm:
    """Ask about records while the server fails, and return what became of them.

    Args:
        operator: The registered class `Ask`.
        count: Number of records.
        root: The root of the results, which is empty.
    """
    options = ("--latency", str(LATENCY), "--rates", RATES, "--bursts", "0.2")
    rows: list[dict[str, Any]] = []
    seconds = []

    def run(address: str) -> None:
        begun = time.monotonic()
        client = ModelClient(base_url=address, max_in_flight=IN_FLIGHT)
        records = [{"text": f"question number {number}"} for number in range(count)]
        rows.extend(operator(model="rule", client=client, _max_workers=IN_FLIGHT)(records))
        seconds.append(time.monotonic() - begun)

    with running_server(*options) as first:
        port = str(urlsplit(first.address).port)
        runner = threading.Thread(target=run, args=(first.address,))
        runner.start()
        while runner.is_alive() and first.stats()["answered"] < count / 3:
            time.sleep(0.02)
        first.kill()
    with running_server(*options, "--port", port):
        runner.join()
    return _judged(count, rows, _errors_in(root), seconds[0])


def _errors_in(root: Path) -> list[dict[str, Any]]:
    lines = [line for path in root.rglob("*_error.jsonl") for line in path.read_text().splitlines()]
    return [json.loads(line) for line in lines]


def _judged(
    count: int, rows: list[dict[str, Any]], errors: list[dict[str, Any]], seconds: float
) -> Storm:
    classes = Counter(error["exception"] for error in errors)
    failed = {error["input"]["text"] for error in errors}
    wanted = [f"question number {number}" for number in range(count)]
    faults = []
    if [row["text"] for row in rows] != [text for text in wanted if text not in failed]:
        faults.append("the result has not all other records in order")
    if len(failed) != len(errors):
        faults.append("a record is in the error file twice")
    answers = [(row["text"], row["answer"]["words"]) for row in rows]
    mended = sum(words.startswith(ASKED_AGAIN) for _, words in answers)
    wrong = [text for text, words in answers if words != text and not words.startswith(ASKED_AGAIN)]
    if wrong:
        faults.append(f"{len(wrong)} answers are those of other records, such as {wrong[0]}")
    if set(classes) != set(CLASSES):
        faults.append(f"the error file has {dict(classes)}")
    for name, share in {**CLASSES, "malformed": 0.01}.items():
        number = mended if name == "malformed" else classes[name]
        if not 0.5 < number / (share * count) < 2:
            faults.append(f"{number} times {name}, and about {share * count:.0f} were expected")
    return Storm(count, seconds, mended, dict(classes), faults)


def main() -> int:
    """Run the storm; return 1 if a record is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=20_000)
    given = parser.parse_args()
    operator = data_register("data.storms")(Ask)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        with config.temporary(data_process_path=root):
            found = storm(operator, given.records, root)
    sys.stdout.write(
        f"{found.records:,} records in {found.seconds:.1f} s, {found.seconds / found.ideal:.1f} "
        f"times the ideal; failed: {found.failed}; asked again: {found.mended}\n"
    )
    sys.stdout.writelines(f"{fault}\n" for fault in found.faults)
    return min(1, len(found.faults))


if __name__ == "__main__":
    sys.exit(main())
