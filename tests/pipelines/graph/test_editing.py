"""Tests of dagster_dataops.graphs: find and exchange stages of streams and nodes of pipelines."""

import pytest

from dagster_dataops import DataPipeline, config, data_register, graphs, read_jsonl, read_sequence
from dagster_dataops.errors import PipelineDefinitionError, StreamDefinitionError
from dagster_dataops.pipelines.pipeline import Pipeline, pipeline
from tests.registries import OperatorRegistry

REGISTRY = OperatorRegistry(lambda operator, data: data)


@REGISTRY("data.editing")
def add(record: dict, number=1):
    return {"n": record["n"] + number}


@REGISTRY("data.editing", rewrite_func="forward_batch_input")
def join(left: list[dict], right: list[dict]):
    return [*left, *right]


def double(number):
    return number * 2


def negative(number):
    return -number


def is_odd(number):
    return number % 2 == 1


@pytest.fixture
def stream():
    return read_sequence(list(range(5))).map(double).bucket(2)


def names(graph):
    return [one.name for one in graphs.traverse(graph)]


# ---------------------------------------------------------------- streams


def test_traverse_lists_the_stages_sources_first(stream):
    read, mapped, bucket = graphs.traverse(stream)
    assert [read.name, mapped.name, bucket.name] == ["read_sequence", "map", "bucket"]
    assert bucket.inputs == (mapped,)
    assert bucket.options() == {"bucket_size": 2, "drop_remainder": False}


def test_a_stage_that_two_others_read_is_listed_once():
    shared = read_sequence([1, 2]).map(double)
    both = DataPipeline.zip(shared, shared.map(negative))
    assert names(both) == ["read_sequence", "map", "map", "zip"]


def test_stages_are_found_by_name_or_by_a_function(stream):
    (found,) = graphs.find(stream, "map")
    assert graphs.find(stream, lambda stage: stage.inputs == ()) == [graphs.traverse(stream)[0]]
    assert found is graphs.traverse(stream)[1]
    assert graphs.find(stream, type(found)) == [found]
    assert graphs.find(stream, "shuffle") == graphs.find(stream, int) == []


def test_to_take_a_stage_that_was_not_found_is_an_error_that_lists_the_stages(stream):
    with pytest.raises(StreamDefinitionError, match="shuffle.*read_sequence, map, bucket"):
        graphs.find(stream, "shuffle")[0]
    assert graphs.find(stream, "shuffle")[:1] == []


def test_replace_returns_another_stream_and_leaves_the_given_one(stream):
    found = graphs.find(stream, "map")[0]
    replaced = graphs.replace(stream, found, lambda upstream: upstream.map(negative))
    assert list(replaced) == [[0, -1], [-2, -3], [-4]]
    assert list(stream) == [[0, 2], [4, 6], [8]]


def test_replace_takes_the_place_everywhere():
    shared = read_sequence([1, 2]).map(double)
    both = DataPipeline.zip(shared, shared.map(str))
    replaced = graphs.replace(both, shared.stage, lambda upstream: upstream.map(negative))
    assert list(replaced) == [[-1, "-1"], [-2, "-2"]]


def test_a_source_is_replaced_by_a_stream_and_a_combination_by_a_function_of_its_inputs(stream):
    other = graphs.replace(stream, "read_sequence", read_sequence([7, 8, 9]))
    assert list(other) == [[14, 16], [18]]
    both = DataPipeline.concat(read_sequence([1]), read_sequence([2]))
    swapped = graphs.replace(both, "concat", lambda one, two: DataPipeline.concat(two, one))
    assert list(swapped) == [2, 1]


def test_a_replacement_may_contain_the_stage_that_it_replaces(stream):
    again = graphs.replace(stream, "map", lambda upstream: upstream.map(double).map(double))
    assert list(again) == [[0, 4], [8, 12], [16]]


