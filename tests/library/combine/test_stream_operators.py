"""Tests of dagster_dataops.combine: several results as one, in plain Python."""

import itertools
import os
import time
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import (
    DataPipeline,
    Pipeline,
    combine,
    config,
    data,
    data_register,
    pipeline,
    read_sequence,
)
from dagster_dataops.errors import (
    OperatorDefinitionError,
    PipelineDefinitionError,
    StreamDefinitionError,
)
from tests.registries import OperatorRegistry

ROWS = [{"n": n} for n in range(6)]
_numbers = itertools.count()


@data_register("data.combining", _concurrency_mode="single")
def marked(record: dict, mark: str) -> dict:
    return {"n": record["n"], "mark": mark}


@data_register("data.combining", _concurrency_mode="single")
def odd(record: dict) -> list[dict]:
    return [record] if record["n"] % 2 else []


def combined(how: Any) -> Pipeline:
    """Return a pipeline of node ``a`` with all records, node ``b`` with three, and their mix."""
    with pipeline(f"mixing_{next(_numbers)}") as ppl:
        ppl.a = marked(mark="a")
        ppl.add("odd", odd(), inputs=[ppl.source])
        ppl.b = marked(mark="b")
        ppl.mix = how([ppl.a, ppl.b])
    return ppl


def of(mark: str, *numbers: int) -> list[dict[str, Any]]:
    return [{"n": n, "mark": mark} for n in numbers]


A, B = of("a", *range(6)), of("b", 1, 3, 5)


@pytest.mark.parametrize(
    ("how", "stream"),
    [
        (combine.concat, DataPipeline.concat),
        (combine.round_robin, DataPipeline.round_robin),
        (
            lambda inputs: combine.round_robin(inputs, allow_repeats=False),
            lambda *given: DataPipeline.round_robin(*given, allow_repeats=False),
        ),
        (
            lambda inputs: combine.sample(inputs, weights=[0.8, 0.2], seed=4),
            lambda *given: DataPipeline.sample(*given, weights=[0.8, 0.2], seed=4),
        ),
        (
            lambda inputs: combine.sample(inputs, seed=4, allow_repeats=False),
            lambda *given: DataPipeline.sample(*given, seed=4, allow_repeats=False),
        ),
        (
            lambda inputs: combine.zip(inputs, names=["x", "y"], zip_to_shortest=True),
            lambda *given: DataPipeline.zip(*given, names=["x", "y"], zip_to_shortest=True),
        ),
    ],
)
def test_results_are_combined_as_streams_are(how: Any, stream: Any) -> None:
    found = combined(how)(ROWS)
    assert found == list(stream(read_sequence(A), read_sequence(B)))
    assert len(found) >= 3


def test_records_are_joined_key_by_key(registry: OperatorRegistry) -> None:
    @registry("data.joining", _concurrency_mode="single")
    def squared(record: dict) -> dict:
        return {"square": record["n"] ** 2}

    with pipeline("joining") as ppl:
        ppl.a = marked(mark="a")
        ppl.add("b", squared(), inputs=[ppl.source])
        ppl.mix = combine.zip([ppl.a, ppl.b], flatten=True)
    assert ppl(ROWS[2:3]) == [{"n": 2, "mark": "a", "square": 4}]


def test_streams_are_combined_into_a_stream() -> None:
    made = combine.concat([read_sequence([1]), read_sequence([2])])
    assert list(made) == [1, 2]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (lambda inputs: combine.sample(inputs, weights=[1]), "2 streams and 1 weight"),
        (lambda inputs: combine.sample(inputs, weights=[1, 0]), "must be a number above 0"),
        (lambda inputs: combine.zip(inputs, names=["x"]), "2 streams and 1 name"),
        (lambda _: combine.concat([]), "at least one"),
        (lambda inputs: combine.concat(inputs[0]), "a list of results"),
        (lambda inputs: combine.concat([*inputs, Path("x.jsonl")]), "combines a PosixPath"),
        (lambda inputs: combine.concat([*inputs, "c"]), "not a node"),
    ],
)
def test_invalid_combinations_are_refused_when_the_pipeline_is_built(how: Any, said: str) -> None:
    with pytest.raises(PipelineDefinitionError, match=said):
        combined(how)


def test_rows_that_are_no_records_are_refused_when_the_pipeline_is_built() -> None:
    with pytest.raises(StreamDefinitionError, match="pass names"):
        combined(combine.zip)


