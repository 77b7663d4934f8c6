"""Tests of ``export.Parquet``, ``Csv`` and ``Jsonl``: other programs read back what was written."""

import csv
import gzip
import sys
from pathlib import Path
from typing import Any

import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from dagster_dataops import JsonlDataset, data, read_jsonl
from dagster_dataops.datasets.exporters import json_lines
from dagster_dataops.errors import (
    DefinitionError,
    ExportError,
    MissingExtraError,
    OperatorOptionError,
    StorageError,
)
from tests.each import each

MIXED = [
    {"id": 1, "text": 'a,"b"\r\nc', "score": 1, "tags": ["x"], "meta": {"n": 1}},
    {"id": 2, "text": "", "score": 0.5, "tags": [], "meta": {"m": None}},
    {"id": 3, "text": None, "late": True, "tags": None},
]


def parts(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.glob("part-*"))]


def parquet(path: Path, records: list[dict[str, Any]], **options: Any) -> pa.Table:
    assert data.export.Parquet(path, **options)(records) == str(path)
    return pq.read_table(path)


def test_a_parquet_file_has_the_columns_and_types_of_all_records(tmp_path):
    table = parquet(tmp_path / "out.parquet", MIXED)

    assert [(field.name, str(field.type)) for field in table.schema] == [
        ("id", "int64"),
        ("text", "string"),
        ("score", "double"),
        ("tags", "list<element: string>"),
        ("meta", "struct<n: int64, m: null>"),
        ("late", "bool"),
    ]
    rows = table.to_pylist()
    assert [row["text"] for row in rows] == [record["text"] for record in MIXED]
    assert [row["late"] for row in rows] == [None, None, True]
    assert rows[0]["meta"] == {"n": 1, "m": None}
    frame = pd.read_parquet(tmp_path / "out.parquet")
    assert frame["id"].tolist() == [1, 2, 3]
    assert frame["score"].tolist()[:2] == [1.0, 0.5]


def test_a_type_may_first_appear_after_many_records(tmp_path):
    records = [{"n": n, "x": None} for n in range(2500)] + [{"n": 0.5, "x": {"deep": [1]}}]

    table = parquet(tmp_path / "out.parquet", records, row_group_rows=1000)

    assert str(table.schema.field("n").type) == "double"
    assert table["x"][-1].as_py() == {"deep": [1]}
    groups = pq.ParquetFile(tmp_path / "out.parquet").metadata
    assert [groups.row_group(at).num_rows for at in range(groups.num_row_groups)] == [
        1000,
        1000,
        501,
    ]


@pytest.mark.parametrize("rows", [1, 7, 999, 1000, 1001, 5000])
def test_row_groups_have_the_given_size_whatever_the_batches(tmp_path, rows):
    records = [{"n": n} for n in range(2100)]

    assert parquet(tmp_path / "out.parquet", records, row_group_rows=rows)["n"].to_pylist() == list(
        range(2100)
    )
    metadata = pq.ParquetFile(tmp_path / "out.parquet").metadata
    sizes = [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)]
    assert set(sizes[:-1]) <= {rows}
    assert sizes[-1] <= rows


def test_given_types_win_over_inferred_ones(tmp_path):
    records = [{"a": 1, "b": [1, "x"], "c": None}, {"a": None, "b": {"k": 1}}]
    schema = {"a": "double", "b": "json", "c": "list<string>", "absent": "int32"}

    table = parquet(tmp_path / "out.parquet", records, schema=schema, _missing="allow")

    assert [str(table.schema.field(name).type) for name in ("a", "b", "absent")] == [
        "double",
        "string",
        "int32",
    ]
    assert [orjson.loads(value) for value in table["b"].to_pylist()] == [[1, "x"], {"k": 1}]
    assert table["absent"].to_pylist() == [None, None]


