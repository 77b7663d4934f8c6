"""The victim of stream campaigns: one attempt to write a stream of two files as a result.

The stages are shuffle, shard and weighted sample, then a slow map that records its calls, then a
filter.
"""

import sys
import time
from functools import partial
from pathlib import Path
from typing import Any, Final

from dagster_dataops import DataPipeline, read_jsonl
from tests.faults import moments
from tests.faults.calls import note
from tests.nodes import NodeFolder, OperatorExecutor, ResumePolicy, RunContext, given_stream

BAD_EVERY: Final = 97
KINDS: Final = ("plain", "threads", "processes", "quarantine", "bucketed")


def work(item: dict[str, Any], seconds: float, *, failing: bool) -> dict[str, Any]:
    if seconds:
        time.sleep(seconds)
        note(item["n"])
    if failing and item["n"] % BAD_EVERY == 5:
        msg = f"bad {item['n']}"
        raise ValueError(msg)
    return {"n": item["n"], "text": item["text"][::-1]}


def kept(item: dict[str, Any]) -> bool:
    return item["n"] % 7 != 3


def together(items: list[dict[str, Any]]) -> dict[str, Any]:
    return {"items": items}


def make(home: Path, kind: str, seconds: float) -> DataPipeline:
    """Return the stream, whose items do not depend on the delays; without one, no call is noted."""
    first = read_jsonl(home / "first.jsonl").shuffle(50, seed=1).shard(1, 2)
    second = read_jsonl(home / "second.jsonl").shuffle(0, seed=2)
    mixed = DataPipeline.sample(first, second, weights=[0.7, 0.3], seed=3, allow_repeats=False)
    function = partial(work, seconds=seconds, failing=kind == "quarantine")
    mode: Any = {"threads": "thread", "processes": "process"}.get(kind)
    mapped = mixed.map(function, num_parallel_calls=3 if mode and seconds else 1, mode=mode)
    stream = mapped.filter(kept)
    if kind == "bucketed":
        stream = stream.bucket(13).map(together)
    if kind == "quarantine":
        return stream.and_return(on_error="quarantine")
    return stream.and_return()


def main(folder: str, kind: str, seconds: str, flush: str, *runs: str) -> None:
    home = Path(folder)
    moments.arm()
    context = RunContext(
        run=runs[0],
        resume=ResumePolicy.AUTO,
        lock_seconds=10,
        flush_seconds=float(flush),
        earlier_runs=frozenset(runs[1:]),
    )
    operator = given_stream("mixed", partial(make, home, kind, float(seconds)))
    report = OperatorExecutor(context).run(operator, [], NodeFolder(home / "node", "node"))
    sys.stdout.write("".join(f"{runs[0]}: {note}\n" for note in report.notes))


if __name__ == "__main__":
    from tests.faults import stream_victim  # by its name: workers import the functions

    stream_victim.main(*sys.argv[1:])
