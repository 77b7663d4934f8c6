"""Text that is split into rows."""

import csv
import io

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from dagster_dataops import errors, readers
from tests.examples import at_most
from tests.readers.delimited.tables import QUOTING, TABLES


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
