"""An operator with two outputs that does what records say, and what it must publish."""

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dagster_dataops import Drop, To
from dagster_dataops.data import data_register
from dagster_dataops.foundation.hashing.file_digests import has_content
from dagster_dataops.foundation.places.root import Root
from tests.execution.helpers import lines, node
from tests.nodes import NodeFolder, published

OUTPUTS = ("train", "test")
KINDS = (
    "train",
    "test",
    "changed",
    "both",
    "several",
    "drop",
    "reason",
    "fail",
    "nonsense",
    "lost",
)
FAILING = {"fail", "nonsense", "lost"}


def sent(record: dict[str, Any]) -> Any:  # noqa: C901 - a table
    """Do what ``record["do"]`` says: every kind of outcome that a record can have."""
    match record["do"]:
        case "train" | "test" as output:
            return To(output)
        case "changed":
            record["changed"] = True
            return To("test")
        case "both":
            return [To("test"), To("train")]
        case "several":
            parts = record["n"] % 4
            return [
                To(OUTPUTS[part % 2], {"n": record["n"], "part": part}) for part in range(parts)
            ]
        case "drop":
            return []
        case "reason":
            return Drop("unwanted")
        case "fail":
            raise ValueError(record["n"])
        case "lost":
            return To("tran")
    return record


@data_register("data.splitting", outputs=OUTPUTS)
def send(record):
    return sent(record)


@data_register("data.splitting", outputs=OUTPUTS)
async def send_async(record):
    await asyncio.sleep(0)
    return sent(record)


def operator_for(mode: str, workers: int = 2, **given: Any) -> Any:
    """Return the operator for one concurrency mode."""
    chosen = send_async if mode == "async" else send
    given = {"_stop_after_failures": 0, **given}
    return chosen(_concurrency_mode=mode, _max_workers=workers, **given)


def splits(path: Path | Root, name: str = "node") -> NodeFolder:
    """Return the folder of the operator with the folders of its outputs."""
    return node(path, name).with_outputs(OUTPUTS)


def expected(records: Iterable[dict[str, Any]]) -> dict[str, bytes]:
    """Return the result of each output, made without the engine."""
    found: dict[str, list[object]] = {name: [] for name in OUTPUTS}
    for record in json.loads(json.dumps(list(records))):
        if record["do"] in FAILING:
            continue
        returned = sent(record)
        each = returned if isinstance(returned, list) else [returned]
        for one in each:
            if isinstance(one, To):
                found[one.output].append(record if one.record is None else one.record)
    return {name: lines(rows) for name, rows in found.items()}


def written(folder: NodeFolder) -> dict[str, bytes]:
    """Return the bytes of each published output."""
    return {name: place.result.read_bytes() for name, place in folder.outputs.items()}


def check_manifests(folder: NodeFolder) -> None:
    """Check that the manifest of each output that counts as published is that of its file."""
    for place in folder.outputs.values():
        found = published(place)
        if found is not None:
            assert has_content(place.result, found[1].size_bytes, found[1].fingerprint)
