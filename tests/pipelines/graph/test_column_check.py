"""Tests of declared columns through a graph."""

import pytest

from dagster_dataops import pipeline
from dagster_dataops.errors import PipelineDefinitionError
from dagster_dataops.pipelines.graph.column_check import KnownColumns, check_columns
from dagster_dataops.pipelines.local_run import run_operator
from tests.registries import OperatorRegistry

registry = OperatorRegistry(run_operator)


def operator(name, **declared):
    def forward(record):
        return record

    forward.__name__ = name
    return registry("data.flow", **declared)(forward)()


decode = operator("decode", reads={"values": list[float]}, columns={"x": float, "y": float})
measure = operator("measure", reads={"x": float}, writes={"length": int})
show = operator("show", reads={"length": str})
use = operator("use", reads={"length": float, "y": float})
opaque = operator("opaque")


@registry("data.flow", rewrite_func="forward_batch_input", reads=["x"], columns=["x"])
def join(left: list[dict], right: list[dict]):
    return left + right


class First(registry.new_group("flow")):
    def sketch(self, record):
        return 0

    def keep(self, sketches):
        return (True for _ in sketches)


def built(*operators):
    with pipeline("flow") as ppl:
        for number, one in enumerate(operators):
            ppl.add(f"n{number}", one)
    return ppl


def wired(**nodes):
    with pipeline("flow") as ppl:
        for name, (one, *inputs) in nodes.items():
            ppl.add(name, one, inputs=inputs)
    return ppl


def test_columns_that_fit_are_taken():
    assert len(built(decode, measure, use).graph.nodes) == 3
    assert len(built(decode, First(), measure).graph.nodes) == 3


def test_a_missing_column_is_named_with_its_node_and_the_existing_columns():
    with pytest.raises(PipelineDefinitionError) as raised:
        built(decode, decode)
    assert str(raised.value) == (
        "Pipeline 'flow': node 'n1' reads column 'values' as list[float], which the result of "
        "'n0' does not have. It has: x (float), y (float)"
    )


def test_the_error_for_a_misspelt_column_names_the_nearest():
    with pytest.raises(PipelineDefinitionError, match="Did you mean 'x'"):
        built(decode, operator("near", reads=["xx"]))


def test_a_column_of_another_type_is_named_with_both():
    with pytest.raises(
        PipelineDefinitionError,
        match=r"'n2' reads column 'length' as str, and in the result of 'n1' it is int",
    ):
        built(decode, measure, show)


def test_a_column_dropped_on_the_way_is_missing():
    with pytest.raises(PipelineDefinitionError, match="'n2' reads column 'length' as float, which"):
        built(measure, decode, use)


def test_a_selection_keeps_the_columns_as_they_are():
    with pytest.raises(PipelineDefinitionError, match="'n2' reads column 'values'"):
        built(decode, First(), decode)


def test_undeclared_columns_are_not_checked():
    assert built(decode, opaque, decode, opaque, show)
    assert built(measure, use)  # only the source knows its other columns


def test_a_written_type_counts_without_other_information():
    with pytest.raises(PipelineDefinitionError, match="reads column 'length' as str"):
        built(measure, show)


def test_every_input_of_a_node_is_looked_at():
    texts = operator("texts", columns={"text": str})

    with pytest.raises(PipelineDefinitionError, match=r"the result of 'b' .*It has: text \(str\)"):
        wired(a=(decode, "source"), b=(texts, "source"), both=(measure, "a", "b"))


def test_combined_results_have_their_common_columns():
    other, reads_y = operator("xs", columns={"x": float, "y": str}), operator("y", reads={"y": str})
    two = {"a": (decode, "source"), "b": (other, "source"), "both": (measure, "a", "b")}
    equal = two | {"b": (decode, "source")}

    assert wired(**two, after=(reads_y, "both"))
    with pytest.raises(PipelineDefinitionError, match="'length' as str"):
        wired(**two, after=(show, "both"))
    with pytest.raises(PipelineDefinitionError, match="'y' as str"):
        wired(**equal, after=(reads_y, "both"))


def test_joins_have_only_known_result_columns():
    texts = operator("more_texts", columns={"text": str})

    with pytest.raises(PipelineDefinitionError, match=r"'after' .*It has: x \(Any\)"):
        wired(a=(texts, "source"), joined=(join(), "a", "a"), after=(decode, "joined"))


def test_the_source_counts_where_it_is_known():
    graph = built(decode).graph

    check_columns(graph.name, graph.ordered(), KnownColumns({"values": list[int]}, complete=True))
    check_columns(graph.name, graph.ordered(), KnownColumns({}, complete=False))
    with pytest.raises(PipelineDefinitionError, match="which the source does not have"):
        check_columns(graph.name, graph.ordered(), KnownColumns({}, complete=True))
