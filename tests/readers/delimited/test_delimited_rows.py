"""Positions in delimited files."""

import csv
import io
import json
from itertools import islice

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from dagster_dataops import errors, readers
from dagster_dataops.testing import assert_resumes_anywhere
from tests.examples import at_most
from tests.readers.delimited.tables import QUOTING, TABLES


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
