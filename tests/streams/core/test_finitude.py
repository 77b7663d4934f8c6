"""Whether a stream ends, and which stage makes it endless."""

from itertools import islice

import pytest

from dagster_dataops import DataPipeline, read_iterator, read_sequence

ENDLESS = [
    (DataPipeline.count(), "PSEUDO_INFINITE", "count"),
    (DataPipeline.constant(1).map(str).shuffle(3), "PSEUDO_INFINITE", "constant"),
    (read_sequence([1]).repeat(), "INFINITE", "repeat"),
    (DataPipeline.count().repeat(), "INFINITE", "repeat"),
    (DataPipeline.count().repeat(2), "PSEUDO_INFINITE", "count"),
    (
        DataPipeline.concat(read_sequence([1]), DataPipeline.count()),
        "PSEUDO_INFINITE",
        "count",
    ),
    (
        DataPipeline.round_robin(DataPipeline.count(), DataPipeline.constant(1)),
        "PSEUDO_INFINITE",
        "count",
    ),
    (
        DataPipeline.sample(read_sequence([1]), read_sequence([2]).repeat().map(str)),
        "INFINITE",
        "repeat",
    ),
    (
        DataPipeline.zip(DataPipeline.count(), read_sequence([1]).repeat()),
        "INFINITE",
        "repeat",
    ),
    (
        read_iterator(iter([1]), lambda old: iter([1]), infinite=True),
        "INFINITE",
        "read_iterator",
    ),
]


@pytest.mark.parametrize(("stream", "kind", "stage"), ENDLESS)
def test_an_infinite_stream_names_the_stage_that_causes_it(stream, kind, stage):
    assert stream.finitude.name == kind
    assert stream.endless_stage == stage
    assert stream.and_return().is_infinite()
    assert stream.take(3).finitude.name == "FINITE"


@pytest.mark.parametrize(
    "stream",
    [
        read_sequence([1]).repeat(3),
        DataPipeline.round_robin(DataPipeline.count(), read_sequence([1])),
        DataPipeline.round_robin(
            read_sequence([1]).repeat(), DataPipeline.count(), stop_at_shortest=True
        ),
        DataPipeline.sample(DataPipeline.count(), read_sequence([1])),
        DataPipeline.zip(DataPipeline.count(), read_sequence([1])),
        DataPipeline.zip(),
    ],
)
def test_the_finitude_of_a_stream_is_known(stream):
    assert stream.finitude.name == "FINITE"
    assert stream.endless_stage is None
    assert len(list(islice(stream, 100))) < 100
