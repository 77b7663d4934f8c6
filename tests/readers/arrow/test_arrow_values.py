"""Values of Arrow columns as JSON."""

import datetime as dt
import decimal
import json
import uuid

import pytest

from dagster_dataops import (
    errors,
    readers,
)

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


DAY = dt.date(2026, 1, 31)


NOON = dt.datetime(2026, 1, 31, 12, 0, 0, 5)  # noqa: DTZ001 - columns without a zone


def write_file(path, table):
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as out:
        out.write_table(table)


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        (pa.int64(), 2**62, 2**62),
        (pa.uint64(), 2**64 - 1, 2**64 - 1),
        (pa.float32(), 0.5, 0.5),
        (pa.bool_(), True, True),
        (pa.null(), None, None),
        (pa.large_string(), "é", "é"),
        (pa.string_view(), "é", "é"),
        (pa.date32(), DAY, "2026-01-31"),
        (pa.date64(), DAY, "2026-01-31"),
        (pa.timestamp("us"), NOON, "2026-01-31T12:00:00.000005"),
        (pa.timestamp("s", "Europe/Berlin"), NOON.replace(microsecond=0), None),
        (pa.timestamp("ns"), 1, "1970-01-01T00:00:00.000000001"),
        (pa.timestamp("ns"), -1, "1969-12-31T23:59:59.999999999"),
        (pa.timestamp("ns", "Europe/Berlin"), 10**9, "1970-01-01T01:00:01+01:00"),
        (pa.timestamp("ns", "+02:00"), 7, "1970-01-01T02:00:00.000000007+02:00"),
        (pa.time32("s"), dt.time(1, 2, 3), "01:02:03"),
        (pa.time64("ns"), 1, "00:00:00.000000001"),
        (pa.decimal128(10, 2), decimal.Decimal("1.10"), "1.10"),
        (pa.binary(), b"\x00\xff", "AP8="),
        (pa.binary(2), b"\x00\xff", "AP8="),
        (pa.list_(pa.date32()), [DAY, None], ["2026-01-31", None]),
        (pa.list_(pa.binary(), 1), [b"x"], ["eA=="]),
        (pa.list_(pa.list_(pa.timestamp("ns"))), [[1]], [["1970-01-01T00:00:00.000000001"]]),
        (
            pa.struct([("a", pa.decimal128(5, 1)), ("b", pa.int8())]),
            {"a": decimal.Decimal("2.5"), "b": 1},
            {"a": "2.5", "b": 1},
        ),
        (pa.map_(pa.string(), pa.date32()), [("k", DAY)], {"k": "2026-01-31"}),
        (pa.map_(pa.int8(), pa.binary()), [(1, b"x")], [[1, "eA=="]]),
        (pa.dictionary(pa.int8(), pa.string()), "x", "x"),
        (pa.dictionary(pa.int8(), pa.binary()), b"x", "eA=="),
        (pa.uuid(), uuid.UUID(int=5).bytes, str(uuid.UUID(int=5))),
    ],
    ids=str,
)
def test_values_become_json(tmp_path, type_, value, expected):
    if isinstance(type_, pa.BaseExtensionType):
        column = pa.ExtensionArray.from_storage(type_, pa.array([value, None], type_.storage_type))
    else:
        column = pa.array([value, None], type_)
    if expected is None and value is not None:
        expected = column[0].as_py().isoformat()
    table = pa.table({"v": column})
    write_file(tmp_path / "t", table)

    rows = list(readers.read_arrow(tmp_path / "t"))

    assert rows == [{"v": expected}, {"v": None}]
    assert json.loads(json.dumps(rows)) == rows


@pytest.mark.parametrize("type_", [pa.duration("s"), pa.list_(pa.month_day_nano_interval())])
def test_values_that_are_not_json_are_refused_with_their_column(tmp_path, type_):
    table = pa.table({"good": [1], "bad": pa.array([None], type_)})
    write_file(tmp_path / "t", table)
    with pytest.raises(
        errors.StreamSourceError, match="column 'bad' is .*cannot be converted to JSON"
    ):
        list(readers.read_arrow(tmp_path / "t"))
    assert list(readers.read_arrow(tmp_path / "t", ["good"])) == [{"good": 1}]


def test_a_value_beyond_python_names_the_column(tmp_path):
    column = pa.array([10**18], pa.int64()).cast(pa.timestamp("s"))
    table = pa.table({"at": column})
    write_file(tmp_path / "t", table)
    with pytest.raises(errors.StreamSourceError, match="column 'at' has a value that cannot"):
        list(readers.read_arrow(tmp_path / "t"))


def test_a_map_with_a_key_twice_is_refused(tmp_path):
    column = pa.array([[("k", 1), ("k", 2)]], pa.map_(pa.string(), pa.int8()))
    pq.write_table(pa.table({"m": column}), tmp_path / "t")
    with pytest.raises(errors.StreamSourceError, match="column 'm'.*one key twice"):
        list(readers.read_parquet(tmp_path / "t"))
