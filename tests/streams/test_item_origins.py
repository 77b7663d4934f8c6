"""Tests of dagster_dataops.streams.item_origins, against streams of records with ids."""

import random
from pathlib import Path
from typing import Any

import orjson
import pytest

from dagster_dataops import DataPipeline, JsonlDataset
from dagster_dataops.streams.item_origins import ItemOrigins, describe
from dagster_dataops.streams.positioned_stream import PositionedStream

ROWS = (7, 3, 5)


@pytest.fixture
def inputs(tmp_path: Path) -> list[JsonlDataset]:
    """Three files; each record holds its place."""
    for number, rows in enumerate(ROWS):
        lines = [orjson.dumps({"at": [[number, index]]}) + b"\n" for index in range(rows)]
        (tmp_path / f"{number}.jsonl").write_bytes(b"".join(lines))
    return [JsonlDataset.of_file(tmp_path / f"{number}.jsonl") for number in range(len(ROWS))]


def _random_stream(chance: random.Random, inputs: list[JsonlDataset], depth: int = 3) -> Any:
    if depth == 0 or chance.random() < 0.2:
        return chance.choice(inputs).stream()
    if chance.random() < 0.4:
        return _random_choice(chance, _random_stream(chance, inputs, depth - 1))
    inner = [_random_stream(chance, inputs, depth - 1) for _ in range(chance.randrange(1, 4))]
    return _random_combination(chance, inner)


def _random_choice(chance: random.Random, inner: Any) -> Any:
    match chance.randrange(5):
        case 0:
            return inner.take(chance.randrange(6))
        case 1:
            return inner.skip(chance.randrange(3))
        case 2:
            return inner.shard(chance.randrange(2), 2, allow_uneven=chance.random() < 0.5)
        case 3:
            return inner.prefetch(2)
    return inner.map(lambda item: item)


def _random_combination(chance: random.Random, inner: list[Any]) -> Any:
    match chance.randrange(4):
        case 0:
            return DataPipeline.concat(*inner)
        case 1:
            names = list("abc"[: len(inner)])
            return DataPipeline.zip(*inner, names=names, zip_to_shortest=True).map(_joined)
        case 2:
            return DataPipeline.round_robin(*inner, allow_repeats=False)
    seed = chance.choice([None, 3])
    weights = [chance.random() + 0.1 for _ in inner]
    return DataPipeline.sample(*inner, weights=weights, seed=seed, allow_repeats=False)


def _joined(row: dict[str, Any]) -> dict[str, Any]:
    return {"at": [place for one in row.values() for place in one["at"]]}


@pytest.mark.parametrize("seed", range(60))
def test_origins_are_the_places_that_the_records_hold(
    inputs: list[JsonlDataset], seed: int
) -> None:
    built = _random_stream(random.Random(seed), inputs)
    stream: PositionedStream = built.and_return(seed=seed)
    found = describe(stream.stage, [str(one.path) for one in inputs], stream.seeds)
    assert found is not None
    stored = orjson.loads(orjson.dumps(found))
    expected = [tuple(map(tuple, item["at"])) for item in stream]
    made = ItemOrigins(stored, ROWS)
    assert [made.of_item(item) for item in range(len(made))] == expected
    for number, rows in enumerate(ROWS):
        for record in range(rows):
            items = [
                at for at, found in enumerate(expected) for one in found if one == (number, record)
            ]
            assert list(made.items_of(number, record)) == items


def test_stages_that_look_at_records_have_no_description(inputs: list[JsonlDataset]) -> None:
    first = inputs[0].stream()
    for built in (
        first.filter(lambda item: True),
        inputs[0].stream().shuffle(2, seed=1),
        inputs[0].stream().bucket(2),
        DataPipeline.count(),
    ):
        stage = built.and_return().stage
        assert describe(stage, [str(one.path) for one in inputs], {}) is None


def test_a_description_of_another_version_is_refused() -> None:
    with pytest.raises(ValueError, match="KeyError: 'stir'"):
        ItemOrigins({"stage": "stir", "of": [{"input": 0}]}, [1])
