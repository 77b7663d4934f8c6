"""Tests of dagster_dataops.readers.delimited.delimited_files, its rows and its cells."""

import csv
import gzip
import io
import json
import tracemalloc
from itertools import islice

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from dagster_dataops import errors, readers
from dagster_dataops.testing import assert_resumes_anywhere
from tests.examples import at_most

CELLS = st.text(
    st.one_of(st.sampled_from('",\n\r ;é\u2028\x00'), st.characters(exclude_categories=["Cs"])),
    max_size=12,
)

TABLES = st.lists(st.lists(CELLS, min_size=3, max_size=3), max_size=30)
# Other line ends stand inside cells without quotes, and would be read as the end of a row.
QUOTING = {"\r\n": csv.QUOTE_MINIMAL, "\n": csv.QUOTE_ALL, "\r": csv.QUOTE_ALL}


@pytest.mark.parametrize(
    ("content", "types", "message"),
    [
        ("a\n1\nx\n", {"a": int}, r"a\.csv, line 3: column 'a': 'x' is not a valid int"),
        ("a\n1\n1_0\n", {"a": int}, "'1_0' is not a valid int"),
        ("a\n1\n99999999999999999999\n", {"a": int}, "is not a valid int"),
        ("a\n1\nnan\n", {"a": float}, "'nan' is not a valid float: JSON holds finite numbers"),
        ("a\n1\nmaybe\n", {"a": bool}, "'maybe' is not a valid bool"),
        ('a\n1\n"{"\n', {"a": "json"}, r"'\{' is not a valid json"),
        ("a\n1\n1,2\n", {}, r"line 3: has 2 cells; the file has 1 column: a"),
        ('a\n1\n"x\n\n', {}, r"line 3: the row that begins here never ends"),
        (b"a\n1\n\xff\n", {}, "line 3: is not utf-8-sig text"),
    ],
)
def test_a_bad_row_is_an_error_after_the_rows_before_it(written, content, types, message):
    rows = iter(readers.read_delimited(written(content), types=types).and_return())
    assert next(rows)["a"] in ["1", 1]
    with pytest.raises(errors.StreamSourceError, match=message):
        next(rows)


def test_bad_rows_are_skipped_kept_and_counted(written):
    path = written(b'a,b\n1,2\n3\n"4\n4",x\n\xff,6\n7,8\n')
    stream = readers.read_delimited(path, types={"b": int}).and_return(on_error="quarantine")
    assert list(stream) == [{"a": "1", "b": 2}, {"a": "7", "b": 8}]
    assert [one["item"] for one in stream.quarantined] == [["3"], ["4\n4", "x"], ["\udcff", "6"]]
    assert [one["message"].partition("line ")[2][:2] for one in stream.quarantined] == [
        "3:",
        "4:",
        "6:",
    ]


def test_invalid_columns_are_refused(written):
    with pytest.raises(errors.StreamSourceError, match="has two columns 'a'"):
        list(readers.read_delimited(written("a,a\n1,2\n")))
    with pytest.raises(errors.StreamSourceError, match="has no column 'z', which types names"):
        list(readers.read_delimited(written("a,b\n1,2\n"), types={"z": int}))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"header": False}, "header=False needs names"),
        ({"names": ["a", "a"]}, "names contains 'a' twice"),
        ({"names": "ab"}, "it must be a list of texts"),
        ({"types": {"a": list}}, "types: a is <class 'list'>; it is one of int"),
        ({"delimiter": "::"}, "delimiter"),
        ({"encoding": "utf-7000"}, "unknown encoding"),
        ({"block_size": 1}, "at least 1024"),
    ],
)
def test_invalid_arguments_are_refused_at_construction(options, message):
    with pytest.raises(errors.StreamDefinitionError, match=message):
        readers.read_delimited("none.csv", **options)


