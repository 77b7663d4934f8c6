"""Tests of dagster_dataops.pipelines.graph.export_check."""

from pathlib import Path

import pytest

from dagster_dataops import config, data, pipeline
from dagster_dataops.errors import PipelineDefinitionError


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (lambda: data.export.Parquet("a.parquet"), lambda: data.export.Csv("a.parquet")),
        (
            lambda: data.export.Csv("a.csv"),
            lambda: data.export.Csv(config.data_process_path / "a.csv"),
        ),
        (
            lambda: data.text.Normalize().set_output(Path("a.csv").absolute()),
            lambda: data.export.Csv(Path("a.csv").absolute()),
        ),
        (
            lambda: data.export.WebDataset("w/a-%d.tar"),
            lambda: data.export.WebDataset("w/b-%d.tar"),
        ),
        (lambda: data.export.HuggingFace("hf"), lambda: data.export.Csv("hf/a.csv")),
        (lambda: data.export.Csv("hf/deep/a.csv"), lambda: data.export.HuggingFace("hf")),
    ],
)
def test_nodes_that_share_an_export_are_refused(first, second):
    with (
        pytest.raises(PipelineDefinitionError, match="nodes 'one' and 'two' both export"),
        pipeline("shared") as ppl,
    ):
        ppl.one = first()
        ppl.two = second()


def test_nodes_may_export_side_by_side():
    with pipeline("apart") as ppl:
        ppl.one = data.export.Csv("x/a.csv")
        ppl.two = data.export.Csv("x/b.csv")
        ppl.three = data.export.HuggingFace("x/hf")
        ppl.four = data.text.Normalize().set_output("x")
        ppl.five = data.text.Normalize().set_output("x")
    assert len(ppl.graph.nodes) == 5
