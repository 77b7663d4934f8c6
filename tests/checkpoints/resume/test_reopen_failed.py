from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagster_dataops.checkpoints.resume.reopen_failed import first_failure, reopen
from tests.examples import at_most
from tests.execution.helpers import (
    KINDS,
    SMALL,
    TINY,
    USUAL,
    JsonlDataset,
    SpanSizes,
    cut_by,
    error_rows,
    expected_failures,
    expected_results,
    node,
    operator_for,
    plan,
    run,
    run_single,
    sink_for,
    without_traceback,
    write_input,
)
from tests.journals import Line, content_interval, iterate_lines, segment_path
from tests.nodes import CheckpointContent, ResumePolicy, content_digest


def lines_of(dataset: JsonlDataset) -> list[Line]:
    with dataset.path.open("rb") as file:
        return list(iterate_lines(file.fileno(), [content_interval(dataset.path)]))


def settled(dataset: JsonlDataset, home: Path) -> CheckpointContent:
    """Return the checkpoint in the form that a later attempt reads."""
    return CheckpointContent.read(node(home).checkpoints / "1")


@pytest.mark.slow
@settings(max_examples=at_most(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=30),
    sizes=st.sampled_from([TINY, SMALL, USUAL]),
    known=st.booleans(),
    data=st.data(),
)
def test_only_the_chosen_records_are_reopened_and_the_result_is_that_of_one_run(
    tmp_path_factory: pytest.TempPathFactory,
    kinds: list[str],
    sizes: SpanSizes,
    known: bool,
    data: st.DataObject,
) -> None:
    home = tmp_path_factory.mktemp("example")
    records = plan(kinds)
    dataset = write_input(home / "input.jsonl", records)
    if known:
        dataset = replace(dataset, rows=len(records), fingerprint=content_digest(dataset.path))
    operator, folder = operator_for("single", 1), node(home)
    failed = [lines_of(dataset)[place] for place in expected_failures(records)]
    chosen = [line for line in failed if data.draw(st.booleans())]
    with pytest.MonkeyPatch.context() as patch:
        cut_by(patch, sizes)
        sink = sink_for(operator, dataset, folder)
        run_single(sink)
        reopen(sink.checkpoint, dataset, {line.start for line in chosen})
        sink.checkpoint.close()
        found = settled(dataset, home)
        for table in (found.table, sink.checkpoint.table):
            gaps = [byte for gap in table.gaps(sink.work.content) for byte in range(*gap)]
            assert gaps == [byte for line in chosen for byte in range(line.start, line.end)]
            assert (table.records, table.failed) == (
                len(records) - len(chosen),
                len(failed) - len(chosen),
            )
        report = run(operator, dataset, folder, resume=ResumePolicy.AUTO)
    assert report.manifest.resumed == len(records) - len(chosen)
    assert folder.result.read_bytes() == expected_results(records)
    undisturbed = node(home, "undisturbed")
    run(operator, dataset, undisturbed)
    assert without_traceback(error_rows(folder)) == without_traceback(error_rows(undisturbed))


def test_without_a_choice_everything_that_failed_is_open_again(tmp_path: Path) -> None:
    dataset = write_input(tmp_path / "input.jsonl", plan(["fail", "keep", "fail"]))
    sink = sink_for(operator_for("single", 1), dataset, node(tmp_path))
    run_single(sink)
    first = first_failure(sink.checkpoint)
    assert first is not None
    assert (first.offset, first.row["exception"]) == (0, "ValueError")
    reopen(sink.checkpoint, dataset, None)
    sink.checkpoint.close()
    assert (settled(dataset, tmp_path).table.records, sink.checkpoint.table.failed) == (1, 0)
    assert first_failure(sink.checkpoint) is None


def test_a_damaged_span_stays_and_is_detected_later(tmp_path: Path) -> None:
    records = plan(["fail", "keep", "fail"])
    dataset = write_input(tmp_path / "input.jsonl", records)
    operator = operator_for("single", 1)
    sink = sink_for(operator, dataset, node(tmp_path))
    run_single(sink)
    spans = list(sink.checkpoint.table.with_failed())  # several if the machine was busy
    assert spans
    for _, segment, offset in spans:
        with segment_path(sink.checkpoint.folder, segment).open("r+b") as file:
            file.seek(offset)
            file.write(b"#")
    reopen(sink.checkpoint, dataset, None)
    sink.checkpoint.close()
    assert settled(dataset, tmp_path).table.records == 3
    run(operator, dataset, node(tmp_path), resume=ResumePolicy.AUTO)
    assert node(tmp_path).result.read_bytes() == expected_results(records)
