"""A code location of partitioned pipelines: backfilled in one run, and extended by a sensor.

The environment variable SLOW_PIPELINE_HOME names a folder. It contains the results and, for every
pipeline, a folder with one file of records per partition. Every call is a line of
``<pipeline>.calls``: the text of its record and the process.
"""

import os
import time

import dagster as dg
from paced import HOME  # beside this file, in the server's home
from served_settings import SETTINGS

from dagster_dataops import (
    NewFiles,
    Pipeline,
    build_definitions,
    data_register,
    pipeline,
)

INBOX = HOME / "inbox"
INBOX.mkdir(exist_ok=True)


def called(record: dict, name: str) -> None:
    """Record a call of the operator of a pipeline."""
    with (HOME / f"{name}.calls").open("a") as calls:
        calls.write(f"{record['text']} {os.getpid()}\n")


@data_register("data.partitioned", _concurrency_mode="single", _ignore_errors=False)
def upper(record: dict, name: str) -> dict:
    """Convert a text to upper case, unless it is in ``<name>.failing``."""
    called(record, name)
    failing = HOME / f"{name}.failing"
    if failing.exists() and record["text"] in failing.read_text().split():
        msg = f"no answer for {record['text']}"
        raise ConnectionError(msg)
    return record | {"text": record["text"].upper()}


@data_register("data.partitioned", _concurrency_mode="single")
def patient(record: dict, name: str) -> dict:
    """Convert a text to upper case, in a tenth of a second if the file ``<name>.slow`` exists."""
    called(record, name)
    if (HOME / f"{name}.slow").exists():
        time.sleep(0.1)
    return record | {"text": record["text"].upper()}


def slowly(name: str) -> dg.Definitions:
    """Return one slow node over some long partitions, all in one run."""
    with pipeline(name) as ppl:
        ppl.upper = patient(name=name)
    return build_definitions(
        ppl,
        source=HOME / name / "{partition}.jsonl",
        **SETTINGS,
        partitions_def=dg.StaticPartitionsDefinition(["c", "a", "b"]),
        backfill_policy=dg.BackfillPolicy.single_run(),
    )


def named(name: str) -> Pipeline:
    """Return one node in a pipeline of that name."""
    with pipeline(name) as ppl:
        ppl.upper = upper(name=name)
    return ppl


defs = dg.Definitions.merge(
    slowly("long_relaunched"),
    slowly("long_reexecuted"),
    build_definitions(
        named("letters"),
        source=HOME / "letters" / "{partition}.jsonl",
        **SETTINGS,
        partitions_def=dg.StaticPartitionsDefinition(["c", "a", "b"]),
        backfill_policy=dg.BackfillPolicy.single_run(),
    ),
    build_definitions(
        named("inbox"),
        source=INBOX / "{partition}.jsonl",
        **SETTINGS,
        partitions_def=dg.DynamicPartitionsDefinition(name="inbox_files"),
        new_files=NewFiles(settle_seconds=0, runs_per_tick=2, interval_seconds=1, running=True),
    ),
)
