"""Tests of arrow_tables, arrow_files, arrow_columns and arrow_values in readers.arrow."""

import gzip
import json
import sys
import tracemalloc
from itertools import islice

import pytest

from dagster_dataops import (
    errors,
    readers,
)
from dagster_dataops.testing import assert_resumes_anywhere

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

ROWS = [{"n": n, "text": f"t{n}", "deep": {"a": [n, None]}} for n in range(5000)]


def write_parquet(path, rows, group=1500):
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=group)


def write_file(path, rows, batch=1500):
    table = pa.Table.from_pylist(rows)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, batch)


def write_stream(path, rows, batch=1500):
    table = pa.Table.from_pylist(rows)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, batch)


KINDS = {
    "parquet": (write_parquet, readers.read_parquet),
    "arrow file": (write_file, readers.read_arrow),
    "arrow stream": (write_stream, readers.read_arrow),
}


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


def test_rows_are_records(tmp_path, kind):
    write, read = kind
    write(tmp_path / "t", ROWS)
    assert list(read(tmp_path / "t")) == ROWS
    two = list(read(tmp_path / "t", ["text", "n"], file_key="f"))
    assert two[0] == {"text": "t0", "n": 0, "f": str(tmp_path / "t")}
    assert list(two[0]) == ["text", "n", "f"]


def test_they_resume_anywhere(tmp_path, kind):
    write, read = kind
    write(tmp_path / "t", ROWS[:30], 7)
    write(tmp_path / "u", ROWS[:5], 7)
    assert_resumes_anywhere(lambda: read([tmp_path / "t", tmp_path / "u"]).repeat(2))


@pytest.mark.parametrize("stop", [1, 1023, 1024, 1025, 1499, 1500, 1501, 4999, 5000])
def test_they_resume_at_the_borders_of_batches_and_groups(tmp_path, kind, stop):
    write, read = kind
    write(tmp_path / "t", ROWS)
    stream = read(tmp_path / "t").and_return()
    assert list(islice(stream, stop)) == ROWS[:stop]
    again = read(tmp_path / "t").and_return()
    again.load_state_dict(json.loads(json.dumps(stream.state_dict())))
    assert list(again) == ROWS[stop:]


def test_only_the_group_at_which_it_stood_is_read_again(tmp_path, monkeypatch):
    write_parquet(tmp_path / "t", ROWS)
    stream = readers.read_parquet(tmp_path / "t").and_return()
    list(islice(stream, 4600))
    state = stream.state_dict()
    groups = []
    batches = pq.ParquetFile.iter_batches
    monkeypatch.setattr(
        pq.ParquetFile,
        "iter_batches",
        lambda self, size, which, *rest, **more: (
            groups.extend(which) or batches(self, size, which, *rest, **more)
        ),
    )
    again = readers.read_parquet(tmp_path / "t").and_return()
    again.load_state_dict(state)
    assert list(again) == ROWS[4600:]
    assert groups == [3]


def test_unknown_columns_are_named(tmp_path, kind):
    write, read = kind
    write(tmp_path / "t", ROWS[:2])
    with pytest.raises(errors.StreamSourceError, match=r"no column 'x'; there are \['n', 'text'"):
        list(read(tmp_path / "t", ["x"]))
    with pytest.raises(errors.StreamArgumentError, match="must be a list of texts"):
        read(tmp_path / "t", "n")


@pytest.mark.parametrize("share", [0.0, 0.5, 0.95])
def test_a_truncated_file_is_an_error_that_names_the_file(tmp_path, kind, share):
    write, read = kind
    write(tmp_path / "t", ROWS)
    content = (tmp_path / "t").read_bytes()
    (tmp_path / "t").write_bytes(content[: int(len(content) * share)])
    with pytest.raises(errors.StreamSourceError, match=r"/t: is not a valid"):
        list(read(tmp_path / "t"))


def test_a_missing_file_is_named(tmp_path, kind):
    with pytest.raises(errors.StreamSourceError, match="none: cannot be read"):
        list(kind[1](tmp_path / "none"))


def test_streams_may_be_packed_and_files_not(tmp_path):
    write_stream(tmp_path / "t", ROWS[:9], 2)
    (tmp_path / "s.arrow.gz").write_bytes(gzip.compress((tmp_path / "t").read_bytes()))
    assert_resumes_anywhere(lambda: readers.read_arrow(tmp_path / "s.arrow.gz"))
    write_file(tmp_path / "t", ROWS[:9])
    (tmp_path / "s.arrow.gz").write_bytes(gzip.compress((tmp_path / "t").read_bytes()))
    with pytest.raises(errors.StreamSourceError, match="decompress it first"):
        list(readers.read_arrow(tmp_path / "s.arrow.gz"))


