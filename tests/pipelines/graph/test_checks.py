"""Tests of what is checked before a graph runs: columns, artefacts, sources, exports."""

import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from dagster_dataops import config, cook, data, data_register, pipeline
from dagster_dataops.errors import ExportError, PipelineDefinitionError
from dagster_dataops.pipelines.graph.column_check import KnownColumns, check_columns
from dagster_dataops.pipelines.graph.graph import OperatorGraph
from dagster_dataops.pipelines.graph.operator_node import OperatorNode
from dagster_dataops.pipelines.graph.source_check import with_source
from tests.nodes import ArtefactReference, run_operator
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
        for name, node in nodes.items():
            one, *inputs = node if isinstance(node, tuple) else (node,)
            ppl.add(name, one, inputs=inputs or None)
    return ppl


@pytest.mark.parametrize(
    "operators",
    [
        (decode, measure, use),
        (decode, First(), measure),
        (decode, opaque, decode, opaque, show),  # undeclared columns are not checked
        (measure, use),  # only the source knows its other columns
    ],
)
def test_columns_that_fit_are_taken(operators):
    assert len(built(*operators).graph.nodes) == len(operators)


TEXTS = operator("texts", columns={"text": str})
MISSING = [
    ("Did you mean 'x'", {"a": decode, "b": operator("near", reads=["xx"])}),
    (
        "'c' reads column 'length' as str, and in the result of 'b' it is int",
        {"a": decode, "b": measure, "c": show},
    ),
    ("'c' reads column 'length' as float, which", {"a": measure, "b": decode, "c": use}),
    ("'c' reads column 'values'", {"a": decode, "b": First(), "c": decode}),
    ("reads column 'length' as str", {"a": measure, "b": show}),
    (
        r"the result of 'b' .*It has: text \(str\)",
        {"a": (decode, "source"), "b": (TEXTS, "source"), "both": (measure, "a", "b")},
    ),
    (
        r"'after' .*It has: x \(Any\)",
        {"a": (TEXTS, "source"), "both": (join(), "a", "a"), "after": (decode, "both")},
    ),
]


@pytest.mark.parametrize(("said", "nodes"), MISSING)
def test_a_column_that_is_missing_or_of_another_type_is_refused(said, nodes):
    with pytest.raises(PipelineDefinitionError, match=said):
        wired(**nodes)


def test_a_missing_column_is_named_with_its_node_and_the_existing_columns():
    with pytest.raises(PipelineDefinitionError) as raised:
        built(decode, decode)
    assert str(raised.value) == (
        "Pipeline 'flow': node 'n1' reads column 'values' as list[float], which the result of "
        "'n0' does not have. It has: x (float), y (float)"
    )


def test_combined_results_have_their_common_columns():
    other, reads_y = operator("xs", columns={"x": float, "y": str}), operator("y", reads={"y": str})
    two = {"a": (decode, "source"), "b": (other, "source"), "both": (measure, "a", "b")}
    equal = two | {"b": (decode, "source")}

    assert wired(**two, after=(reads_y, "both"))
    with pytest.raises(PipelineDefinitionError, match="'length' as str"):
        wired(**two, after=(show, "both"))
    with pytest.raises(PipelineDefinitionError, match="'y' as str"):
        wired(**equal, after=(reads_y, "both"))


def test_the_source_counts_where_it_is_known():
    graph = built(decode).graph

    check_columns(graph.name, graph.ordered(), KnownColumns({"values": list[int]}, complete=True))
    check_columns(graph.name, graph.ordered(), KnownColumns({}, complete=False))
    with pytest.raises(PipelineDefinitionError, match="which the source does not have"):
        check_columns(graph.name, graph.ordered(), KnownColumns({}, complete=True))


group = data_register.new_group("artefact_check_tests")


class Index(group):
    def __init__(self, base=None, **kwargs):
        super().__init__(**kwargs)
        self.base = base

    def build(self, records, folder):
        (folder / "count").write_text(str(sum(1 for _ in records)))


class Search(group):
    def __init__(self, index, **kwargs):
        super().__init__(**kwargs)
        self.index = index

    def forward(self, record):
        return record


def graph_of(*nodes: OperatorNode) -> OperatorGraph:
    return OperatorGraph.of("docs", nodes)


def node(name: str, operator, *inputs: str) -> OperatorNode:
    return OperatorNode(name, operator, inputs or ("source",))


def search(index: str = "index"):
    return Search(index=ArtefactReference(index))


def test_a_node_comes_after_the_artefacts_in_its_options() -> None:
    graph = graph_of(node("search", search()), node("index", Index()))
    assert [each.name for each in graph.ordered()] == ["index", "search"]
    assert graph.nodes["search"].artefacts == ("index",)


