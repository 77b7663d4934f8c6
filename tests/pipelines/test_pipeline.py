"""Tests of dagster_dataops.pipelines.pipeline."""

import json
from functools import partial
from pathlib import Path

import pytest

from dagster_dataops import (
    DataPipelineBuilder,
    JsonlDataset,
    Operator,
    combine,
    config,
    data_register,
    pipeline,
    read_jsonl,
)
from dagster_dataops.errors import PipelineDefinitionError
from dagster_dataops.pipelines.graph.graph import OperatorGraph
from tests.each import each

GROUP = "pipelines"


@data_register(f"data.{GROUP}", _concurrency_mode="single")
def suffix(data: dict, mark="!"):
    data["text"] += mark
    return data


@data_register(f"data.{GROUP}", rewrite_func="forward_batch_input")
def backwards(data: list[dict]):
    return data[::-1]


@data_register(f"data.{GROUP}", rewrite_func="forward_batch_input")
def join(left: list[dict], right: list[dict]):
    return [{"text": a["text"] + b["text"]} for a, b in zip(left, right, strict=True)]


class Upper(data_register.new_group(GROUP)):
    _concurrency_mode = "single"

    def forward(self, data):
        return {"text": data["text"].upper()}


RECORDS = [{"text": "a"}, {"text": "b"}]


def texts(records: list[dict]) -> str:
    return " ".join(record["text"] for record in records)


def lines(path: str | Path) -> list[dict]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def built(*nodes):
    """Return a pipeline of nodes: name, operator and, where they are given, inputs."""
    with pipeline() as ppl:
        for node in nodes:
            ppl.add(*node)
    return ppl


def shout(record: dict, mark="?"):
    record["text"] += mark


def both(left: list[dict], right: list[dict]):
    return left + right


TWICE = suffix()
UPPER = ("upper", Upper())
LOWER = ("lower", suffix(mark="."), ["source"])
RESULTS = {
    "b12 a12": [("a", suffix(mark="1")), ("b", suffix(mark="2")), ("c", backwards())],
    "a!! b!!": [("first", TWICE), ("second", TWICE)],
    "A! B!": [("suffix", suffix), ("upper", Upper)],
    "A2 B2": [UPPER, ("suffix", suffix()), ("again", suffix(mark="2"), "upper")],
    "A? B? a.? b.? a? b?": [UPPER, LOWER, ("all", suffix(mark="?"), ["upper", "lower", "source"])],
    "Aa. Bb.": [UPPER, LOWER, ("join", join(), ["upper", "lower"])],
    "AA BB": [UPPER, ("join", join(), ["upper", "upper"])],
    "A B a b": [UPPER, ("both", both, ["upper", "source"])],
    "b? a? a?": [("first", lambda rows: rows[:1] + rows), ("b", backwards), ("shout", shout)],
}


@pytest.mark.parametrize(("result", "nodes"), RESULTS.items(), ids=RESULTS)
def test_a_node_takes_the_one_before_it_or_the_given_ones(result, nodes):
    assert texts(built(*nodes)(RECORDS)) == result


@pytest.mark.parametrize(("name", "folder"), [("docs", "docs"), ("", ".")])
def test_each_node_has_a_folder_below_that_of_its_pipeline(root, name, folder):
    with pipeline(name) as ppl:
        ppl.first = suffix(mark="1")
        ppl.second = suffix(mark="2")

    ppl(RECORDS)

    assert texts(lines(root / folder / "first" / "first_results.jsonl")) == "a1 b1"
    assert texts(lines(root / folder / "second" / "second_results.jsonl")) == "a12 b12"