@pytest.mark.slow
def test_they_are_read_by_url(tmp_path, kind):
    import fsspec

    write, read = kind
    write(tmp_path / "t", ROWS)
    fsspec.filesystem("memory").pipe("/tables/t", (tmp_path / "t").read_bytes())
    assert list(read("memory://tables/t")) == ROWS
    with pytest.raises(errors.StreamSourceError, match="no such file"):
        list(read("memory://tables/none"))


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path):
    schema = pa.schema([("n", pa.int64()), ("text", pa.string())])
    with pq.ParquetWriter(tmp_path / "t", schema) as writer:
        for at in range(0, 200_000, 50_000):
            texts = [f"{n:040d}" for n in range(at, at + 50_000)]
            writer.write_table(pa.table({"n": range(at, at + 50_000), "text": texts}, schema))
    stream = iter(readers.read_parquet(tmp_path / "t").and_return())
    next(stream)
    tracemalloc.start()
    try:
        arrow = pa.total_allocated_bytes()
        most = 0
        for number, _ in enumerate(stream):
            if number % 10_000 == 0:
                most = max(most, tracemalloc.get_traced_memory()[0])
        assert number == 199_998
        assert most < 4 << 20
        assert pa.total_allocated_bytes() - arrow < 16 << 20
    finally:
        tracemalloc.stop()


def test_a_missing_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "dagster_dataops.readers.arrow.arrow_files", None)
    monkeypatch.delattr("dagster_dataops.readers.arrow.arrow_files")
    with pytest.raises(errors.MissingExtraError, match=r"read_parquet needs .*\[arrow\]"):
        readers.read_parquet("x.parquet")


@pytest.mark.parametrize("policy", ["skip", "quarantine"])
def test_rows_that_json_cannot_hold_are_named_and_passed_over(tmp_path, kind, policy):
    write, read = kind
    rows = [{"n": n, "score": float(n), "deep": [{"x": [float(n)]}]} for n in range(3000)]
    rows[1700]["score"], rows[2900]["deep"][0]["x"][0] = float("nan"), float("inf")
    write(tmp_path / "t", rows)
    good = [row for row in rows if row["n"] not in {1700, 2900}]

    stream = read(tmp_path / "t").and_return(on_error=policy)

    assert list(stream) == good
    assert stream.errors == 2
    if policy == "quarantine":
        messages = [one["message"] for one in stream.quarantined]
        assert all(str(tmp_path / "t") in one for one in messages)
        assert "row 1701: column 'score' has a value that cannot be read: nan" in messages[0]
        assert "row 2901: column 'deep' has a value that cannot be read: inf" in messages[1]
    with pytest.raises(errors.StreamSourceError, match=r"row 1701: .*missing=\['nan'\]"):
        list(read(tmp_path / "t"))


def test_a_stream_that_skips_rows_resumes_anywhere(tmp_path, kind):
    write, read = kind
    rows = [{"x": float("nan") if n in {0, 6, 7, 13, 19} else n / 2} for n in range(20)]
    write(tmp_path / "t", rows, 7)
    stream = read([tmp_path / "t", tmp_path / "t"]).and_return(on_error="skip")
    states = [json.loads(json.dumps(stream.state_dict()))]
    found = []
    for row in stream:
        found.append(row)
        states.append(json.loads(json.dumps(stream.state_dict())))
    assert stream.errors == 10
    for number, state in enumerate(states):
        again = read([tmp_path / "t", tmp_path / "t"]).and_return(on_error="skip")
        again.load_state_dict(state)
        assert list(again) == found[number:]
        assert again.errors == 10


def test_numbers_that_json_cannot_hold_become_null_where_asked(tmp_path, kind):
    write, read = kind
    rows = [{"a": float("nan"), "b": [float("inf"), 1.5], "c": "NA"}, {"a": 1.0, "b": [], "c": "x"}]
    write(tmp_path / "t", rows)

    found = list(read(tmp_path / "t", missing=["NaN", "Inf", "NA"]))

    assert found == [{"a": None, "b": [None, 1.5], "c": None}, {"a": 1.0, "b": [], "c": "x"}]
    with pytest.raises(errors.StreamArgumentError, match="must be a list of texts"):
        read(tmp_path / "t", missing="nan")