@pytest.mark.parametrize(
    ("values", "line", "found"),
    [
        ([1, 2, "three"], 3, "a text"),
        (["a", 5], 2, "an integer"),
        ([True, 5], 2, "an integer"),
        ([1, {"k": 1}], 2, "an object"),
        ([[1], ["a"]], 2, "an array"),
        ([1, 2**63], 2, "an integer"),
        ([2**63], 1, "an integer"),
        ([{"k": {"i": 1}}, {"k": 7}], 2, "an object"),
        ([*range(1500), "late"], 1501, "a text"),
        ([2**60 + 1, 0.5], 1, "an integer"),
        ([1.5, True], 2, "a boolean"),
        ([[1.5], [True]], 2, "an array"),
        ([{"k": 1.5}, {"k": 2}, {"k": False}], 3, "an object"),
        ([["a"], "b"], 2, "a text"),
    ],
)
def test_a_value_of_another_type_is_an_error_that_names_line_column_and_remedy(
    tmp_path, values, line, found
):
    source, target = tmp_path / "in.jsonl", tmp_path / "out.parquet"
    source.write_bytes(b"".join(orjson.dumps({"c": value}) + b"\n" for value in values))

    with pytest.raises(ExportError) as caught:
        data.export.Parquet(target)(source)

    assert (caught.value.path, caught.value.line) == (str(source), line)
    assert (caught.value.index, caught.value.column) == (line - 1, "c")
    assert found in caught.value.found
    assert "schema={'c': 'json'}" in caught.value.remedy
    assert not target.exists()
    assert parquet(target, [{"c": value} for value in values], schema={"c": "json"}).num_rows


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int64", 1.5),
        ("int64", True),
        ("int8", 1000),
        ("double", True),
        ("bool", 1),
        ("string", 5),
        ("list<string>", "text"),
        ("list<int64>", [1.5]),
        ("timestamp[s]", 1.5),
        ("date32", 0.5),
        ("time64[us]", True),
        ("float", 1e300),
        ("halffloat", -65505),
        ("list<float>", [1e39]),
    ],
)
def test_a_value_is_never_changed_to_fit_a_given_type(tmp_path, kind, value):
    with pytest.raises(ExportError, match=r"line 2\), column 'c': it holds .* type of the column"):
        data.export.Parquet(tmp_path / "x.parquet", schema={"c": kind})([{"c": None}, {"c": value}])


def test_objects_without_keys_are_written_as_json(tmp_path):
    records = [{"meta": {}, "deep": {"x": {}}}, {"meta": None, "deep": None}]

    table = parquet(tmp_path / "out.parquet", records)

    assert table["meta"].to_pylist() == ["{}", None]
    assert table["deep"].to_pylist() == ['{"x":{}}', None]


@pytest.mark.parametrize(("levels", "is_json"), [(40, False), (41, True), (200, True)])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"k":', "}")])
def test_a_column_that_is_nested_too_deep_for_readers_is_written_as_json(
    tmp_path, levels, is_json, opening, closing
):
    text = opening * levels + "1" + closing * levels

    table = parquet(tmp_path / "out.parquet", [{"a": orjson.loads(text)}, {"a": None}])

    found = table["a"].to_pylist()
    assert found == [text if is_json else orjson.loads(text), None]


def test_an_integer_of_64_bits_without_a_sign_is_an_error_that_names_its_type(tmp_path):
    records = [{"id": 2**64 - 1}, {"id": 1}]
    with pytest.raises(ExportError, match="'uint64'"):
        data.export.Parquet(tmp_path / "out.parquet")(records)
    table = parquet(tmp_path / "out.parquet", records, schema={"id": "uint64"})
    assert table.to_pylist() == records


def test_no_records_make_an_empty_file(tmp_path):
    assert parquet(tmp_path / "out.parquet", []).num_rows == 0
    assert parquet(tmp_path / "t.parquet", [], schema={"a": "int64"}).schema.names == ["a"]


