"""The runs and streams of the frozen folders; see `freeze.py`.

``FINISHED`` and ``UNFINISHED`` map the name of a case to a function that makes its operator or
pipeline. Every version from 0.2.0 on makes them.
"""

from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import frozen_operators  # noqa: F401 - registers the operators

from dagster_dataops import (
    DataPipelineBuilder,
    ModelClient,
    Price,
    chain,
    config,
    data,
    pipeline,
    read_jsonl,
    read_sequence,
)

DIES = 24
ONE = {"_concurrency_mode": "single"}
RECORDS = [{"n": n, "text": f"word{n % 7} x{n}"} for n in range(40)]
frozen = data.frozen


def client(address: str, **options: Any) -> None:
    """Set the server of models; later versions give it a name, whatever its port."""
    named = {"deployment": "frozen"} if "deployment" in signature(ModelClient).parameters else {}
    named |= options
    config.clients["default"] = ModelClient(
        base_url=address, prices={"rule": Price(1.0, 4.0)}, **named
    )


def _piped(name: str, **nodes: Callable[[], Any]) -> Any:
    with pipeline(name) as made:
        for node, make in nodes.items():
            setattr(made, node, make())
    return made


def single_node(name: str, operator: Any) -> Any:
    """Return a pipeline of one node, so that each case has a folder of its own."""
    return _piped(name, node=lambda: operator)


def asks(name: str, address: str, die_at: int = -1, delivery: str = "online", **more: Any) -> Any:
    client(address, **more)
    options = {"delivery": delivery, "die_at": die_at}
    return single_node(name, frozen.Asks(model="rule", _max_workers=2, **options))


def exported(name: str) -> Any:
    operator = frozen.Double(**ONE)
    operator.set_output(str(Path("table.csv").absolute()))
    return single_node(name, operator)


FINISHED: dict[str, Callable[[str], Any]] = {
    "single": lambda _: single_node("single", frozen.double(tag="a", **ONE)),
    "thread": lambda _: single_node("thread", frozen.double(_concurrency_mode="thread")),
    "async": lambda _: single_node("async", frozen.double_async()),
    "process": lambda _: single_node("process", frozen.double(tag="p", _max_workers=2)),
    "counts": lambda _: single_node("counts", frozen.expand(**ONE)),
    "outputs": lambda _: single_node("outputs", frozen.route(**ONE)),
    "parts": lambda _: single_node("parts", frozen.double(_part_records=10, **ONE)),
    "reuse": lambda _: single_node("reuse", frozen.Double(_reuse_outcomes=True, **ONE)),
    "batch": lambda _: single_node("batch", frozen.Batched(_batch_size=4, **ONE)),
    "dataset": lambda _: single_node("dataset", frozen.backwards()),
    "selection": lambda _: single_node("selection", frozen.Smallest(**ONE)),
    "stream": lambda _: single_node("stream", frozen.Streamed()),
    "artefact": lambda _: single_node("artefact", frozen.Words()),
    "mapped": lambda _: single_node(
        "mapped", frozen.Mapped({"n": "number", "text": "words"}, **ONE)
    ),
    "chain": lambda _: single_node("chain", chain(frozen.expand(), frozen.Double(factor=3))),
    "library": lambda _: single_node("library", data.dedup.Exact()),
    "index": lambda _: single_node("index", data.dedup.Index()),
    "near": lambda _: single_node("near", data.dedup.Index(by="near")),
    "urls": lambda _: single_node("urls", data.dedup.Index(by="url", input_key="text")),
    "table": lambda _: single_node("table", data.join.Table(on="n")),
    "export": lambda _: exported("export"),
    "asks": lambda address: asks("asks", address),
}
UNFINISHED: dict[str, Callable[[str, int], Any]] = {
    "killed_single": lambda _, at: single_node("killed_single", frozen.double(die_at=at, **ONE)),
    "killed_thread": lambda _, at: single_node(
        "killed_thread", frozen.double(die_at=at, _concurrency_mode="thread", _max_workers=2)
    ),
    "killed_async": lambda _, at: single_node("killed_async", frozen.double_async(die_at=at)),
    "killed_process": lambda _, at: single_node(
        "killed_process", frozen.double(die_at=at, _max_workers=2)
    ),
    "killed_counts": lambda _, at: single_node("killed_counts", frozen.expand(die_at=at, **ONE)),
    "killed_outputs": lambda _, at: single_node("killed_outputs", frozen.route(die_at=at, **ONE)),
    "killed_reuse": lambda _, at: single_node(
        "killed_reuse", frozen.Double(die_at=at, _reuse_outcomes=True, **ONE)
    ),
    "killed_batch": lambda _, at: single_node(
        "killed_batch", frozen.Batched(die_at=at, _batch_size=4, **ONE)
    ),
    "killed_stream": lambda _, at: single_node("killed_stream", frozen.Streamed(die_at=at)),
    "killed_mapped": lambda _, at: single_node(
        "killed_mapped", frozen.Mapped({"n": "number", "text": "words"}, die_at=at, **ONE)
    ),
    "killed_chain": lambda _, at: single_node(
        "killed_chain", chain(frozen.expand(), frozen.Double(die_at=at), **ONE)
    ),
    "killed_sealed": lambda _, at: single_node(
        "killed_sealed", frozen.Sealed(encryption_key="first key", die_at=at, **ONE)
    ),
    "killed_library": lambda _, at: single_node(
        "killed_library",
        chain(frozen.Double(die_at=at), data.filters.Regex(r"x\d*7"), **ONE),
    ),
    "killed_asks": lambda address, at: asks("killed_asks", address, at),
    "killed_batches": lambda address, _: asks("killed_batches", address, delivery="batch"),
    "killed_publishing": lambda _, at: single_node("killed_publishing", frozen.double(**ONE)),
}

STORED = ("single", "outputs", "artefact")  # these are written to an object store, too
STORED_UNFINISHED = ("killed_single", "killed_outputs", "killed_stream")


def _numbers() -> DataPipelineBuilder:
    return read_sequence(list(range(60)))


def _square(number: int) -> int:
    return number * number


WORDS = {1: "one", 2: "two"}  # version 0.2 compared such constants by other rules


def _worded(number: int) -> str:
    return WORDS.get(number, "many")


def _is_odd(number: int) -> bool:
    return number % 2 == 1


STREAMS: dict[str, Callable[[], DataPipelineBuilder]] = {
    "map": lambda: _numbers().map(_square),
    "parallel": lambda: _numbers().map(_square, num_parallel_calls=2),
    "filter": lambda: _numbers().filter(_is_odd),
    "shuffle": lambda: _numbers().shuffle(16),
    "bucket": lambda: _numbers().bucket(4, drop_remainder=False),
    "repeat": lambda: _numbers().repeat(2),
    "take": lambda: _numbers().skip(3).take(30),
    "prefetch": lambda: _numbers().map(_square).prefetch(4),
    "shard": lambda: _numbers().shard(1, 2, allow_uneven=True),
    "yield_from": lambda: _numbers().yield_from(lambda n: read_sequence([n, -n]).and_return()),
    "jsonl": lambda: read_jsonl("input.jsonl"),
    "words": lambda: _numbers().map(_worded),
}