def test_insert_puts_stages_between_a_stage_and_what_reads_it(stream):
    first = graphs.traverse(stream)[0]
    looked = graphs.insert(stream, after=first, new=lambda upstream: upstream.filter(is_odd))
    assert names(looked) == ["read_sequence", "filter", "map", "bucket"]
    assert list(looked) == [[2, 6]]
    at_end = graphs.insert(stream, "bucket", lambda upstream: upstream.map(len))
    assert list(at_end) == [2, 2, 1]


def test_remove_joins_what_stands_before_and_behind(stream):
    assert list(graphs.remove(stream, graphs.find(stream, "map")[0])) == [[0, 1], [2, 3], [4]]
    assert list(graphs.remove(stream, "bucket")) == [0, 2, 4, 6, 8]


def test_sources_and_combinations_cannot_be_removed(stream):
    with pytest.raises(StreamDefinitionError, match="read_sequence.*it is a source"):
        graphs.remove(stream, "read_sequence")
    both = DataPipeline.concat(read_sequence([1]), read_sequence([2]))
    with pytest.raises(StreamDefinitionError, match="concat.*has 2 inputs"):
        graphs.remove(both, "concat")


@pytest.mark.parametrize("action", ["replace", "insert", "remove"])
def test_what_is_not_there_is_refused_with_a_list_of_what_is(stream, action):
    stranger = read_sequence([1]).map(double).stage
    arguments = () if action == "remove" else (lambda upstream: upstream,)
    for wanted in (stranger, "map2"):
        with pytest.raises(StreamDefinitionError, match="read_sequence, map, bucket"):
            getattr(graphs, action)(stream, wanted, *arguments)


def test_a_name_of_several_stages_is_refused():
    twice = read_sequence([1]).map(double).map(double)
    with pytest.raises(StreamDefinitionError, match=r"2 stages have this name.*graphs\.find"):
        graphs.remove(twice, "map")
    assert list(graphs.remove(twice, graphs.find(twice, "map")[1])) == [2]


def test_a_function_that_returns_no_stream_is_refused(stream):
    with pytest.raises(StreamDefinitionError, match="a stream, but this is a int"):
        graphs.replace(stream, "map", lambda upstream: 3)
    with pytest.raises(StreamDefinitionError, match="an OperatorGraph, but got a list"):
        graphs.traverse([1])
    with pytest.raises(StreamDefinitionError, match="wanted is a int.*a name, a class"):
        graphs.find(stream, 3)


def test_a_function_of_other_streams_than_the_stage_reads_is_refused(stream):
    with pytest.raises(StreamDefinitionError, match="a source, so new must be a stream"):
        graphs.replace(stream, "read_sequence", lambda upstream: upstream)
    with pytest.raises(StreamDefinitionError, match="called with the stream .*missing"):
        graphs.replace(stream, "map", lambda one, another: one)


def test_edits_that_shard_a_stream_twice_or_in_part_are_refused():
    marked = read_sequence([1]).sharding_filter().map(double)
    with pytest.raises(StreamDefinitionError, match="sharded twice"):
        graphs.insert(marked, "read_sequence", lambda upstream: upstream.sharding_filter())
    read = marked.workers(2)
    with pytest.raises(StreamDefinitionError, match="already has workers"):
        graphs.insert(read, "map", lambda upstream: upstream.workers(2))
    both = DataPipeline.zip(marked, read_sequence([2]).sharding_filter())
    first = graphs.find(both, "sharding_filter")[0]
    with pytest.raises(StreamDefinitionError, match="index 1 has a .*mark, but that at index 0"):
        graphs.remove(both, first)


def test_a_stream_that_is_read_keeps_its_options():
    stream = read_sequence([1, 0, 2]).map(lambda n: 1 / n).and_return(on_error="skip", seed=3)
    edited = graphs.insert(stream, "map", lambda upstream: upstream.map(str))
    assert list(edited) == ["1.0", "0.5"]
    assert (edited.errors, edited.on_error) == (1, "skip")


def test_shuffled_stages_keep_their_order_if_stages_behind_them_change(tmp_path):
    path = tmp_path / "n.jsonl"
    path.write_text("".join(f'{{"n": {n}}}\n' for n in range(50)))
    stream = read_jsonl(path).shuffle(0).map(dict)
    edited = graphs.replace(stream, "map", lambda upstream: upstream.filter(bool))
    assert list(edited) == list(stream)


