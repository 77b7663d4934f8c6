"""The cost of an object store: the same run with its results on S3, and on the local disk."""

import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

from benchmarks import corpus
from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.measuring import Run, median, ours, ratio
from tests.object_stores import SECRETS, s3_server

_FIXED_REQUESTS = 30
_REQUESTS_A_SECOND = 4
_BYTES_A_REQUEST = 4 << 20


def measure(bench: Bench) -> Iterator[Figure]:
    """Yield the share of the local speed, and the requests, on W1 and on W2."""
    rows, megabytes = bench.size(500_000, 100_000), bench.size(60, 10)
    trivial = bench.source(f"texts{rows}", corpus.texts(rows))
    computing = bench.source(f"documents{megabytes}", corpus.documents(megabytes))
    with s3_server() as address:
        yield from against_disk(bench, address, "trivial", trivial, "upper", 0.6)
        yield from against_disk(bench, address, "computing", computing, "clean", 0.95)


def against_disk(
    bench: Bench, address: str, kind: str, source: Path, name: str, goal: float
) -> Iterator[Figure]:
    """Yield the share of the local speed of one operator, and its requests.

    The server is a Python program on the same cores, which takes about 100 MB a second. So a second
    share compares with a local run whose result is then sent by one request, without checkpoints.
    """
    node = (name, {"_concurrency_mode": "process", "_max_workers": bench.workers})
    options = {key.lower().removeprefix("aws_"): value for key, value in SECRETS.items()}
    store = {"url": f"s3://results/{uuid4().hex}", "options": {**options, "endpoint": address}}
    contenders = {
        "disk": ours(source, node),
        "upload": ours(source, node, upload=store),
        "store": ours(source, node, store=store),
    }
    runs = bench.in_turn(contenders)
    yield Figure(
        workload="store",
        name=f"{kind}, S3 against disk",
        value=ratio(runs["disk"], runs["store"]),
        unit="of the local speed",
        least=goal,
        note=f"CPU {ratio(runs['store'], runs['disk'], _cpu):.2f} of local, on {os.cpu_count()} "
        "cores that the server shares",
        runs=runs,
    )
    yield Figure(
        workload="store",
        name=f"{kind}, S3 against disk and a plain upload",
        value=ratio(runs["upload"], runs["store"]),
        unit="of their speed",
        note=f"CPU {ratio(runs['store'], runs['upload'], _cpu):.2f} of theirs",
    )
    yield Figure(
        workload="store",
        name=f"{kind}, requests of a result",
        value=max(one.facts["requests"] / _allowed(one) for one in runs["store"]),
        unit="of those allowed",
        most=1.0,
        note=f"{median(runs['store'], _requests):g} requests",
    )


def _allowed(run: Run) -> float:
    """Return how many requests a run may make: every result is sent as checkpoint and as result."""
    sent = 2 * run.facts["size_bytes"]
    return _FIXED_REQUESTS + _REQUESTS_A_SECOND * run.seconds + sent / _BYTES_A_REQUEST


def _requests(run: Run) -> float:
    return float(run.facts["requests"])


def _cpu(run: Run) -> float:
    return run.cpu_seconds