def test_an_output_is_exported_and_that_of_the_last_node_is_the_result(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pipeline() as ppl:
        ppl.first = suffix(mark="1").set_output(tmp_path / "middle")
        ppl.second = suffix(mark="2").set_output("out")

    assert ppl(RECORDS) == str(tmp_path / "out" / "second.jsonl")
    assert texts(lines("middle/first.jsonl")) == "a1 b1"
    assert texts(lines("out/second.jsonl")) == "a12 b12"


def reader(path: str = "a.jsonl") -> DataPipelineBuilder:
    return read_jsonl(path)


NO_OPERATORS = [len, "text", 3, None, object(), partial(texts)]
NO_NAMES = ["source", "graph", "add", "_hidden", "with space", "größe", "a/b"]
REFUSED = [
    ("it has no nodes", []),
    ("did you mean 'source'", [("suffix", suffix(), ["srce"])]),
    ("cycle", [("a", suffix(), ["b"]), ("b", suffix(), ["a"])]),
    ("takes 2 datasets", [("join", join())]),
    ("has no inputs", [("a", suffix(), [])]),
    ("is the reader reader", [("lines", reader)]),
    *(("@data_register", [("step", thing)]) for thing in NO_OPERATORS),
    *(("cannot name a node", [(name, suffix())]) for name in NO_NAMES),
    (
        "'first' and 'second' both export to",
        [
            ("first", suffix().set_output("out.jsonl")),
            ("second", suffix().set_output(Path("out.jsonl").absolute())),
        ],
    ),
]


@each("case", REFUSED)
def test_nodes_that_make_no_pipeline_are_refused(case):
    with pytest.raises(PipelineDefinitionError, match=case[0]):
        built(*case[1])


def test_a_node_that_comes_twice_or_too_late_is_refused_where_it_is_written():
    ppl = pipeline("docs")
    ppl.a = suffix()

    with pytest.raises(PipelineDefinitionError, match="two nodes are called 'a'"):
        ppl.a = suffix()
    with pytest.raises(PipelineDefinitionError, match="after its `with` block"):
        ppl(RECORDS)
    with ppl:
        pass
    with pytest.raises(PipelineDefinitionError, match="comes too late"):
        ppl.b = suffix()


@pytest.mark.parametrize("name", ["with space", "a/b", "größe", "1st", ".."])
def test_a_pipeline_needs_a_plain_name(name):
    with pytest.raises(PipelineDefinitionError, match="plain identifier"):
        pipeline(name)


def test_an_error_inside_the_block_is_the_error_that_is_raised():
    with pytest.raises(ZeroDivisionError), pipeline("docs"):
        _ = 1 / 0


def test_an_unknown_node_is_an_attribute_error_that_names_the_nodes():
    with pipeline("docs") as ppl:
        ppl.upper = Upper()

    assert str(ppl.upper) == "upper"
    with pytest.raises(AttributeError, match="no node 'uppr'; its nodes: upper"):
        _ = ppl.uppr


def test_the_graph_contains_the_written_nodes():
    with pipeline("docs") as ppl:
        ppl.upper = Upper()
        ppl.suffix = suffix()

    assert isinstance(ppl.graph, OperatorGraph)
    assert ppl.graph.name == ppl.name == "docs"
    assert ppl.graph.nodes["suffix"].inputs == ("upper",)
    assert isinstance(ppl.graph.nodes["upper"].operator, Operator)


def test_defining_a_pipeline_does_not_access_the_disk(root):
    with pipeline("docs") as ppl:
        ppl.upper = Upper().set_output(root / "out")

    assert not root.exists()


def test_materializing_gives_reports_with_handles(root):
    with pipeline("docs") as ppl:
        ppl.upper = Upper()
        ppl.suffix = suffix()

    reports = ppl.materialize(RECORDS)

    assert list(reports) == ["upper", "suffix"]
    dataset = reports["suffix"].dataset
    assert isinstance(dataset, JsonlDataset)
    assert dataset.path == root / "docs" / "suffix" / "suffix_results.jsonl"
    assert dataset.rows == 2
    assert texts(dataset.read()) == "A! B!"


def test_an_unsaved_node_feeds_saved_nodes_and_cannot_be_materialized(root):
    with pipeline("docs") as ppl:
        ppl.upper = Upper(_save_data=False)
        ppl.suffix = suffix()

    with pytest.raises(
        PipelineDefinitionError, match=r"'upper' has _save_data=False: it leaves no file"
    ):
        ppl.materialize(RECORDS)
    assert not root.exists()
    assert texts(ppl(RECORDS)) == "A! B!"
    assert texts(ppl([{"text": "c"}])) == "C!"  # a second run, of other records
    assert [path.name for path in (root / "docs").iterdir()] == ["suffix"]


def inputs_of(ppl) -> dict[str, tuple[str, ...]]:
    return {name: node.inputs for name, node in ppl.graph.nodes.items()}


@pytest.fixture
def cleaning():
    with pipeline("cleaning") as ppl:
        ppl.upper = Upper()
        ppl.mark = suffix(mark="1")
    return ppl


def test_nodes_of_a_nested_pipeline_have_its_name_as_prefix(cleaning, root):
    with pipeline("docs") as ppl:
        ppl.first = suffix(mark="0")
        ppl.clean = cleaning
        ppl.last = suffix(mark="2")

    assert inputs_of(ppl) == {
        "first": ("source",),
        "clean_upper": ("first",),
        "clean_mark": ("clean_upper",),
        "last": ("clean_mark",),
    }
    assert texts(ppl(RECORDS)) == "A012 B012"
    assert sorted(path.name for path in (root / "docs").iterdir()) == sorted(ppl.graph.nodes)


def test_a_nested_pipeline_is_represented_by_its_last_node(cleaning):
    with pipeline() as ppl:
        clean = ppl.add("clean", cleaning, inputs=[ppl.source])
        ppl.add("attribute", suffix(), inputs=[ppl.clean])
        ppl.add("by_name", suffix(), inputs=["clean"])
        ppl.add("returned", suffix(), inputs=[clean])

    assert clean == ppl.clean == "clean_mark"
    assert {inputs_of(ppl)[name] for name in ("attribute", "by_name", "returned")} == {
        ("clean_mark",)
    }


def test_a_name_of_a_nested_pipeline_may_be_used_before_it_is_added(cleaning):
    with pipeline() as ppl:
        ppl.add("early", suffix(), inputs=["clean"])
        ppl.add("clean", cleaning, inputs=[ppl.source])

    assert inputs_of(ppl)["early"] == ("clean_mark",)


def test_one_pipeline_may_be_nested_twice_and_at_any_depth(cleaning):
    with pipeline() as middle:
        middle.one = cleaning
        middle.two = cleaning
        middle.add("both", join(), inputs=[middle.one, middle.two])
    with pipeline() as ppl:
        ppl.deep = middle

    nodes = ["one_upper", "one_mark", "two_upper", "two_mark", "both"]
    assert list(middle.graph.nodes) == nodes
    assert list(ppl.graph.nodes) == [f"deep_{name}" for name in nodes]
    assert texts(middle(RECORDS)) == texts(ppl(RECORDS)) == "A1A11 B1B11"


def test_every_branch_and_join_of_a_nested_pipeline_is_kept():
    with pipeline() as branching:
        branching.upper = Upper()
        branching.add("marked", suffix(), inputs=[branching.source])
        branching.mixed = combine.concat([branching.upper, branching.source])
        branching.add("joined", join(), inputs=[branching.upper, branching.marked])

    with pipeline() as ppl:
        ppl.zero = suffix(mark="0")
        ppl.x = branching

    assert inputs_of(ppl) == {
        "zero": ("source",),
        "x_upper": ("zero",),
        "x_marked": ("zero",),
        "x_mixed": ("x_upper", "zero"),
        "x_joined": ("x_upper", "x_marked"),
    }
    assert texts(ppl(RECORDS)) == "A0a0! B0b0!"


def test_a_nested_pipeline_resumes_the_results_of_the_flat_one(cleaning):
    with pipeline("docs") as flat:
        flat.clean_upper = Upper()
        flat.clean_mark = suffix(mark="1")
    with pipeline("docs") as nested:
        nested.clean = cleaning

    with config.temporary(data_process_resume=True):
        flat.materialize(RECORDS)
        again = nested.materialize(RECORDS)

    assert all(report.reused for report in again.values())


def test_a_nested_pipeline_takes_one_input(cleaning):
    ppl = pipeline("docs")
    ppl.a = suffix()
    ppl.b = suffix()

    with pytest.raises(PipelineDefinitionError, match=r"takes one input, not 2; .*combine\.concat"):
        ppl.add("clean", cleaning, inputs=[ppl.a, ppl.b])


@pytest.mark.parametrize("taken", ["clean", "clean_mark"])
def test_names_of_a_nested_pipeline_must_be_free(cleaning, taken):
    ppl = pipeline()
    ppl.add(taken, suffix())

    with pytest.raises(PipelineDefinitionError, match=f"two nodes are called '{taken}'"):
        ppl.clean = cleaning
    with ppl:
        pass
    assert list(ppl.graph.nodes) == [taken]

    other = pipeline()
    other.clean = cleaning
    with pytest.raises(PipelineDefinitionError, match=f"two nodes are called '{taken}'"):
        other.add(taken, suffix())


def test_a_pipeline_that_is_not_complete_cannot_be_nested():
    inner = pipeline("inner")
    inner.a = suffix()
    ppl = pipeline("outer")

    with pytest.raises(PipelineDefinitionError, match=r"inner.* after its `with` block"):
        ppl.clean = inner
    with pytest.raises(PipelineDefinitionError, match=r"outer.* after its `with` block"):
        ppl.itself = ppl


def test_a_changed_function_is_detected_when_a_run_resumes():
    def run(step) -> str:
        with pipeline("docs") as ppl:
            ppl.step = step
        return texts(ppl(RECORDS))

    with config.temporary(data_process_resume=True):
        assert run(lambda rows: rows[:1]) == "a"
        assert run(lambda rows: rows[1:]) == "b"


def test_a_pipeline_shows_its_graph_and_the_state_of_each_node(tmp_path):
    with config.temporary(data_process_path=tmp_path):
        with pipeline("docs") as ppl:
            ppl.upper = Upper()
            assert repr(ppl).splitlines() == [
                "<pipeline 'docs', 1 node, incomplete>",
                f"  source -> upper  not complete  {Upper()!r}",
            ]
            ppl.first = suffix(mark="1")
            ppl.add("both", suffix(), inputs=[ppl.upper, ppl.first])
        assert repr(ppl).splitlines() == [
            f"<pipeline 'docs', 3 nodes, results in {tmp_path / 'docs'}>",
            f"  source -> upper       not run  {Upper()!r}",
            f"  upper -> first        not run  {suffix(mark='1')!r}",
            f"  upper, first -> both  not run  {suffix()!r}",
        ]
        assert {"upper", "first", "both"} <= set(dir(ppl))