# ---------------------------------------------------------------- graphs of operators


@pytest.fixture
def graph():
    with pipeline("docs") as ppl:
        ppl.one = add()
        ppl.two = add(number=10)
        ppl.add("both", join(), inputs=["one", "two"])
    return ppl.graph


def inputs(graph):
    return {node.name: node.inputs for node in graphs.traverse(graph)}


def test_nodes_are_found_by_their_name_and_by_that_of_the_operator(graph):
    assert names(graph) == ["one", "two", "both"]
    assert [node.name for node in graphs.find(graph, "two")] == ["two"]
    assert [node.name for node in graphs.find(graph, "editing.add")] == ["one", "two"]
    assert [node.name for node in graphs.find(graph, type(graph.nodes["two"].operator))] == [
        "one",
        "two",
    ]
    with pytest.raises(StreamDefinitionError, match="must be a name, a class or a function"):
        graphs.find(graph, 3)
    assert [node.name for node in graphs.find(graph, lambda node: len(node.inputs) > 1)] == ["both"]


def test_another_operator_in_a_node_leaves_all_names_and_inputs(graph):
    replaced = graphs.replace(graph, "two", add(number=100))
    assert inputs(replaced) == inputs(graph)
    assert replaced.nodes["two"].operator.__dataops__.options["number"] == 100
    assert graph.nodes["two"].operator.__dataops__.options["number"] == 10
    assert replaced.nodes["one"] is graph.nodes["one"]


def test_a_node_is_inserted_before_all_that_read_its_input(graph):
    edited = graphs.insert(graph, after="one", new=add(number=5), name="more")
    assert inputs(edited) == {
        "one": ("source",), "more": ("one",), "two": ("more",), "both": ("more", "two"),
    }  # fmt: skip
    first = graphs.insert(graph, after="source", new=add(), name="first")
    assert inputs(first)["one"] == ("first",)
    assert inputs(first)["first"] == ("source",)
    assert graphs.insert(graph, after="both", new=add(), name="end").last.name == "end"


def test_a_removed_node_leaves_its_input_to_those_that_read_it(graph):
    assert inputs(graphs.remove(graph, "two")) == {"one": ("source",), "both": ("one", "one")}
    with pytest.raises(PipelineDefinitionError, match="'both' cannot be removed.*one, two"):
        graphs.remove(graph, "both")


def test_unknown_nodes_are_refused_with_a_list_of_the_nodes(graph):
    for edit in (
        lambda: graphs.replace(graph, "tow", add()),
        lambda: graphs.remove(graph, "tow"),
        lambda: graphs.insert(graph, after="tow", new=add(), name="new"),
    ):
        with pytest.raises(PipelineDefinitionError, match="no node 'tow'.*one, two, both"):
            edit()


def test_nodes_that_do_not_fit_are_refused(graph):
    with pytest.raises(PipelineDefinitionError, match="takes 2 datasets"):
        graphs.replace(graph, "two", join())
    with pytest.raises(PipelineDefinitionError, match="new is a int"):
        graphs.replace(graph, "two", 3)
    with pytest.raises(PipelineDefinitionError, match="has no name"):
        graphs.insert(graph, after="one", new=add())
    with pytest.raises(PipelineDefinitionError, match="two nodes are called 'two'"):
        graphs.insert(graph, after="one", new=add(), name="two")


def test_an_edited_graph_runs_as_a_pipeline(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "data_process_path", tmp_path)

    @data_register("data.editing_run")
    def plus(record: dict, number=1):
        return {"n": record["n"] + number}

    with pipeline("docs") as ppl:
        ppl.one = plus()
        ppl.two = plus(number=10)
    edited = Pipeline.of(graphs.replace(ppl.graph, "two", plus(number=100)))
    assert ppl([{"n": 1}]) == [{"n": 12}]
    assert edited([{"n": 1}]) == [{"n": 102}]
    assert (tmp_path / "docs" / "two").is_dir()
