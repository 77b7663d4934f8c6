"""An operator that tags records, and the partitions that a run has materialized."""

from collections import Counter
from pathlib import Path
from typing import Any

import dagster as dg

from tests.assets.helpers import read_jsonl
from tests.registries import OperatorRegistry

LETTERS = dg.StaticPartitionsDefinition(["c", "a", "b"])
SINGLE_RUN = dg.BackfillPolicy.single_run()


class Tagging:
    """An operator that counts its calls and fails at chosen records."""

    def __init__(self, registry: OperatorRegistry) -> None:
        self.calls: Counter[str] = Counter()
        self.failing: set[str] = set()
        self.fatal: BaseException | None = None
        self.registry = registry

    def operator(self) -> Any:
        @self.registry("data.text", _concurrency_mode="single", _ignore_errors=False)
        def tag(record: dict) -> None:
            self.calls[record["id"]] += 1
            if record["id"] in self.failing:
                if self.fatal is not None:
                    raise self.fatal
                msg = f"no answer for {record['id']}"
                raise ConnectionError(msg)
            record["tag"] = True

        return tag()


def ids(rows: list[dict[str, Any]]) -> list[str]:
    return [row["id"] for row in rows]


def part_of(root: Path, node: str, partition: str) -> list[dict[str, Any]]:
    return read_jsonl(root / "docs" / node / "partitions" / partition / f"{node}_results.jsonl")


def of_range(start: str, end: str) -> dict[str, str]:
    """Return the tags that a backfill gives to its one run of several partitions."""
    return {
        "dagster/asset_partition_range_start": start,
        "dagster/asset_partition_range_end": end,
    }


def partitions_of(result: dg.ExecuteInProcessResult, *key: str) -> dict[str, dict[str, Any]]:
    """Return the metadata of an asset's materializations, by partition."""
    events = [event.step_materialization_data for event in result.all_events if is_made(event)]
    found = [e.materialization for e in events if e.materialization.asset_key.path == list(key)]
    return {
        str(one.partition): {
            name.removeprefix("dagster_dataops/"): value.value
            for name, value in one.metadata.items()
        }
        for one in found
    }


def is_made(event: dg.DagsterEvent) -> bool:
    return event.event_type_value == "ASSET_MATERIALIZATION"