def test_a_state_from_before_failures_were_counted_is_taken(tmp_path, kind):
    write, read = kind
    write(tmp_path / "t", ROWS[:10])
    stream = read(tmp_path / "t").and_return()
    list(islice(stream, 4))
    state = stream.state_dict()
    within = state["position"]["within"]
    assert (within["item_index"], within["failed_before"]) == (4, 0)
    older = [0, [within["group"], within["item_index"]], 0]
    state |= {"version": 2, "position": older}
    again = read(tmp_path / "t").and_return()
    again.load_state_dict(state)
    assert list(again) == ROWS[4:10]


def test_the_groups_around_a_damaged_one_are_read(tmp_path):
    path = tmp_path / "t"
    rows = [{"n": n, "text": f"text {n} " * 9} for n in range(60)]
    pq.write_table(
        pa.Table.from_pylist(rows), path, row_group_size=20, compression="none",
        use_dictionary=False, write_page_checksum=True,
    )  # fmt: skip
    content = bytearray(path.read_bytes())
    place = pq.read_metadata(path).row_group(1).column(1).data_page_offset
    content[place : place + 30] = b"\xff" * 30
    path.write_bytes(content)
    pq.write_table(pa.Table.from_pylist(rows[:5]), tmp_path / "u")
    (tmp_path / "v").write_bytes(b"PAR1 not a table PAR1")

    stream = readers.read_parquet([path, tmp_path / "v", tmp_path / "u"]).and_return(
        on_error="quarantine"
    )

    assert list(stream) == [*rows[:20], *rows[40:], *rows[:5]]
    first, second = (one["message"] for one in stream.quarantined)
    assert f"{path}, row group 2 of 3: is not a valid Parquet file" in first
    assert f"{tmp_path / 'v'}: is not a valid Parquet file" in second


def test_columns_of_folders_are_columns_of_the_records(tmp_path):
    table = pa.table({"text": list("abcd"), "lang": ["de", "en", "a b", None], "y": [1, 2, 2, 1]})
    pq.write_to_dataset(table, tmp_path / "hive", partition_cols=["lang", "y"])

    def by_text(rows):
        return sorted(rows, key=lambda row: row["text"])

    assert by_text(readers.read_parquet(tmp_path / "hive")) == table.to_pylist()
    assert by_text(readers.read_parquet(str(tmp_path / "hive" / "lang=*" / "y=1" / "*"))) == [
        {"text": "a", "lang": "de", "y": 1}, {"text": "d", "lang": None, "y": 1},
    ]  # fmt: skip
    assert by_text(readers.read_parquet(tmp_path / "hive", ["y", "text"]))[1] == {
        "text": "b",
        "y": 2,
    }
    for wanted in (["y", "text"], ["lang", "text", "y"], ["lang"]):
        assert all(list(row) == wanted for row in readers.read_parquet(tmp_path / "hive", wanted))
    (row, *_) = readers.read_parquet(tmp_path / "hive", ["y", "text"], file_key="file")
    assert list(row) == ["y", "text", "file"]
    assert by_text(readers.read_parquet(tmp_path / "hive", hive=False))[0] == {"text": "a"}
    assert_resumes_anywhere(lambda: readers.read_parquet(tmp_path / "hive"))


@pytest.mark.parametrize(("write", "read"), KINDS.values(), ids=KINDS)
def test_too_many_bad_rows_end_the_stream_with_their_number(write, read, tmp_path):
    write(tmp_path / "t", [{"x": float("nan")}] * 3)
    stream = read(tmp_path / "t").and_return(on_error="skip", max_errors=2)

    with pytest.raises(errors.DataPipelineError, match=r"^failed items: 3, more than max_errors=2"):
        list(stream)


def test_the_batches_around_damage_in_an_arrow_file_are_read(tmp_path):
    rows = [{"n": n, "text": f"t{n}" * 20} for n in range(1000)]
    write_file(tmp_path / "t", rows, 100)
    content = (tmp_path / "t").read_bytes()
    middle = len(content) // 2
    damaged = content[:middle] + b"\xff" * 3000 + content[middle + 3000 :]
    (tmp_path / "t").write_bytes(damaged)

    stream = readers.read_arrow(tmp_path / "t").and_return(on_error="skip")
    found = list(stream)

    assert stream.errors
    assert found[:300] == rows[:300]
    assert found[-300:] == rows[-300:]
