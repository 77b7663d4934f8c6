import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.writer import write_records
from dagster_dataops.exporters import arrow_types
from dagster_dataops.exporters.arrow_types import ArrowTable, write_batches
from dagster_dataops.exporters.exporter import DatasetRecords, UnfitValueError
from dagster_dataops.exporters.quick_batches import GuessError, quick_batches, reads_exactly

SCHEMA = pa.schema([("a", pa.float64())])


def written(records: Any, given: dict[str, str] | None = None) -> Any:
    return write_batches(records, given or {}, _table)


def _table(schema: Any, made: Any) -> Any:
    return pa.Table.from_batches(list(made), schema)


def dataset_of(tmp_path: Path, rows: list[Any]) -> JsonlDataset:
    return write_records(tmp_path / "rows.jsonl", rows, "rows")


def outcome(records: Any) -> Any:
    try:
        return written(records)
    except UnfitValueError as error:
        return error.args


VALUES = [None, 1, -3, 2.5, 1e300, -0.0, 2**53 + 1, 2**63 - 1, 2**63, True, "", "é\u2028\x00"]
VALUES += ["2020-01-01", [], [1], [None], [1.5, 2], ["x"], {}, {"p": 1}, {"p": 2.5, "q": [{}]}]


@pytest.mark.parametrize("seed", range(60))
def test_both_ways_give_the_same_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(arrow_types, "BATCH_RECORDS", 4)
    chance = random.Random(seed)
    kinds = [chance.sample(VALUES, chance.choice([1, 2, 3])) for _ in range(3)]
    rows = [
        {name: chance.choice(kind) for name, kind in zip("abc", kinds, strict=True) if kind}
        for _ in range(chance.choice([0, 1, 4, 12]))
    ]
    if rows and chance.random() < 0.3:
        del rows[-1]["c"]
    dataset = dataset_of(tmp_path, rows)
    plainly = outcome(DatasetRecords(JsonlDataset.of_file(dataset.path)))
    quickly = outcome(DatasetRecords(dataset))
    assert quickly == plainly
    if isinstance(plainly, pa.Table):
        assert quickly.schema == plainly.schema


def test_usual_records_become_no_python_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"id": n, "text": "é" * n, "x": n / 3, "tags": ["a"], "o": {"n": n}} for n in range(9)]
    rows[3].pop("tags")
    rows[4]["o"] = None
    records = DatasetRecords(dataset_of(tmp_path, rows))
    monkeypatch.setattr(ArrowTable, "batch", None)
    assert written(records).to_pylist() == [{"tags": None, **row} for row in rows]
    small = written(records, {"id": "int8"})
    assert small.schema.field("id").type == pa.int8()


def test_rows_are_counted_in_both_ways(tmp_path: Path) -> None:
    records = DatasetRecords(dataset_of(tmp_path, [{"a": 1}] * 3))
    assert written(records).num_rows == records.rows == 3


@pytest.mark.parametrize(
    ("lines", "rows"),
    [
        (b'{"a":1}\n{"a":"x"}\n', 2),
        (b'{"a":1}\n{"b":1}\n', 2),
        (b'{"a":9007199254740993}\n', 1),
        (b'{"a":1}\n', 2),
        (b'{"a":"' + b"x" * (5 << 20) + b'"}\n', 1),
    ],
)
def test_lines_that_do_not_fit_the_guess_are_refused(
    tmp_path: Path, lines: bytes, rows: int
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(lines)
    with pytest.raises(GuessError):
        list(quick_batches(path, SCHEMA, rows, 1000))


@pytest.mark.parametrize(
    ("kind", "exact"),
    [
        (pa.int32(), True),
        (pa.list_(pa.struct([("a", pa.string())])), True),
        (pa.float32(), False),
        (pa.timestamp("ms"), False),
        (pa.list_(pa.date32()), False),
        (pa.struct([]), False),
    ],
)
def test_only_types_that_arrow_reads_without_a_loss_are_read_quickly(
    kind: Any, exact: bool
) -> None:
    assert reads_exactly(kind) == exact
