"""Records per second in process mode, against the hand-written limit and, if asked, LazyLLM.

>>> python benchmarks/throughput.py [--rounds 7] [--workers 2] [--lazyllm PYTHON]
"""

import argparse
import filecmp
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ideal
import operators
import orjson

from dagster_dataops import config, data, data_register, pipeline

HERE = Path(__file__).parent
WORDS = "the quick brown fox jumps over a lazy dog while 12 of 345 readers visit https://a.example"

for function in (operators.upper, operators.clean):
    data_register("data.benchmark", _concurrency_mode="process")(function)


def write_corpus(path: Path, rows: int, characters: int) -> Path:
    """Write ``rows`` records with a text of about ``characters`` characters."""
    text = (WORDS + " ") * (characters // len(WORDS) + 1)
    with path.open("wb") as file:
        for number in range(rows):
            record = {"id": number, "text": f"{number} {text[number % 7 : characters]}"}
            file.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))
    return path


def ours(name: str, source: Path, workers: int, **settings: Any) -> Callable[[], Path]:
    """Return a run of our executor, checkpointed and published."""
    with pipeline(f"benchmark_{name}") as ppl:
        ppl.node = getattr(data.benchmark, name)(_max_workers=workers, **settings)
    return lambda: ppl.materialize(source)["node"].dataset.path


def by_hand(name: str, source: Path, out: Path, workers: int) -> Callable[[], Path]:
    """Return a run of the hand-written script."""

    def run() -> Path:
        ideal.run(source, out, getattr(operators, name), workers)
        return out

    return run


def alternately(contenders: dict[str, Callable[[], Path]], rounds: int) -> dict[str, list[float]]:
    """Run the contenders in turn; return their seconds."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds + 1):
        for name, run in contenders.items():
            began = time.perf_counter()
            run()
            if number:  # the first round warms up
                seconds[name].append(time.perf_counter() - began)
    return seconds


def lazyllm_rate(python: str, source: Path, name: str, workers: int) -> float:
    """Return LazyLLM's records per second in its default mode, on the rows of ``source``."""
    command = [python, str(HERE / "peer_lazyllm.py"), str(source), name, str(workers)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = json.loads(output.splitlines()[-1])
    return found["rows"] / found["seconds"]


def measure(arguments: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    """Run every workload and return a row for each."""
    workloads = [("upper", 100_000, 40), ("upper", 100_000, 540), ("clean", 2_000, 8_000)]
    rows = []
    for name, count, characters in workloads:
        source = write_corpus(folder / "source.jsonl", count, characters)
        out = folder / "ideal.jsonl"
        contenders = {
            "ours": ours(name, source, arguments.workers),
            "single": ours(name, source, 1, _concurrency_mode="single"),
            "ideal": by_hand(name, source, out, arguments.workers),
            "ideal, 1 process": by_hand(name, source, folder / "ideal1.jsonl", 1),
        }
        seconds = alternately(contenders, arguments.rounds)
        assert filecmp.cmp(contenders["ours"](), out, shallow=False), "the outputs differ"
        median = {key: statistics.median(values) for key, values in seconds.items()}
        row = {
            "workload": f"{name}, {count:,} x {characters} chars",
            "records_per_second": count / median["ours"],
            "of_ideal": median["ideal"] / median["ours"],
            "single_of_ideal_1": median["ideal, 1 process"] / median["single"],
            "against_single": median["single"] / median["ours"],
            "seconds": seconds,
        }
        if arguments.lazyllm:
            fewer = write_corpus(folder / "fewer.jsonl", arguments.lazyllm_rows, characters)
            peer = lazyllm_rate(arguments.lazyllm, fewer, name, arguments.workers)
            row["lazyllm_records_per_second"] = peer
            row["against_lazyllm"] = row["records_per_second"] / peer
        rows.append(row)
    return rows


def main() -> None:
    """Measure, print the table, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--lazyllm", default="", help="a Python that has LazyLLM")
    parser.add_argument("--lazyllm-rows", type=int, default=5_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        config.data_process_path = f"{folder}/results"
        rows = measure(arguments, Path(folder))
    numbers = [key for key in rows[0] if key not in {"workload", "seconds"}]
    print(f"load {os.getloadavg()[0]:.1f}, medians of {arguments.rounds} alternating rounds")
    print(" | ".join(["workload".ljust(32), *numbers]))
    for row in rows:
        cells = [f"{row[key]:,.2f}".rjust(len(key)) for key in numbers]
        print(" | ".join([row["workload"].ljust(32), *cells]))
    results = HERE / "results"
    results.mkdir(exist_ok=True)
    (results / "throughput.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    main()
