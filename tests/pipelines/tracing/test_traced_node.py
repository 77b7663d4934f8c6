"""Tests of dagster_dataops.pipelines.tracing.traced_node.

What ends a trail, and what has changed.
"""

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import Pipeline, To, combine, config, data_register, pipeline, trace
from dagster_dataops.errors import TraceError, TraceOutdatedError
from tests.pipelines.tracing.conftest import work, write_source

Made = Callable[..., Pipeline]


@data_register("data.traced", outputs=("left", "right"))
def sent(record: dict[str, Any]) -> Any:
    return To("right" if record["n"] % 2 else "left")


@data_register("data.traced")
def kept(record: dict[str, Any]) -> Any:
    return record


def test_a_node_without_a_map_says_that_it_was_switched_off(made: Made, root: Path) -> None:
    made(_trace=False)
    assert not (root / "docs" / "second" / ".second_results.kept").exists()
    for given in (1, None):
        with pytest.raises(TraceError, match="second .*_trace=False.*switched off.*run the node"):
            trace(root / "docs" / "second", given, source_line=None if given else 2)


def test_the_map_of_an_earlier_run_is_removed_when_it_is_switched_off(
    made: Made, root: Path
) -> None:
    kept = root / "docs" / "second" / ".second_results.kept"
    made()
    assert kept.exists()
    with config.temporary(data_process_resume=False):
        made(_trace=False)
    assert (root / "docs" / "second" / "second_error.jsonl").exists()
    assert not kept.exists()


def test_the_map_that_a_retry_needs_is_written_and_read_with_trace_off(
    made: Made, root: Path
) -> None:
    made(_trace=False)
    assert trace(root / "docs" / "first", 1).sources[0].line == 2


def test_results_of_named_outputs_are_mapped_with_trace_off(root: Path, source: Path) -> None:
    with pipeline("docs") as ppl:
        ppl.sent = sent(_trace=False)
    ppl.materialize(source)
    assert trace(root / "docs" / "sent" / "right", 3).sources[0].line == 6


def test_records_that_all_became_one_line_need_no_map(root: Path, source: Path) -> None:
    with pipeline("docs") as ppl:
        ppl.kept = kept()
    ppl.materialize(source)
    assert not (root / "docs" / "kept" / ".kept_results.kept").exists()
    assert trace(root / "docs" / "kept", 7).sources[0].line == 7


def test_a_dataset_operator_ends_the_trail_both_ways(made: Made, root: Path) -> None:
    made()
    (end,) = trace(root / "docs" / "third", 1).ends
    assert (end.node, end.place.line) == ("third", 1)
    assert "takes all records at once" in end.reason
    found = trace(root / "docs" / "third", source_line=2)
    assert [step.node for step in found.steps] == ["first", "second"]
    assert found.ends[0].place.path.endswith("second_results.jsonl")


def test_an_edited_result_is_not_traced(made: Made, root: Path) -> None:
    made()
    result = root / "docs" / "first" / "first_results.jsonl"
    result.write_bytes(result.read_bytes() + b"{}\n")
    with pytest.raises(TraceOutdatedError, match="first_results.jsonl: it was edited or replaced"):
        trace(root / "docs" / "first", 1)


def test_a_deleted_result_is_not_traced(made: Made, root: Path) -> None:
    made()
    (root / "docs" / "first" / "first_results.jsonl").unlink()
    with pytest.raises(TraceOutdatedError, match="it was deleted after run .* published it"):
        trace(root / "docs" / "second", source_line=2)


@pytest.mark.parametrize("given", [{"line": 1}, {"source_line": 2}])
def test_a_result_that_was_made_again_since_is_not_traced(
    made: Made, root: Path, source: Path, given: dict[str, int]
) -> None:
    made()
    write_source(source, 11)
    with pipeline("docs") as first:
        first.first = work()
    first.materialize(source)
    with pytest.raises(TraceOutdatedError, match="node second read another version .*run the node"):
        trace(root / "docs" / "second", given.get("line"), source_line=given.get("source_line"))


def test_a_result_that_was_made_again_with_the_same_content_is_traced(
    made: Made, root: Path, source: Path
) -> None:
    made()
    with config.temporary(data_process_resume=False), pipeline("docs") as first:
        first.first = work()
    first.materialize(source)
    assert trace(root / "docs" / "second", 1).sources[0].line == 2


def test_a_source_that_has_changed_is_not_traced(made: Made, root: Path, source: Path) -> None:
    made()
    before, content = source.stat(), source.read_bytes()
    source.write_bytes(content[:-1] + b" ")  # of the same size and time
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(TraceOutdatedError, match="node first read another version of .*in.jsonl"):
        trace(root / "docs" / "first", 1)


def test_an_error_of_a_trace_survives_pickling() -> None:
    error = TraceOutdatedError("a.jsonl", "it has changed")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (TraceOutdatedError, "Trace of a.jsonl: it has changed")


def test_records_of_several_inputs_are_told_apart(root: Path, tmp_path: Path) -> None:
    with pipeline("docs") as ppl:
        ppl.sent = sent()
        ppl.add("joined", kept(), inputs=[ppl.sent.right, ppl.source, ppl.sent.left])
    source = tmp_path / "in.jsonl"
    source.write_text('{"n": 0}\n\n{"n": 1}\n{"n": 2}')
    ppl.materialize(source)
    lines = [trace(root / "docs" / "joined", line).sources[0].line for line in range(1, 7)]
    assert lines == [3, 1, 3, 4, 1, 4]
    found = trace(root / "docs" / "joined", source_line=3)
    assert [place.line for place in found.results] == [1, 3]


def test_a_stream_that_does_more_than_choose_by_position_ends_the_trail(
    root: Path, source: Path
) -> None:
    class Few(data_register.new_group("traced_streams")):  # type: ignore[misc]
        def stream(self, records: Any) -> Any:
            return records.filter(lambda record: record["n"] > 3)

    with pipeline("docs") as ppl:
        ppl.kept = kept()
        ppl.few = Few()
    ppl.materialize(source)
    (end,) = trace(root / "docs" / "few", 1).ends
    assert "do more than choose records by position" in end.reason


def test_a_stream_that_combines_results_is_traced(root: Path, source: Path) -> None:
    with pipeline("docs") as ppl:
        ppl.sent = sent()
        ppl.pairs = combine.zip([ppl.sent.left, ppl.sent.right], names=["left", "right"])
    ppl.materialize(source)
    found = trace(root / "docs" / "pairs", 2)
    assert [place.line for place in found.sources] == [3, 4]
    assert found.steps[-1].outcome == "merged"