ARTEFACTS = [
    (
        r"node 'search' takes its input from 'index', which is an artefact.*index=ppl\.index",
        lambda: [node("index", Index()), node("search", search(), "index")],
    ),
    (
        "node 'search' names 'plain' in option 'index', which is a record operator.*`inputs`",
        lambda: [node("plain", opaque), node("search", search("plain"))],
    ),
    (
        r"names 'indices' in option 'index', which is not a node of the pipeline; did .* 'index'",
        lambda: [node("index", Index()), node("search", search("indices"))],
    ),
    (
        "which is not a node of the pipeline; artefacts: index$",
        lambda: [node("index", Index()), node("search", search("xyz"))],
    ),
    ("cycle", lambda: [node("search", search()), node("index", Index(), "search")]),
    ("cycle", lambda: [node("index", Index(base=ArtefactReference("index")))]),
]


@pytest.mark.parametrize(("reason", "nodes"), ARTEFACTS)
def test_what_is_no_artefact_of_the_graph_is_refused(reason: str, nodes: Any) -> None:
    with pytest.raises(PipelineDefinitionError) as caught:
        graph_of(*nodes())
    assert re.search(reason, caught.value.reason)


def test_the_source_as_an_option_is_refused() -> None:
    expected = pytest.raises(PipelineDefinitionError, match="which is the input of the pipeline")
    with expected, pipeline() as ppl:
        ppl.search = Search(index=ppl.source)


def test_a_reference_outside_its_pipeline_is_refused() -> None:
    with pipeline() as ppl:
        ppl.index = Index()
    with pytest.raises(PipelineDefinitionError, match="it has no artefacts"):
        Search(index=ppl.index)([{}])


COLUMNS = {"n": float, "tags": list[str | None], "note": str | None, "any": Any}


def measured(record: Any) -> Any:
    return record


def same(record: Any) -> Any:
    return record


typed = registry("data.exporting", columns=COLUMNS)(measured)
count = registry("data.exporting", writes={"n": int})(same)


def types_in(path: Path) -> dict[str, str]:
    return {field.name: str(field.type) for field in pq.read_schema(path)}


def declared(ppl: Any) -> dict[str, Any]:
    graph = with_source(ppl.graph)
    return {name: dict(node.operator.__dataops__.columns) for name, node in graph.nodes.items()}


def test_an_export_has_the_declared_types_of_what_it_writes(root: Path) -> None:
    with pipeline("typed") as ppl:
        ppl.made = typed()
        ppl.file = data.export.Parquet("made.parquet")
    ppl.materialize([{"n": 1, "tags": [], "note": None, "any": True}])
    assert types_in(root / "made.parquet") == {
        "n": "double",
        "tags": "list<element: string>",
        "note": "string",
        "any": "bool",
    }


def test_columns_that_no_record_has_are_there(root: Path) -> None:
    made = typed().set_output(str(root / "made.parquet"))
    made([])
    assert types_in(root / "made.parquet")["tags"] == "list<element: string>"
    made([{"n": 2}])
    assert pq.read_table(root / "made.parquet").to_pylist() == [
        {"n": 2.0, "tags": None, "note": None}
    ]


def test_a_schema_goes_before_declared_types(root: Path) -> None:
    with pipeline("typed") as ppl:
        ppl.made = typed()
        ppl.file = data.export.Parquet("made.parquet", schema={"n": "float"})
    ppl.materialize([{"n": 1}])
    assert types_in(root / "made.parquet")["n"] == "float"


def test_a_value_that_does_not_fit_a_declared_type_fails_the_export(root: Path) -> None:
    with pytest.raises(ExportError, match=r"0\.5.*int64"):
        count().set_output(str(root / "made.parquet"))([{"n": 1}, {"n": 0.5}])


def test_changed_types_make_the_export_anew(root: Path) -> None:
    config.data_process_resume = True
    for kind in (float, int):
        made = registry("data.exporting", writes={"n": kind})(same)
        made().set_output(str(root / "made.parquet"))([{"n": 1}])
    assert types_in(root / "made.parquet") == {"n": "int64"}


def test_columns_pass_through_nodes_that_keep_them() -> None:
    with pipeline("typed") as ppl:
        ppl.made = typed()
        ppl.unique = data.dedup.Exact(input_key="note")
        ppl.counted = count()
        ppl.file = data.export.Csv("a.csv")
    found = declared(ppl)
    assert found["file"] == {**COLUMNS, "n": int}
    assert found["made"] == {}


class Source:
    """A source with one dataset."""

    is_crude = True
    sources = ()


def sourced_graph(*nodes):
    with pipeline("p") as ppl:
        for number, node in enumerate(nodes):
            setattr(ppl, f"n{number}", node)
    return ppl.graph


def test_only_nodes_that_take_a_crude_source_must_cook():
    unique = data.dedup.Exact(input_key="text")
    with_source(sourced_graph(cook(dict), unique), Source())
    with_source(sourced_graph(unique), object())
    with pytest.raises(PipelineDefinitionError, match="node 'n0' takes the source, which is crude"):
        with_source(sourced_graph(unique, cook(dict)), Source())


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
