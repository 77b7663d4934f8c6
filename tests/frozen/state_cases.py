"""The cases of ``states``: what came after version 0.2.0; see `freeze.py`.

Kept versions, the notes of columns that were read, a choice of records to redo, the folder of a
review, the index of passages.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import frozen_cases as cases
from frozen_operators import Step, pause

from dagster_dataops import config, data, data_register
from dagster_dataops.errors import RunWaitingError

CHOICE = {"records": "failed or n > 20"}


@data_register("data.frozen", reads="observed", _reuse_outcomes=True)
def observed(record: dict, context, die_at: Step = -1):
    pause(record["n"], die_at)
    context.count(seen=1, weight=0.5)
    return record | {"size": len(record["text"])}


def kept(tag: str) -> Any:
    return cases.single_node(
        "versions", cases.frozen.double(tag=tag, _keep_versions=2, **cases.ONE)
    )


def observing(name: str, die_at: int = -1) -> Any:
    return cases.single_node(name, observed(die_at=die_at, **cases.ONE))


def chosen(die_at: int = -1) -> Any:
    return cases.single_node("killed_chosen", cases.frozen.double(die_at=die_at, **cases.ONE))


def asking() -> Any:
    return cases.single_node("review", data.review.Ask(["text"], when=["n", "<", 3]))


def passages() -> Any:
    return cases.single_node("passages", data.retrieval.Index())


def decide(folder: Path, name: str, texts: dict[str, str]) -> None:
    """Write decisions about texts that are asked about."""
    (asked,) = folder.glob("questions-*.jsonl")
    rows = [json.loads(line) for line in asked.read_bytes().splitlines()]
    lines = [
        {"review_id": row["review_id"], "decision": texts[row["fields"]["text"]]}
        for row in rows
        if row["fields"]["text"] in texts
    ]
    (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))


def write(source: str, root: Path) -> None:
    """Write all finished states, and those that a run waits with."""
    for tag in ("a", "b"):
        kept(tag)(source)
    observing("observed")(source)
    passages()(source)
    chosen()(source)
    for _ in range(2):
        try:
            asking()(source)
        except RunWaitingError:
            decide(root / "review" / "node" / "review", "first.jsonl", {"word0 x0": "drop"})


KILLED: dict[str, Callable[[int], Any]] = {
    "killed_observed": lambda die_at: observing("killed_observed", die_at),
    "killed_chosen": chosen,
}


def resume_of(name: str) -> Any:
    """Return the setting with which a killed case resumes."""
    return CHOICE if name == "killed_chosen" else True


def run(name: str, source: str, die_at: int = -1) -> None:
    """Run a killed case."""
    with config.temporary(data_process_resume=resume_of(name)):
        KILLED[name](die_at)(source)
