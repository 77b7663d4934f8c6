"""Draws from several streams."""

import pytest

from dagster_dataops import DataPipeline, errors, read_sequence


def test_records_follow_the_weights():
    drawn = DataPipeline.sample(
        DataPipeline.constant("a").map(str), read_sequence(["b"] * 2000), weights=[3, 1], seed=1
    )
    items = list(drawn)

    assert items.count("b") == 2000
    assert 2.7 < items.count("a") / 2000 < 3.3


def test_sample_without_repeats_draws_pseudo_infinite_streams_as_well():
    items = list(
        DataPipeline.sample(
            DataPipeline.count(), read_sequence(["x"] * 20), allow_repeats=False, seed=1
        )
    )

    assert items.count("x") == 20
    assert [item for item in items if item != "x"] == list(range(len(items) - 20))
    assert len(items) > 22


def test_an_empty_stream_cannot_be_sampled():
    with pytest.raises(errors.DataPipelineError, match="index 1 is empty"):
        list(DataPipeline.sample(read_sequence([1]), read_sequence([])))
