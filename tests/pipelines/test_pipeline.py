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


def test_an_output_in_the_middle_is_exported_and_the_pipeline_continues(tmp_path):
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


def test_a_cycle_is_refused():
    ppl = pipeline("docs")
    ppl.add("a", suffix(), inputs=["b"])

    with pytest.raises(PipelineDefinitionError, match="cycle"), ppl:
        ppl.add("b", suffix(), inputs=["a"])


def test_a_join_with_one_input_is_refused():
    with pytest.raises(PipelineDefinitionError, match="takes 2 datasets"), pipeline() as ppl:
        ppl.join = join()


def test_a_node_without_inputs_is_refused():
    with pytest.raises(PipelineDefinitionError, match="has no inputs"), pipeline() as ppl:
        ppl.add("a", suffix(), inputs=[])


@pytest.mark.parametrize("thing", [len, "text", 3, None, object(), partial(texts)])
def test_an_object_that_is_not_an_operator_is_refused_with_a_remedy(thing):
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


def test_materializing_a_node_without_a_file_is_refused(root):
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


def test_an_unsaved_node_feeds_saved_nodes(root):
    with pipeline("docs") as ppl:
        ppl.upper = Upper(_save_data=False)
        ppl.suffix = suffix()

    assert texts(ppl(RECORDS)) == "A! B!"
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


def test_one_pipeline_may_be_nested_twice(cleaning):
    with pipeline() as ppl:
        ppl.one = cleaning
        ppl.two = cleaning
        ppl.add("both", join(), inputs=[ppl.one, ppl.two])

    assert list(ppl.graph.nodes) == ["one_upper", "one_mark", "two_upper", "two_mark", "both"]
    assert ppl(RECORDS)[0] == {"left": "A1", "right": "A11"}


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
    assert ppl(RECORDS)[1] == {"left": "B0", "right": "b0!"}


def test_pipelines_nest_at_any_depth(cleaning):
    with pipeline() as middle:
        middle.clean = cleaning
    with pipeline() as ppl:
        ppl.deep = middle

    assert list(ppl.graph.nodes) == ["deep_clean_upper", "deep_clean_mark"]
    assert texts(ppl(RECORDS)) == "A1 B1"


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


def test_a_function_may_be_a_node_without_being_registered():
    def backwards_again(records):
        return records[::-1]

    def shout(record: dict, mark="?"):
        record["text"] += mark

    with pipeline() as ppl:
        ppl.first = lambda rows: rows[:1] + rows
        ppl.back = backwards_again
        ppl.shout = shout

    assert texts(ppl(RECORDS)) == "b? a? a?"


def test_a_function_of_two_lists_joins_two_nodes():
    def both(left: list[dict], right: list[dict]):
        return [{"text": a["text"] + b["text"]} for a, b in zip(left, right, strict=True)]

    with pipeline() as ppl:
        ppl.upper = Upper()
        ppl.add("both", both, inputs=[ppl.upper, ppl.source])

    assert texts(ppl(RECORDS)) == "Aa Bb"


def test_a_changed_function_is_detected_when_a_run_resumes():
    def run(step) -> str:
        with pipeline("docs") as ppl:
            ppl.step = step
        return texts(ppl(RECORDS))

    with config.temporary(data_process_resume=True):
        assert run(lambda rows: rows[:1]) == "a"
        assert run(lambda rows: rows[1:]) == "b"


def test_a_function_reader_is_not_a_node():
    def lines(path: str = "a.jsonl") -> DataPipelineBuilder:
        return read_jsonl(path)

    with pytest.raises(PipelineDefinitionError, match="is the reader lines"), pipeline() as ppl:
        ppl.lines = lines


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


def test_two_nodes_that_export_to_one_file_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with (
        pytest.raises(PipelineDefinitionError, match="'first' and 'second' both export to"),
        pipeline() as ppl,
    ):
        ppl.first = suffix().set_output("out.jsonl")
        ppl.second = suffix().set_output(tmp_path / "out.jsonl")
