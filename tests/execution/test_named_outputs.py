"""Operators with named outputs publish the same files in all modes, after kills and retries."""

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagster_dataops import To, load_result
from dagster_dataops.data import data_register
from dagster_dataops.errors import RetryRefusedError
from tests.examples import at_most
from tests.execution.helpers import (
    MODES,
    SMALL,
    TINY,
    USUAL,
    Listener,
    SpanSizes,
    act,
    cut_by,
    error_rows,
    plan,
    run,
    write_input,
)
from tests.execution.splitting import (
    FAILING,
    KINDS,
    expected,
    operator_for,
    send,
    splits,
    written,
)
from tests.nodes import Manifest, ResumePolicy, published_manifest
from tests.object_stores import FakeStore, machine

_MIXED = plan(random.Random(5).choices(KINDS, weights=(5, 5, 3, 3, 3, 2, 1, 1, 1, 1), k=160))


def _check(path: Path, mode: str, workers: int, records: list[dict[str, Any]]) -> None:
    folder = splits(path)
    report = run(operator_for(mode, workers), write_input(path / "in.jsonl", records), folder)
    assert written(folder) == expected(records)
    failing = [place for place, one in enumerate(records) if one["do"] in FAILING]
    assert [row["index"] for row in error_rows(folder)] == failing
    manifest = report.manifest
    assert (manifest.rows_in, manifest.failed) == (len(records), len(failing))
    assert manifest.rows_out == sum(one.dataset.rows or 0 for one in report.outputs.values())
    for name, one in report.outputs.items():
        assert one.dataset.path == folder.outputs[name].result
        assert one.dataset.rows == expected(records)[name].count(b"\n")
        assert load_result(folder.outputs[name]) == one.dataset
        assert one.error_path == (folder.errors if failing else None)
    assert not folder.checkpoints.exists()
    assert not folder.result.exists()


@pytest.mark.parametrize("sizes", [TINY, SMALL, USUAL], ids=["tiny", "small", "usual"])
@pytest.mark.parametrize("mode", MODES)
def test_every_line_is_published_in_its_output_in_input_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, sizes: SpanSizes
) -> None:
    cut_by(monkeypatch, sizes)
    _check(tmp_path, mode, 3, _MIXED)


@pytest.mark.parametrize("kind", KINDS)
def test_records_of_one_kind_come_out_whole(tmp_path: Path, kind: str) -> None:
    _check(tmp_path, "single", 1, plan([kind] * 20))


def test_an_input_without_records_gives_empty_outputs(tmp_path: Path) -> None:
    _check(tmp_path, "thread", 2, [])


@pytest.mark.slow
@settings(max_examples=at_most(25), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from(KINDS), max_size=40), st.integers(1, 4))
def test_the_modes_agree_on_any_records(
    tmp_path_factory: pytest.TempPathFactory, kinds: list[str], workers: int
) -> None:
    path = tmp_path_factory.mktemp("any")
    for mode in ("single", "thread", "async"):
        _check(path / mode, mode, workers, plan(kinds))


@pytest.mark.parametrize("mode", MODES)
def test_failed_records_are_retried_alone_and_land_in_their_places(
    tmp_path: Path, mode: str
) -> None:
    folder, dataset = splits(tmp_path), write_input(tmp_path / "in.jsonl", _MIXED)
    operator = retry_async if mode == "async" else retry
    (tmp_path / "down").touch()
    given: dict[str, Any] = {
        "_concurrency_mode": mode,
        "_max_workers": 2,
        "_stop_after_failures": 0,
    }
    run(operator(flag=str(tmp_path / "down"), **given), dataset, folder)
    assert error_rows(folder)
    (tmp_path / "down").unlink()
    listener = Listener()
    run(
        operator(flag=str(tmp_path / "down"), **given),
        dataset,
        folder,
        resume=ResumePolicy.FAILED_RECORDS,
        run="next",
        progress=listener,
    )
    assert written(folder) == expected([{**one, "do": _whole(one)} for one in _MIXED])
    assert "retrying" in listener.notes[0]
    assert not folder.errors.exists()


def _whole(record: dict[str, Any]) -> str:
    return "train" if record["do"] in FAILING else str(record["do"])


def _repaired(record: dict[str, Any], flag: str) -> Any:
    from tests.execution.splitting import sent

    if record["do"] in FAILING and not Path(flag).exists():
        return To("train", {**record, "do": "train"})
    return sent(record)


@data_register("data.splitting", outputs=("train", "test"))
def retry(record, flag):
    return _repaired(record, flag)


@data_register("data.splitting", outputs=("train", "test"))
async def retry_async(record, flag):
    return _repaired(record, flag)


