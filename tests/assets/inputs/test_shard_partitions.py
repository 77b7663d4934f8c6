"""Tests of shards of a stream as partitions."""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import DataPipeline, read_jsonl, read_sequence, shard_partitions
from dagster_dataops.errors import ConfigurationError, StreamDefinitionError
from tests.assets.helpers import definitions_of, execute, numbered, pipeline_of, result_of, spec_of
from tests.registries import OperatorRegistry


def doubled(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "twice": 2 * row["id"]}


def wanted(row: dict[str, Any]) -> bool:
    return bool(row["id"] % 3)


@pytest.fixture
def pair(registry: OperatorRegistry) -> Any:
    @registry("data.text", _concurrency_mode="single")
    def kept(record: dict) -> None:
        del record

    @registry("data.text", _concurrency_mode="single")
    def whole(record: dict) -> None:
        del record

    return pipeline_of(kept=kept(), whole=whole())


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_the_shards_together_are_the_stream(
    pair: Any, root: Path, instance: dg.DagsterInstance, workers: int
) -> None:
    stream = read_sequence(list(numbered(50))).shuffle(9).map(doubled).filter(wanted)
    shards = shard_partitions(4)
    definitions = definitions_of(
        pair,
        shards.of(stream),
        root,
        partitions_def=shards.definition,
        unpartitioned=["whole"],
        workers=workers,
    )
    keys = shards.definition.get_partition_keys()
    assert keys == ["0-of-4", "1-of-4", "2-of-4", "3-of-4"]
    name = "filter"
    partitioned = [["docs", name], ["docs", "kept"]]
    for key in keys:
        execute(definitions, instance, partition_key=key, only=partitioned)
    execute(definitions, instance, only=[["docs", "whole"]])
    assert result_of(root, "docs", "whole") == list(stream)


def test_a_shard_processes_only_its_own_items(tmp_path: Path) -> None:
    seen: list[int] = []

    def noted(row: dict[str, Any]) -> dict[str, Any]:
        seen.append(row["id"])
        return row

    stream = read_sequence(list(numbered(10))).sharding_filter().map(noted)
    shard = shard_partitions(3).of(stream)
    assert [row["id"] for row in shard("1-of-3")] == [4, 5, 6]
    assert seen == [4, 5, 6]


def test_the_options_of_a_stream_are_those_of_its_shards() -> None:
    stream = read_sequence(list(numbered(8))).shuffle(0).and_return(seed=3, on_error="skip")
    shards = shard_partitions(2)
    of = shards.of(stream)
    found = [item for key in shards.definition.get_partition_keys() for item in of(key)]
    assert found == list(stream)
    assert of("0-of-2").on_error == "skip"  # type: ignore[attr-defined]


def test_another_stream_has_another_version(pair: Any, root: Path, tmp_path: Path) -> None:
    path = tmp_path / "docs.jsonl"
    path.write_text("{}\n")
    shards = shard_partitions(2)

    def version(stream: Any) -> str | None:
        source = shards.of(stream)
        definitions = definitions_of(pair, source, root, partitions_def=shards.definition)
        return spec_of(definitions, "docs", "docs").code_version

    stream = read_jsonl(path)
    assert version(stream.shuffle(3)) == version(stream.shuffle(3))
    assert version(stream.shuffle(3)) != version(stream.shuffle(4))


def test_no_shards_and_shards_of_an_endless_stream_are_refused() -> None:
    wrong: Any
    for wrong in (0, "2", 1.5, True):
        with pytest.raises(ConfigurationError, match="shard_partitions"):
            shard_partitions(wrong)
    with pytest.raises(StreamDefinitionError, match="never ends"):
        shard_partitions(2).of(DataPipeline.count())