def test_inputs_are_named_once() -> None:
    with pytest.raises(PipelineDefinitionError, match="names its inputs twice"), pipeline() as ppl:
        ppl.a = marked(mark="a")
        ppl.add("mix", combine.concat([ppl.a]), inputs=[ppl.a])


def test_the_operators_are_there_by_name_as_well() -> None:
    with pipeline() as ppl:
        ppl.a = marked(mark="a")
        ppl.add("b", marked(mark="b"), inputs=[ppl.source])
        ppl.add("mix", data.combine.RoundRobin(), inputs=[ppl.a, ppl.b])
    assert ppl(ROWS[:2]) == [*of("a", 0), *of("b", 0), *of("a", 1), *of("b", 1)]


def test_a_combination_resumes_and_a_complete_one_is_reused() -> None:
    ppl = combined(combine.round_robin)
    with config.temporary(data_process_resume=True):
        assert not ppl.materialize(ROWS)["mix"].reused
        assert ppl.materialize(ROWS)["mix"].reused
        assert not ppl.materialize(ROWS[1:])["mix"].reused


def test_a_user_registers_stream_operators_of_any_shape(registry: OperatorRegistry) -> None:
    group = registry.new_group("shapes")

    class Pairs(group):  # type: ignore[misc, valid-type]
        def __init__(self, names: list[str], **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.names = names

        def stream(self, first: Any, second: Any) -> Any:
            return DataPipeline.zip(first, second.shuffle(0, seed=1), names=self.names)

    class Endless(group):  # type: ignore[misc, valid-type]
        def stream(self, rows: Any) -> Any:
            return rows.repeat()

    with pipeline() as ppl:
        ppl.a = marked(mark="a")
        ppl.add("pairs", Pairs(names=["x", "y"]), inputs=[ppl.a, ppl.source])
    found = ppl(ROWS)
    assert [row["x"] for row in found] == A
    assert sorted(row["y"]["n"] for row in found) == list(range(6))

    with pytest.raises(PipelineDefinitionError, match="takes 2 inputs, not 1"), pipeline() as ppl:
        ppl.a = marked(mark="a")
        ppl.pairs = Pairs(names=["x", "y"])
    with pytest.raises(PipelineDefinitionError, match="repeat: never ends"), pipeline() as ppl:
        ppl.endless = Endless()
    with pytest.raises(OperatorDefinitionError, match="cannot be `async def`"):

        class Waiting(group):  # type: ignore[misc, valid-type]
            async def stream(self, rows: Any) -> Any:
                return rows


def test_a_record_operator_may_have_a_method_that_is_called_stream(
    registry: OperatorRegistry,
) -> None:
    class Chat(registry.new_group("shapes")):  # type: ignore[misc]
        def stream(self, text: str) -> None: ...

        def forward(self, record: dict) -> None:
            record["said"] = True

    assert Chat(_concurrency_mode="single")([{}]) == [{"said": True}]


def test_a_pipeline_takes_a_stream(root: Path) -> None:
    with pipeline("taking") as ppl:
        ppl.a = marked(mark="a")
    assert ppl(read_sequence(ROWS)) == A
    assert ppl(read_sequence(ROWS).and_return()) == A
    assert (root / "taking/source/read_sequence/read_sequence_results.jsonl").exists()
    with pytest.raises(StreamDefinitionError, match="count: never ends"):
        ppl(DataPipeline.count(key="n"))


@pytest.mark.slow
def test_a_stream_resumes_in_plain_python_if_runs_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    with pipeline("going_on") as ppl:
        ppl.a = marked(mark="a")
    stream = read_sequence(ROWS).map(stopped_once)
    with config.temporary(data_process_resume=True):
        with pytest.raises(KeyboardInterrupt):
            ppl(stream)
        assert ppl(stream) == A
    assert (tmp_path / "calls").read_text().split() == ["0", "1", "2", "2", "3", "4", "5"]


def stopped_once(row: dict[str, Any]) -> dict[str, Any]:
    place = Path(os.environ["CALLS"])  # a name used by a function would count as its code
    with place.open("a") as file:
        file.write(f"{row['n']}\n")
    calls = len(place.read_text().split())
    if calls < 3:
        time.sleep(1.05)
    if calls == 3:
        raise KeyboardInterrupt
    return row
