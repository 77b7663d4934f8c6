"""Tests of dagster_dataops.services.pipeline."""

import json
from pathlib import Path

import pytest

from dagster_dataops import JsonlDataset, Operator, OperatorGraph, data_register, pipeline
from dagster_dataops.errors import PipelineDefinitionError

GROUP = "pipelines"


@data_register(f"data.{GROUP}", _concurrency_mode="single")
def suffix(data: dict, mark="!"):
    data["text"] += mark
    return data


@data_register(f"data.{GROUP}", rewrite_func="forward_batch_input")
def backwards(data: list[dict]):
    return data[::-1]


@data_register(f"data.{GROUP}", rewrite_func="forward_batch_input")
def join(left: list[dict], right: list[dict], key="text"):
    return [{"left": a[key], "right": b[key]} for a, b in zip(left, right, strict=True)]


class Upper(data_register.new_group(GROUP)):
    _concurrency_mode = "single"

    def forward(self, data):
        return {"text": data["text"].upper()}


RECORDS = [{"text": "a"}, {"text": "b"}]


def texts(records: list[dict]) -> str:
    return " ".join(record["text"] for record in records)


def lines(path: str | Path) -> list[dict]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def test_each_node_takes_the_one_before_it():
    with pipeline() as ppl:
        ppl.first = suffix(mark="1")
        ppl.second = suffix(mark="2")
        ppl.third = backwards()

    assert texts(ppl(RECORDS)) == "b12 a12"


def test_one_operator_used_twice_has_two_folders(root):
    with pipeline("docs") as ppl:
        ppl.first = suffix(mark="1")
        ppl.second = suffix(mark="2")

    ppl(RECORDS)

    assert texts(lines(root / "docs" / "first" / "first_results.jsonl")) == "a1 b1"
    assert texts(lines(root / "docs" / "second" / "second_results.jsonl")) == "a12 b12"


def test_an_unnamed_pipeline_keeps_its_nodes_right_below_the_root(root):
    with pipeline() as ppl:
        ppl.first = suffix()

    ppl(RECORDS)

    assert (root / "first" / "first_results.jsonl").is_file()


def test_one_constructed_operator_may_be_two_nodes():
    operator = suffix()
    with pipeline() as ppl:
        ppl.first = operator
        ppl.second = operator

    assert texts(ppl(RECORDS)) == "a!! b!!"


def test_an_operator_that_was_not_constructed_is_constructed_without_options():
    with pipeline() as ppl:
        ppl.suffix = suffix
        ppl.upper = Upper

    assert texts(ppl(RECORDS)) == "A! B!"


def test_a_node_may_take_the_results_of_several():
    with pipeline() as ppl:
        ppl.plain = suffix(mark="")
        ppl.add("upper", Upper(), inputs=[ppl.plain])
        ppl.add("both", suffix(mark="?"), inputs=[ppl.upper, ppl.plain, ppl.source])

    assert texts(ppl(RECORDS)) == "A? B? a? b? a? b?"


def test_a_joining_operator_takes_its_datasets_separately():
    with pipeline() as ppl:
        ppl.upper = Upper()
        ppl.add("lower", suffix(mark="."), inputs=[ppl.source])
        ppl.add("join", join(), inputs=[ppl.upper, ppl.lower])

    assert ppl(RECORDS) == [{"left": "A", "right": "a."}, {"left": "B", "right": "b."}]


def test_one_node_may_be_both_inputs_of_a_join():
    with pipeline() as ppl:
        ppl.upper = Upper()
        ppl.add("join", join(), inputs=["upper", "upper"])

    assert ppl(RECORDS)[0] == {"left": "A", "right": "A"}


def test_inputs_may_be_one_name():
    with pipeline() as ppl:
        ppl.upper = Upper()
        ppl.suffix = suffix()
        ppl.add("again", suffix(mark="2"), inputs="upper")

    assert texts(ppl(RECORDS)) == "A2 B2"


def test_an_output_in_the_middle_is_exported_and_the_pipeline_goes_on(tmp_path):
    with pipeline() as ppl:
        ppl.first = suffix(mark="1").set_output(tmp_path / "middle")
        ppl.second = suffix(mark="2")

    assert texts(ppl(RECORDS)) == "a12 b12"
    assert texts(lines(tmp_path / "middle" / "first.jsonl")) == "a1 b1"


