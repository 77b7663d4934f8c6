import copy
import pickle
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import Pipeline, To, config, pipeline
from dagster_dataops.errors import PipelineDefinitionError
from tests.registries import OperatorRegistry


@pytest.fixture
def split(registry: OperatorRegistry) -> Any:
    @registry("data.naming", outputs=("even", "odd"), _concurrency_mode="single")
    def split(record: dict) -> Any:
        return To("odd" if record["n"] % 2 else "even")

    return split


@pytest.fixture(autouse=True)
def _root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "data_process_path", tmp_path)


def _numbers(count: int) -> list[dict[str, Any]]:
    return [{"n": number} for number in range(count)]


def test_a_result_is_an_input_of_other_nodes(split: Any) -> None:
    with pipeline("p") as ppl:
        ppl.split = split()
        ppl.add("first", lambda records: records[:1], inputs=ppl.split.odd)
        ppl.add("all", lambda records: records, inputs=[ppl.first, "split.even"])
    assert ppl(_numbers(5)) == [{"n": 1}, {"n": 0}, {"n": 2}, {"n": 4}]
    assert ppl.graph.results == {
        "split.even": "split",
        "split.odd": "split",
        "first": "first",
        "all": "all",
    }
    assert "done, 5 rows (3 even, 2 odd)" in repr(ppl)


def test_a_pipeline_that_ends_with_several_results_returns_all(split: Any) -> None:
    with pipeline("p") as ppl:
        ppl.split = split()
    assert ppl(_numbers(3)) == {"even": [{"n": 0}, {"n": 2}], "odd": [{"n": 1}]}
    assert split()(_numbers(3)) == {"even": [{"n": 0}, {"n": 2}], "odd": [{"n": 1}]}
    assert list(ppl.materialize(_numbers(3))["split"].outputs) == ["even", "odd"]


def test_exports_are_returned_by_name(split: Any, tmp_path: Path) -> None:
    made = split().set_output(tmp_path / "out")(_numbers(3))
    assert made == {name: str(tmp_path / "out" / "split" / f"{name}.jsonl") for name in made}


def _ended(inner: Pipeline) -> Pipeline:
    with pipeline("outer") as outer:
        outer.part = inner
        outer.add("last", lambda records: records, inputs=outer.part.odd)
    return outer


def test_a_nested_pipeline_may_end_with_several_results(split: Any) -> None:
    with pipeline("inner") as inner:
        inner.all = lambda records: records
        inner.split = split()
    outer = _ended(inner)
    assert outer.graph.nodes["last"].inputs == ("part_split.odd",)
    assert outer(_numbers(4)) == [{"n": 1}, {"n": 3}]


def test_a_nested_pipeline_may_use_several_results(split: Any) -> None:
    with pipeline("inner") as inner:
        inner.split = split()
        inner.add("odd", lambda records: records, inputs=inner.split.odd)
    with pipeline("outer") as outer:
        outer.part = inner
        outer.last = lambda records: records
    assert outer.graph.nodes["part_odd"].inputs == ("part_split.odd",)
    assert outer(_numbers(4)) == [{"n": 1}, {"n": 3}]


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        (None, "which has several results; name one of them as its input: ppl.split.even"),
        ("split", "which has several results"),
        ("split.evn", "node 'split' has the results split.even, split.odd"),
        ("first.odd", "node 'first' has the result first"),
        ("splti.odd", "is not a node; did you mean 'split.odd'"),
    ],
)
def test_an_input_that_is_no_result_is_refused(split: Any, inputs: Any, text: str) -> None:
    def build() -> None:
        with pipeline("p") as ppl:
            ppl.first = lambda records: records
            ppl.split = split()
            ppl.add("last", lambda records: records, inputs=inputs)

    with pytest.raises(PipelineDefinitionError, match=text):
        build()


def test_a_reference_knows_the_outputs_of_its_node(split: Any) -> None:
    with pipeline("p") as ppl:
        ppl.split = split()
        ppl.add("odd", lambda records: records, inputs=ppl.split.odd)
    for reference in (ppl.split, copy.copy(ppl.split), pickle.loads(pickle.dumps(ppl.split))):
        assert reference == "split"
        assert reference.outputs == ("even", "odd")
        assert reference.odd == "split.odd"
        assert {"even", "odd"} <= set(dir(reference))
    with pytest.raises(AttributeError, match="no result 'none'; its results are even, odd"):
        _ = ppl.split.none
    with pytest.raises(AttributeError, match="it has one"):
        _ = ppl.odd.none