def test_every_file_has_its_header(written):
    paths = [written("a,b\n1,2\n", "1.csv"), written("b,a\n3,4\n", "2.csv")]
    assert list(readers.read_delimited(paths, types=int)) == [{"a": 1, "b": 2}, {"b": 3, "a": 4}]
    assert_resumes_anywhere(lambda: readers.read_delimited(paths))


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "csv.gz"])
def test_memory_does_not_grow_with_the_file(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    lines = "".join(f'{n},"two\nlines",{"x" * 40}\n' for n in range(100))
    with gzip.open(path, "wt") if suffix.endswith("gz") else path.open("w") as file:
        for _ in range(1000):
            file.write(lines)
    stream = iter(
        readers.read_delimited(path, names=["n", "a", "b"], types={"n": int}).and_return()
    )
    next(stream)
    tracemalloc.start()
    try:
        held, number = [], 0
        for number, _ in enumerate(stream, 2):
            if number % 10_000 == 0:
                held.append(tracemalloc.get_traced_memory()[0])
        assert number == 100_000
        assert max(held) < 12 << 20
        assert held[-1] < held[0] + (4 << 20)
    finally:
        tracemalloc.stop()


def test_a_registered_reader_may_return_it_and_feed_a_pipeline(written):
    from dagster_dataops import DataPipelineBuilder, data, data_register, pipeline

    path = str(written("n,t\n1,a\n2,b\n"))

    @data_register("data.delimited_test")
    def table(path: str) -> DataPipelineBuilder:
        return readers.read_delimited(path, types={"n": int})

    @data_register("data.delimited_test")
    def double(data: dict):
        data["n"] *= 2
        return data

    with pipeline("tables") as ppl:
        ppl.double = double()
    assert ppl(data.delimited_test.table(path=path)) == [{"n": 2, "t": "a"}, {"n": 4, "t": "b"}]


@pytest.mark.parametrize(
    ("content", "encoding"),
    [(b"n,\xff\n1,2\n", None), ("n,t\n1,a\n".encode("utf-16") + b"\1", "utf-16")],
    ids=["header", "odd number of bytes"],
)
def test_a_file_that_is_no_text_is_one_failed_item(content, encoding, tmp_path):
    for name in ("1.csv", "3.csv"):
        (tmp_path / name).write_bytes("n,t\n1,a\n".encode(encoding or "utf-8"))
    (tmp_path / "2.csv").write_bytes(content)

    stream = readers.read_delimited(tmp_path, encoding=encoding).and_return(on_error="quarantine")

    assert list(stream) == [{"n": "1", "t": "a"}] * 2
    assert "2.csv" in stream.quarantined[0]["message"]
    assert stream.errors == 1


def test_cells_have_types(written):
    path = written('i,f,b,j,s\n1,2.5,Yes,"{""a"":[1]}",x\n,,,,\n-3,1e3,0,null,NA\n')
    types = {"i": int, "f": "float", "b": bool, "j": "json", "s": str}
    assert list(readers.read_delimited(path, types=types, missing=["NA"])) == [
        {"i": 1, "f": 2.5, "b": True, "j": {"a": [1]}, "s": "x"},
        {"i": None, "f": None, "b": None, "j": None, "s": ""},
        {"i": -3, "f": 1000.0, "b": False, "j": None, "s": None},
    ]
    assert list(readers.read_delimited(written("a,b\n1,2\n"), types=int)) == [{"a": 1, "b": 2}]


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        ("a,b\n1,2\n", {}, [{"a": "1", "b": "2"}]),
        ("a,b\r\n1,2", {}, [{"a": "1", "b": "2"}]),
        ("a,b\r1,2\r3,4\r", {}, [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]),
        ("\n\na\n\n1\n\n", {}, [{"a": "1"}]),
        ('a\n"x, ""y""\r\nz"\n', {}, [{"a": 'x, "y"\r\nz'}]),
        ('"a\nb"\n1\n', {}, [{"a\nb": "1"}]),
        ("a\tb\n1\t2", {"delimiter": "\t"}, [{"a": "1", "b": "2"}]),
        ("'1','2'\n", {"quotechar": "'", "names": ["x", "y"]}, [{"x": "1", "y": "2"}]),
        ('"1\n', {"quotechar": None, "names": ["x"]}, [{"x": '"1'}]),
        ("a,b\n1,2\n", {"names": ["x", "y"], "header": True}, [{"x": "1", "y": "2"}]),
        ("a\n1\\\n2\n", {"escapechar": "\\"}, [{"a": "1\n2"}]),
        ("a, b\n1, 2\n", {"skipinitialspace": True}, [{"a": "1", "b": "2"}]),
        (b"\xef\xbb\xbfa\n1\n", {}, [{"a": "1"}]),
        ("a\né\n".encode("utf-16"), {"encoding": "utf-16"}, [{"a": "é"}]),
        (b"a\n\xe9\n", {"encoding": "latin-1"}, [{"a": "é"}]),
        ("", {}, []),
        ("a,b", {}, []),
        ("\n\n", {}, []),
        ("a,b\n,\n", {}, [{"a": "", "b": ""}]),
        ("a,b\n,NA\n", {"missing": ["NA", ""]}, [{"a": None, "b": None}]),
    ],
)
def test_rows_are_split_correctly(written, content, options, expected):
    assert list(readers.read_delimited(written(content), **options)) == expected