def test_a_retry_after_an_output_was_edited_is_refused(tmp_path: Path) -> None:
    folder, dataset = splits(tmp_path), write_input(tmp_path / "in.jsonl", _MIXED)
    run(operator_for("single"), dataset, folder)
    with folder.outputs["test"].result.open("ab") as file:
        file.write(b'{"n":0}\n')
    with pytest.raises(RetryRefusedError, match="edited or replaced"):
        run(operator_for("single"), dataset, folder, resume=ResumePolicy.FAILED_RECORDS, run="b")


def test_a_retry_with_other_outputs_is_refused(tmp_path: Path) -> None:
    folder, dataset = splits(tmp_path), write_input(tmp_path / "in.jsonl", _MIXED)
    run(operator_for("single"), dataset, folder)

    @data_register("data.splitting_again", outputs=("test", "train"))
    def again(record):
        return To("test")

    policy = ResumePolicy.FAILED_RECORDS
    other = splits(tmp_path).with_outputs(("test", "train"))
    with pytest.raises(RetryRefusedError):
        run(again(_concurrency_mode="single"), dataset, other, resume=policy, run="b")


def test_outcomes_of_an_earlier_input_are_used_again_in_every_output(tmp_path: Path) -> None:
    folder = splits(tmp_path)
    operator = operator_for("thread", _reuse_outcomes=True)
    sound = [one for one in _MIXED if one["do"] not in FAILING]
    run(operator, write_input(tmp_path / "in.jsonl", sound), folder)
    more = [*sound[20:], {"n": 900, "do": "both", "text": "new"}, *sound[:10]]
    report = run(
        operator,
        write_input(tmp_path / "more.jsonl", more),
        folder,
        resume=ResumePolicy.AUTO,
        run="next",
    )
    assert written(folder) == expected(more)
    assert report.rows_resumed == len(more) - 1


def test_a_finished_result_is_taken_over_if_all_outputs_are_intact(tmp_path: Path) -> None:
    folder, dataset = splits(tmp_path), write_input(tmp_path / "in.jsonl", _MIXED)
    first = run(operator_for("single"), dataset, folder, reuse_finished=True)
    assert run(operator_for("single"), dataset, folder, reuse_finished=True).reused
    folder.outputs["test"].result.unlink()
    assert published_manifest(folder) is None
    again = run(operator_for("single"), dataset, folder, reuse_finished=True)
    assert not again.reused
    assert again.manifest.fingerprint == first.manifest.fingerprint
    assert written(folder) == expected(_MIXED)


def test_equal_outputs_keep_their_files(tmp_path: Path) -> None:
    folder, dataset = splits(tmp_path), write_input(tmp_path / "in.jsonl", _MIXED)
    run(operator_for("single"), dataset, folder)
    before = [place.result.stat().st_ino for place in folder.outputs.values()]
    run(operator_for("thread"), dataset, folder, run="next")
    assert [place.result.stat().st_ino for place in folder.outputs.values()] == before
    assert published_manifest(folder) is not None


def test_the_result_of_an_operator_with_one_output_is_replaced(tmp_path: Path) -> None:
    folder, dataset = splits(tmp_path), write_input(tmp_path / "in.jsonl", plan(["train"] * 3))
    run(act(_concurrency_mode="single"), dataset, folder)
    assert folder.result.exists()
    run(operator_for("single"), dataset, folder, run="next")
    assert not folder.result.exists()
    run(act(_concurrency_mode="single"), dataset, folder)
    assert folder.result.exists()


def test_the_manifest_of_an_output_names_that_of_the_node(tmp_path: Path) -> None:
    folder, dataset = splits(tmp_path), write_input(tmp_path / "in.jsonl", _MIXED)
    run(operator_for("single"), dataset, folder)
    own = Manifest.load(folder.outputs["train"].manifest)
    assert own is not None
    assert own.part_of == "../node_results.jsonl.json"
    assert own.error_file(folder.outputs["train"]) == folder.errors
    assert not own.outputs
    node = Manifest.load(folder.manifest)
    assert node is not None
    assert list(node.outputs) == ["train", "test"]


def test_results_are_exported_to_a_file_each(tmp_path: Path) -> None:
    folder, dataset = splits(tmp_path), write_input(tmp_path / "in.jsonl", _MIXED)
    operator = send(_concurrency_mode="single", _stop_after_failures=0)
    report = run(operator.set_output(tmp_path / "out"), dataset, folder)
    for name, one in report.outputs.items():
        assert one.exported == tmp_path / "out" / "node" / f"{name}.jsonl"
        assert one.exported.read_bytes() == expected(_MIXED)[name]


def test_outputs_are_the_same_on_another_machine(tmp_path: Path) -> None:
    store, dataset = FakeStore(), write_input(tmp_path / "in.jsonl", _MIXED)
    for _ in range(2):
        here = splits(machine(tmp_path / "here", store))
        run(operator_for("single"), dataset, here)

        there = splits(machine(tmp_path / "there", store))
        for place in there.outputs.values():
            load_result(place)
        assert written(there) == expected(_MIXED)
