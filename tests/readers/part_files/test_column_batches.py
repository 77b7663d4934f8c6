"""Batches over epochs."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops import PartFiles
from dagster_dataops.errors import DataPipelineError
from dagster_dataops.testing import assert_resumes_anywhere
from tests.readers.helpers import write_parts


class Rows(PartFiles):
    """One JSON object a line."""

    def parse(self, line):
        return json.loads(line)


def reader(folder, rows, size, epochs=1, **options):
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    write_parts(folder, lines)
    return Rows(folder, 1, batch_size=size, epochs=epochs, prefetch=0, **options).stream()


@pytest.fixture(scope="module")
def batches(tmp_path_factory):
    folder = tmp_path_factory.mktemp("batches")
    return lambda rows, *given, **options: reader(
        folder, [{"n": row} for row in rows], *given, **options
    )


def sizes(stream):
    return [len(batch["n"]) for batch in stream]


@given(
    count=st.integers(0, 9),
    size=st.integers(1, 12),
    epochs=st.integers(1, 3),
    kind=st.sampled_from(["short", "drop_last", "wrap"]),
)
def test_batches_hold_the_rows_in_their_order(batches, count, size, epochs, kind):
    rows = list(range(count))
    made = list(batches(rows, size, epochs, **({} if kind == "short" else {kind: True})))
    found = [row for batch in made for row in batch["n"]]

    if kind == "short":
        assert found == rows * epochs
    elif kind == "drop_last":
        assert found == rows[: count - count % size] * epochs
    else:
        assert found == list(itertools.islice(itertools.cycle(rows), len(found)))
        assert len(found) == -(-count * epochs // size) * size


@given(
    count=st.integers(0, 5),
    size=st.integers(1, 7),
    epochs=st.one_of(st.none(), st.integers(1, 3)),
    kind=st.sampled_from(["short", "drop_last", "wrap"]),
)
def test_batches_resume_at_any_position(batches, count, size, epochs, kind):
    more = {} if kind == "short" else {kind: True}
    assert_resumes_anywhere(lambda: batches(range(count), size, epochs, **more), limit=12)


def test_rows_of_other_columns_are_refused(tmp_path):
    with pytest.raises(DataPipelineError, match=r"\['a'\] and \['b'\]"):
        list(reader(tmp_path, [{"a": 1}, {"b": 2}], 2))


def test_the_stage_that_makes_a_stream_infinite_is_named(batches):
    assert batches([1], 1, None).endless_stage == "batch"
    assert batches([1], 1).endless_stage is None
    assert sizes(itertools.islice(batches([1, 2], 4, None, wrap=True), 3)) == [4, 4, 4]