def test_the_error_for_a_long_cell_names_the_limit_of_csv(written):
    path = written("a\n" + "x" * 200_000 + "\n")
    with pytest.raises(errors.StreamSourceError, match=r"line 2: field larger.*field_size_limit"):
        list(readers.read_delimited(path))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=at_most(150))
@given(
    table=TABLES,
    terminator=st.sampled_from(["\n", "\r\n", "\r"]),
    delimiter=st.sampled_from(",;\t"),
    encoding=st.sampled_from(["utf-8", "utf-16", "utf-32-be"]),
    times=st.sampled_from([1, 40]),
)
def test_csv_output_is_read_as_the_csv_module_reads_it(
    tmp_path, table, terminator, delimiter, encoding, times
):
    file = io.StringIO(newline="")
    writer = csv.writer(
        file, delimiter=delimiter, lineterminator=terminator, quoting=QUOTING[terminator]
    )
    writer.writerows(table * times)
    path = tmp_path / "table.csv"
    path.write_bytes(file.getvalue().encode(encoding))
    expected = list(csv.reader(io.StringIO(file.getvalue(), newline=""), delimiter=delimiter))
    options = {"delimiter": delimiter, "encoding": encoding, "names": ["x", "y", "z"]}

    rows = list(readers.read_delimited(path, block_size=1024, **options))

    assert [list(row.values()) for row in rows] == [row for row in expected if row]


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=at_most(25))
@given(table=TABLES, terminator=st.sampled_from(["\n", "\r\n"]))
def test_rows_resume_anywhere_with_their_lines(tmp_path, table, terminator):
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator=terminator, quoting=QUOTING[terminator])
    writer.writerows([["x", "y", "z"], *table * 8])
    path = tmp_path / "table.csv"
    path.write_bytes(file.getvalue().encode())
    assert_resumes_anywhere(
        lambda: readers.read_delimited(path, block_size=1024, line_key="line"), limit=40
    )


def test_line_numbers_are_those_of_row_starts_even_after_resuming(written):
    rows = [[str(n), "two\nlines" if n % 3 == 0 else "one"] for n in range(2000)]
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator="\n").writerows([["h\n1", "h2"], *rows])
    path = written(file.getvalue())
    expected, line = [], 3
    for row in rows:
        expected.append({"n": row[0], "t": row[1], "file": str(path), "line": line})
        line += 1 + row[1].count("\n")

    def made():
        return readers.read_delimited(
            path, names=["n", "t"], header=True, block_size=1024, file_key="file", line_key="line"
        ).and_return()

    stream = made()
    assert list(islice(stream, 1500)) == expected[:1500]
    again = made()
    again.load_state_dict(json.loads(json.dumps(stream.state_dict())))
    assert list(again) == expected[1500:]


def test_a_row_longer_than_a_block_is_one_row(written):
    text = "\n".join("x" * 99 for _ in range(500))
    path = written(f'a,b\n1,2\n"{text}",3\n4,5\n')
    rows = list(readers.read_delimited(path, block_size=1024))
    assert rows == [{"a": "1", "b": "2"}, {"a": text, "b": "3"}, {"a": "4", "b": "5"}]


def test_a_position_belongs_to_the_types_it_was_read_with(written):
    path = written("a\n1\n2\n")
    stream = readers.read_delimited(path).and_return()
    next(iter(stream))
    state = stream.state_dict()
    with pytest.raises(errors.StreamStateError, match="options"):
        readers.read_delimited(path, types=int).and_return().load_state_dict(state)
    with pytest.raises(errors.StreamStateError, match="options"):
        readers.read_delimited(path, delimiter=";").and_return().load_state_dict(state)