def test_an_output_of_the_last_node_makes_its_absolute_path_the_result(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pipeline() as ppl:
        ppl.first = suffix(mark="1")
        ppl.second = suffix(mark="2").set_output("out")

    assert ppl(RECORDS) == str(tmp_path / "out" / "second.jsonl")
    assert texts(lines("out/second.jsonl")) == "a12 b12"


def test_an_empty_pipeline_is_refused():
    with pytest.raises(PipelineDefinitionError, match="it has no nodes"), pipeline("empty"):
        pass


def test_a_second_node_of_the_same_name_is_refused_where_it_is_written():
    ppl = pipeline()
    ppl.a = suffix()

    with pytest.raises(PipelineDefinitionError, match="two nodes are called 'a'"):
        ppl.a = suffix()


def test_an_unknown_input_is_refused():
    with pytest.raises(PipelineDefinitionError, match="did you mean 'source'"), pipeline() as ppl:
        ppl.add("suffix", suffix(), inputs=["srce"])


def test_a_circle_is_refused():
    ppl = pipeline("docs")
    ppl.add("a", suffix(), inputs=["b"])

    with pytest.raises(PipelineDefinitionError, match="circle"), ppl:
        ppl.add("b", suffix(), inputs=["a"])


def test_a_join_with_one_input_is_refused():
    with pytest.raises(PipelineDefinitionError, match="takes 2 datasets"), pipeline() as ppl:
        ppl.join = join()


def test_a_node_without_inputs_is_refused():
    with pytest.raises(PipelineDefinitionError, match="has no inputs"), pipeline() as ppl:
        ppl.add("a", suffix(), inputs=[])


@pytest.mark.parametrize("thing", [len, "text", 3, None, lambda data: data])
def test_what_is_no_operator_is_refused_with_what_to_do(thing):
    with pytest.raises(PipelineDefinitionError, match="@data_register"), pipeline() as ppl:
        ppl.step = thing


@pytest.mark.parametrize(
    "name", ["source", "graph", "add", "_hidden", "with space", "größe", "a/b"]
)
def test_a_name_that_cannot_name_a_node_is_refused(name):
    with pytest.raises(PipelineDefinitionError, match="cannot name a node"), pipeline() as ppl:
        ppl.add(name, suffix())


@pytest.mark.parametrize("name", ["with space", "a/b", "größe", "1st", ".."])
def test_a_pipeline_needs_a_plain_name(name):
    with pytest.raises(PipelineDefinitionError, match="plain identifier"):
        pipeline(name)


def test_a_complete_pipeline_cannot_be_changed():
    with pipeline() as ppl:
        ppl.a = suffix()

    with pytest.raises(PipelineDefinitionError, match="comes too late"):
        ppl.b = suffix()


def test_an_unfinished_pipeline_cannot_be_run():
    ppl = pipeline("docs")
    ppl.a = suffix()

    with pytest.raises(PipelineDefinitionError, match="after its `with` block"):
        ppl(RECORDS)


def test_an_error_inside_the_block_is_the_error_that_is_raised():
    with pytest.raises(ZeroDivisionError), pipeline("docs"):
        _ = 1 / 0


def test_an_unknown_node_is_an_attribute_error_that_names_the_nodes():
    with pipeline("docs") as ppl:
        ppl.upper = Upper()

    assert str(ppl.upper) == "upper"
    with pytest.raises(AttributeError, match="no node 'uppr'; its nodes: upper"):
        _ = ppl.uppr


def test_the_graph_is_what_was_written():
    with pipeline("docs") as ppl:
        ppl.upper = Upper()
        ppl.suffix = suffix()

    assert isinstance(ppl.graph, OperatorGraph)
    assert ppl.graph.name == ppl.name == "docs"
    assert ppl.graph.nodes["suffix"].inputs == ("upper",)
    assert isinstance(ppl.graph.nodes["upper"].operator, Operator)


def test_defining_a_pipeline_touches_no_disk(root):
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


def test_materializing_what_leaves_no_file_is_refused(root):
    with pipeline("docs") as ppl:
        ppl.upper = Upper(_save_data=False)

    with pytest.raises(
        PipelineDefinitionError, match=r"'upper' has _save_data=False: it leaves no file"
    ):
        ppl.materialize(RECORDS)
    assert not root.exists()


def test_a_pipeline_is_run_a_second_time_over_other_records():
    with pipeline("docs") as ppl:
        ppl.upper = Upper()

    assert texts(ppl([{"text": "a"}, {"text": "b"}])) == "A B"
    assert texts(ppl([{"text": "c"}])) == "C"


def test_a_part_that_is_not_saved_feeds_those_that_are(root):
    with pipeline("docs") as ppl:
        ppl.upper = Upper(_save_data=False)
        ppl.suffix = suffix()

    assert texts(ppl(RECORDS)) == "A! B!"
    assert [path.name for path in (root / "docs").iterdir()] == ["suffix"]


def test_a_pipeline_shows_its_graph():
    with pipeline("docs") as ppl:
        ppl.upper = Upper()
        ppl.first = suffix(mark="1")
        ppl.add("both", suffix(), inputs=[ppl.upper, ppl.first])

    assert repr(ppl).splitlines() == [
        "<pipeline 'docs', 3 nodes>",
        f"  upper = {Upper()!r}  # takes source",
        f"  first = {suffix(mark='1')!r}  # takes upper",
        f"  both = {suffix()!r}  # takes upper, first",
    ]
    assert {"upper", "first", "both"} <= set(dir(ppl))


def test_two_nodes_that_export_to_one_file_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with (
        pytest.raises(PipelineDefinitionError, match="'first' and 'second' both export to"),
        pipeline() as ppl,
    ):
        ppl.first = suffix().set_output("out.jsonl")
        ppl.second = suffix().set_output(tmp_path / "out.jsonl")