@pytest.mark.parametrize("codec", ["zstd", "snappy", "gzip", "none"])
def test_the_codec_is_chosen(tmp_path, codec):
    parquet(tmp_path / "out.parquet", MIXED, compression=codec)

    column = pq.ParquetFile(tmp_path / "out.parquet").metadata.row_group(0).column(0)
    assert column.compression == {"none": "UNCOMPRESSED"}.get(codec, codec.upper())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"schema": {"a": "integer"}}, "type 'integer'"),
        ({"schema": ["a"]}, "'schema' must be Mapping"),
        ({"row_group_rows": 0}, "'row_group_rows' must be at least 1; got 0"),
        ({"compression": "rar"}, "compression is 'rar'"),
    ],
)
def test_wrong_options_are_refused_where_they_are_given(tmp_path, options, message):
    with pytest.raises(DefinitionError, match=message):
        data.export.Parquet(tmp_path / "out.parquet", **options)


@pytest.mark.parametrize(
    ("package", "extra", "make"),
    [
        ("pyarrow", "arrow", lambda: data.export.Parquet("x.parquet")),
        ("pyarrow", "arrow", lambda: data.export.HuggingFace("x")),
        ("zstandard", "zstd", lambda: data.export.Jsonl("x.jsonl.zst")),
        ("zstandard", "zstd", lambda: data.export.Messages("x.jsonl.zst")),
    ],
)
def test_a_missing_package_is_named_where_the_operator_is_made(monkeypatch, package, extra, make):
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(MissingExtraError, match=rf"dagster-dataops\[{extra}\]"):
        make()


def test_a_csv_file_is_read_back_by_pandas_and_the_standard_library(tmp_path):
    path = tmp_path / "out.csv"
    assert data.export.Csv(path)(MIXED) == str(path)

    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["id", "text", "score", "tags", "meta", "late"]
    assert [row["text"] for row in rows] == [record["text"] or "" for record in MIXED]
    assert [row["tags"] for row in rows] == ['["x"]', "[]", ""]
    assert rows[2]["late"] == "true"
    frame = pd.read_csv(path)
    assert frame["id"].tolist() == [1, 2, 3]
    assert frame["text"].tolist()[0] == MIXED[0]["text"]


def test_columns_and_delimiter_of_a_csv_file_are_chosen(tmp_path):
    records = [{"a": 1, "b": "x\ty", "c": 2.5}, {"c": 1e300}]
    data.export.Csv(tmp_path / "out.tsv", columns=["c", "b", "z"], _missing="allow")(records)
    data.export.Csv(tmp_path / "out.csv", delimiter=";")(records)

    assert (tmp_path / "out.tsv").read_bytes() == b'c\tb\tz\r\n2.5\t"x\ty"\t\r\n1e+300\t\t\r\n'
    assert (tmp_path / "out.csv").read_bytes() == b"a;b;c\r\n1;x\ty;2.5\r\n;;1e+300\r\n"
    for wrong in ({"delimiter": ",,"}, {"delimiter": "\n"}, {"columns": "a"}, {"columns": []}):
        with pytest.raises(DefinitionError):
            data.export.Csv(tmp_path / "out.csv", **wrong)


def test_no_records_make_an_empty_csv_file(tmp_path):
    data.export.Csv(tmp_path / "out.csv")([])
    data.export.Csv(tmp_path / "named.csv", columns=["a", "b"])([])

    assert (tmp_path / "out.csv").read_bytes() == b""
    assert (tmp_path / "named.csv").read_bytes() == b"a,b\r\n"


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "jsonl.zst"])
def test_json_lines_are_read_back_by_pandas_and_the_reader_of_the_package(tmp_path, ending):
    path = tmp_path / f"out.{ending}"
    data.export.Jsonl(path)(MIXED)

    assert list(read_jsonl(str(path)).and_return()) == MIXED
    assert pd.read_json(path, lines=True)["id"].tolist() == [1, 2, 3]


