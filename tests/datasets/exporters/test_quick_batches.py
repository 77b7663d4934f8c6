import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.exporters import arrow_types
from dagster_dataops.datasets.exporters.arrow_types import ArrowTable, write_batches
from dagster_dataops.datasets.exporters.exporter import ExportRecords, UnfitValueError
from dagster_dataops.datasets.exporters.quick_batches import (
    reads_exactly,
)
from dagster_dataops.errors import InputError
from tests.each import each
from tests.nodes import write_records


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
    except InputError as error:
        return str(error)


def both_ways(dataset: JsonlDataset, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """Return what becomes of a file if Arrow may read it, and if it must not."""
    quickly = outcome(ExportRecords(dataset))
    with monkeypatch.context() as patch:
        patch.setattr(ArrowTable, "reads_exactly", False)
        return quickly, outcome(ExportRecords(dataset))


VALUES = [None, 1, -3, 2.5, 1e300, -0.0, 2**53 + 1, 2**63 - 1, 2**63, True, "", "é\u2028\x00"]
VALUES += ["2020-01-01", [], [1], [None], [1.5, 2], ["x"], {}, {"p": 1}, {"p": 2.5, "q": [{}]}]


@each("seed", range(60))
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
    quickly, plainly = both_ways(dataset_of(tmp_path, rows), monkeypatch)
    assert quickly == plainly
    if isinstance(plainly, pa.Table):
        assert quickly.schema == plainly.schema


LINES = [b'{"a":1.5,"b":"x"}', b'{"b": "\\u00e9\\/", "a": 2}', b'{"a":null}', b'{"a":-2e3,"b":""}']
ODD_LINES = [
    *(b'{"a":%s}' % number for number in (b"NaN", b"Infinity", b"-inf", b"1e999", b"01", b"1e400")),
    *(b'{"a":%d}' % number for number in (2**53 + 1, 2**64, 10**40)),
    *(b'{"b":"%s"}' % text for text in (b"\xff", b"\xc3", b"\\ud800", b"\\udc00", b"\t", b"\\q")),
    *(
        b'{"a":1}' + more
        for more in (b'{"a":2}', b"null", b"null{}", b" ", b"\r", b"//", b"\0", b",")
    ),
    *(b'{"a":1,"b":"x"}{"a":2}\n{"a":\n3}', b"", b" ", b"\r", b"null", b"[1]", b"{", b"}", b"7"),
    *(b'{"a":1,"a":2}', b'{"a":1,}', b'{"\\u0061":3}', b'{"c":1}', b' {"a":4}', b"{}", b'{"a":\n'),
]


@each("odd", ODD_LINES)
@each("place", [0, 2, 4])
def test_lines_of_other_programs_are_read_as_in_the_other_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, odd: bytes, place: int
) -> None:
    monkeypatch.setattr(arrow_types, "BATCH_RECORDS", 2)
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"\n".join([*LINES[:place], odd, *LINES[place:]]))
    quickly, plainly = both_ways(JsonlDataset.of_file(path), monkeypatch)
    assert quickly == plainly


def test_a_plain_file_is_read_by_arrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps({"n": n, "text": "é" * n}) + "\n" for n in range(5)))
    records = ExportRecords(JsonlDataset.of_file(path))
    monkeypatch.setattr(ArrowTable, "batch", None)
    assert written(records)["n"].to_pylist() == [0, 1, 2, 3, 4]
    assert records.rows == 5


def test_usual_records_become_no_python_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"id": n, "text": "é" * n, "x": n / 3, "tags": ["a"], "o": {"n": n}} for n in range(9)]
    rows[3].pop("tags")
    rows[4]["o"] = None
    records = ExportRecords(dataset_of(tmp_path, rows))
    monkeypatch.setattr(ArrowTable, "batch", None)
    assert written(records).to_pylist() == [{"tags": None, **row} for row in rows]
    small = written(records, {"id": "int8"})
    assert small.schema.field("id").type == pa.int8()


def test_rows_are_counted_in_both_ways(tmp_path: Path) -> None:
    records = ExportRecords(dataset_of(tmp_path, [{"a": 1}] * 3))
    assert written(records).num_rows == records.rows == 3


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
