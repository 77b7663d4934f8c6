"""Tests that all modes, worker counts and span sizes publish the same bytes and error rows."""

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagster_dataops.data import data_register
from tests.examples import at_most
from tests.execution.helpers import (
    KINDS,
    MODES,
    SMALL,
    TINY,
    USUAL,
    SpanSizes,
    cut_by,
    error_rows,
    expected_failures,
    expected_results,
    node,
    operator_for,
    plan,
    run,
    run_over,
    turn_around,
    without_traceback,
    write_input,
)

_MIXED = plan(random.Random(7).choices(KINDS, weights=(5, 5, 5, 3, 2, 1, 1, 1), k=150))


def _published(path: Path, mode: str, workers: int, records: list[dict[str, Any]]) -> Any:
    folder = node(path)
    dataset = write_input(path / "input.jsonl", records)
    report = run(operator_for(mode, workers), dataset, folder)
    return report, folder.result.read_bytes(), without_traceback(error_rows(folder))


def _check(path: Path, mode: str, workers: int, records: list[dict[str, Any]]) -> None:
    report, result, errors = _published(path, mode, workers, records)
    failing = expected_failures(records)
    assert result == expected_results(records)
    assert [row["index"] for row in errors] == failing
    assert [row["line"] for row in errors] == [place + 1 for place in failing]
    assert [row["input"] for row in errors] == [records[place] for place in failing]
    manifest = report.manifest
    assert (manifest.rows_in, manifest.failed) == (len(records), len(failing))
    assert manifest.rows_out == result.count(b"\n") == report.dataset.rows
    assert manifest.dropped == sum(record["do"] == "drop" for record in records)


@pytest.mark.parametrize("sizes", [TINY, SMALL, USUAL], ids=["tiny", "small", "usual"])
@pytest.mark.parametrize("workers", [1, 2, 7])
@pytest.mark.parametrize("mode", MODES)
def test_every_outcome_is_published_in_input_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, workers: int, sizes: SpanSizes
) -> None:
    cut_by(monkeypatch, sizes)
    _check(tmp_path, mode, workers, _MIXED)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", MODES)
def test_a_dataset_with_one_kind_of_outcome_is_processed_completely(
    tmp_path: Path, mode: str, kind: str
) -> None:
    _check(tmp_path, mode, 2, plan([kind] * 30))


@pytest.mark.slow
def test_all_modes_write_equal_error_files(tmp_path: Path) -> None:
    written = {mode: _published(tmp_path / mode, mode, 3, _MIXED)[2] for mode in MODES}
    assert written["single"]
    assert all(rows == written["single"] for rows in written.values())


def test_a_plain_operator_fails_with_the_same_traceback_in_every_mode(tmp_path: Path) -> None:
    dataset = write_input(tmp_path / "input.jsonl", plan(["fail", "keep", "fail"]))
    written = []
    for mode in ("single", "thread", "process"):
        run(operator_for(mode, 2), dataset, node(tmp_path, mode))
        written.append(error_rows(node(tmp_path, mode)))
    assert written[0] == written[1] == written[2]
    assert "outcome_of" in written[0][0]["traceback"]
    assert "dagster_dataops/execution/" not in written[0][0]["traceback"]


@pytest.mark.parametrize("mode", ["single", "thread", "process"])
def test_an_async_operator_runs_in_every_mode(tmp_path: Path, mode: str) -> None:
    from tests.execution.helpers import act_async

    dataset = write_input(tmp_path / "input.jsonl", _MIXED)
    folder = node(tmp_path)
    run(act_async(_concurrency_mode=mode, _max_workers=2), dataset, folder)
    assert folder.result.read_bytes() == expected_results(_MIXED)


@pytest.mark.slow
@settings(
    max_examples=at_most(25),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    kinds=st.lists(st.sampled_from(KINDS), max_size=25),
    mode=st.sampled_from(MODES),
    workers=st.integers(1, 4),
    sizes=st.builds(
        SpanSizes,
        st.sampled_from([0.0, 0.5]),
        st.integers(1, 10),
        st.integers(1, 500),
        st.integers(1, 10),
    ),
)
def test_any_outcomes_cut_in_any_way_are_published_in_input_order(
    tmp_path_factory: pytest.TempPathFactory,
    kinds: list[str],
    mode: str,
    workers: int,
    sizes: SpanSizes,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        cut_by(patch, sizes)
        _check(tmp_path_factory.mktemp("example"), mode, workers, plan(kinds))


@pytest.mark.parametrize("mode", MODES)
def test_a_chain_with_a_dataset_operator_gives_the_same_bytes(tmp_path: Path, mode: str) -> None:
    def chain(path: Path, mode: str, workers: int) -> bytes:
        dataset = write_input(path / "input.jsonl", _MIXED)
        first = run(operator_for(mode, workers), dataset, node(path, "first")).dataset
        turned = run(turn_around(), first, node(path, "turned")).dataset
        wrapped = [{**record, "do": "keep", "n": n} for n, record in enumerate(turned)]
        again = write_input(path / "again.jsonl", wrapped)
        last = operator_for(mode, workers, tag="x")
        return run(last, again, node(path, "last")).dataset.path.read_bytes()

    assert chain(tmp_path / mode, mode, 3) == chain(tmp_path / "reference", "single", 1)


@pytest.mark.parametrize("mode", MODES)
def test_an_exit_in_a_task_of_an_async_operator_is_that_records_failure(
    tmp_path: Path, mode: str
) -> None:
    @data_register("data.modes_agree", _concurrency_mode=mode, _max_workers=2)
    async def gathers(record):
        async def part():
            await asyncio.sleep(0.001)
            if record["n"] == 2:
                raise SystemExit(3)

        await asyncio.gather(part(), part())

    run_over(tmp_path, gathers(), [{"n": n} for n in range(6)])
    assert [(row["index"], row["exception"]) for row in error_rows(node(tmp_path))] == [
        (2, "SystemExit")
    ]
    assert node(tmp_path).result.read_bytes().count(b"\n") == 5