def test_equal_records_give_equal_compressed_bytes(tmp_path):
    for compression, opened in (("gz", gzip.open), ("zst", zstandard.open)):
        first, second = tmp_path / f"1.{compression}", tmp_path / "other" / f"2.{compression}"
        for path in (first, second):
            data.export.Jsonl(path, compression=compression)(MIXED)
        assert first.read_bytes() == second.read_bytes()
        with opened(first) as file:
            assert [orjson.loads(line) for line in file.read().splitlines()] == MIXED
    with pytest.raises(DefinitionError, match=r"ends in \.gz"):
        data.export.Jsonl("x.gz", compression="zst")
    with pytest.raises(DefinitionError, match="compression is 'xz'"):
        data.export.Jsonl("x.xz", compression="xz")


@each("size", [1, 3, 4, 5, 11, 12, 13, 1000])
def test_the_files_of_a_folder_have_so_many_records_and_joined_are_the_single_file(size, tmp_path):
    records = [{"n": n, "text": "ä\u2028" * n} for n in range(12)]
    data.export.Jsonl(tmp_path / "one.jsonl")(records)
    folder = data.export.Jsonl(tmp_path / f"out-{size}", records_per_file=size)(records)

    found = parts(Path(folder))

    assert b"".join(found) == (tmp_path / "one.jsonl").read_bytes()
    counts = [part.count(b"\n") for part in found]
    assert counts == [size] * (12 // size) + [12 % size] * bool(12 % size)
    assert JsonlDataset.of_file(folder).read() == records


def test_a_smaller_export_leaves_no_file_of_the_larger_one_before(tmp_path):
    for count in (9, 2, 0, 5):
        records = [{"n": n} for n in range(count)]
        data.export.Jsonl(tmp_path / "out", records_per_file=2)(records)
        assert len(parts(tmp_path / "out")) == max(1, -(-count // 2))
        assert b"".join(parts(tmp_path / "out")).count(b"\n") == count


@each("compression", ["gz", "zst"])
def test_the_files_of_a_folder_can_be_compressed(compression, tmp_path):
    records = [{"n": n} for n in range(5)]
    data.export.Jsonl(tmp_path / "out", compression, records_per_file=2)(records)

    names = [path.name for path in sorted((tmp_path / "out").glob("part-*"))]
    assert names == [f"part-0000{number}.jsonl.{compression}" for number in range(3)]
    unpack = {"gz": gzip.decompress, "zst": zstandard.ZstdDecompressor().decompressobj().decompress}
    first = parts(tmp_path / "out")[0]
    assert unpack[compression](first) == b'{"n":0}\n{"n":1}\n'


def test_names_of_more_than_100_000_files_sort_in_the_order_of_the_records(tmp_path, monkeypatch):
    monkeypatch.setattr(json_lines, "_LEAST_DIGITS", 1)
    data.export.Jsonl(tmp_path / "out", records_per_file=1)([{"n": n} for n in range(11)])

    assert [orjson.loads(part)["n"] for part in parts(tmp_path / "out")] == list(range(11))
    assert (tmp_path / "out" / "part-00.jsonl").exists()


def test_a_folder_with_other_files_or_the_name_of_a_file_is_refused(tmp_path):
    with pytest.raises(DefinitionError, match="must be that of a folder, such as 'corpus'"):
        data.export.Jsonl("out.jsonl.gz", records_per_file=3)
    with pytest.raises(OperatorOptionError, match="at least 1"):
        data.export.Jsonl("out", records_per_file=0)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").touch()
    with pytest.raises(StorageError, match=r"no export wrote \(notes.txt\)"):
        data.export.Jsonl(tmp_path / "mine", records_per_file=3)([{"n": 1}])


def test_blank_lines_of_an_input_are_not_counted_as_records(tmp_path):
    (tmp_path / "in.jsonl").write_text('{"n": 0}\n\n{"n": 1}\n\n\n{"n": 2}')
    given = JsonlDataset.of_file(tmp_path / "in.jsonl")
    data.export.Jsonl(tmp_path / "out", records_per_file=2)(given)

    assert parts(tmp_path / "out") == [b'{"n":0}\n{"n":1}\n', b'{"n":2}\n']
