r"""Shards as partitions that the workers of Celery process side by side.

    pip install dagster-dataops dagster-celery redis
    export DAGSTER_HOME=$PWD/home BROKER=redis://localhost:6379/0
    celery -A dagster_celery.app -b $BROKER --result-backend $BROKER worker -Q dagster -c 1 \
        --disable-prefetch
    dagster job execute -f definitions.py -j shards_pipeline --tags '{"dagster/partition": "s0"}'

Start a worker on each machine; without prefetching, no worker takes a partition while another
one has nothing to do. All machines see the folder of this file, and the instance at
DAGSTER_HOME is one that several machines can use, such as one in PostgreSQL.
"""

import os
import time
from pathlib import Path

import dagster as dg
from dagster_celery import celery_executor

from dagster_dataops import DataOpsResource, build_definitions, data_register, pipeline

FOLDER = Path(os.environ.get("SHARDS_FOLDER", Path(__file__).parent))
SHARDS = [f"s{number}" for number in range(4)]


@data_register("data.shards", _concurrency_mode="single")
def shout(record: dict):
    """Write the text in capitals, a second later until there is the file that the record names."""
    if "after" in record and not (FOLDER / record["after"]).exists():
        time.sleep(1)
    return record | {"text": record["text"].upper()}


with pipeline("shards") as ppl:
    ppl.shouted = shout()

defs = build_definitions(
    ppl,
    source=str(FOLDER / "{partition}.jsonl"),
    partitions_def=dg.StaticPartitionsDefinition(SHARDS),
    resource=DataOpsResource(root=str(FOLDER / "results")),
    executor=celery_executor.configured(
        {"broker": {"env": "BROKER"}, "backend": {"env": "BROKER"}}, name="celery"
    ),
)
