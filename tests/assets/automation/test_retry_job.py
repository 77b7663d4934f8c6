"""Tests of the job that retries failed records and updates downstream results."""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import ErrorRateCheck, build_definitions
from dagster_dataops.errors import RetryRefusedError
from tests.assets.helpers import (
    Records,
    checks_of,
    execute,
    log_of,
    metadata_of,
    numbered,
    pipeline_of,
    read_jsonl,
    resource_at,
    result_of,
    write_jsonl,
)
from tests.registries import OperatorRegistry

pytestmark = pytest.mark.slow

COUNT = 200


class Faults:
    """A tenth of the records fails until the fault is fixed; counts the calls by node."""

    def __init__(self, registry: OperatorRegistry) -> None:
        self.calls: dict[str, list[int]] = {}
        self.healed = 0

        @registry("data.text", _concurrency_mode="thread", _max_workers=4)
        def flaky(record: dict, node: str = "", every: int = 10) -> None:
            self.calls.setdefault(node, []).append(record["id"])
            if record["id"] % every == 3 and record["id"] // every % 3 >= self.healed:
                msg = f"no answer for {record['id']}"
                raise TimeoutError(msg)
            record[node] = record["id"] * 2

        self.flaky: Any = flaky

    def taken(self) -> dict[str, int]:
        """Return the calls by node since the last call of this method."""
        taken = {node: len(calls) for node, calls in self.calls.items()}
        self.calls.clear()
        return taken


@pytest.fixture
def faults(registry: OperatorRegistry) -> Faults:
    return Faults(registry)


def definitions_at(root: Path, source: Any, faults: Faults, **keywords: Any) -> dg.Definitions:
    ppl = pipeline_of(
        a=faults.flaky(node="a"), b=faults.flaky(node="b", every=1000), c=faults.flaky(node="c")
    )
    keywords = {"jobs": ["pipeline", "retry"], **keywords}
    return build_definitions(ppl, source=source, resource=resource_at(root), **keywords)


def retry(
    definitions: dg.Definitions, instance: dg.DagsterInstance, **keywords: Any
) -> dg.ExecuteInProcessResult:
    job = definitions.resolve_job_def("docs_retry_failed_records")
    return job.execute_in_process(instance=instance, **keywords)


def bytes_of(root: Path) -> dict[str, bytes]:
    found = {}
    for node in "abc":
        found[node] = (root / "docs" / node / f"{node}_results.jsonl").read_bytes()
    return found


@pytest.mark.parametrize("layout", ["steps", "single_step"])
def test_rounds_of_retries_end_with_the_bytes_of_a_run_without_faults(
    layout: str,
    faults: Faults,
    records: Records,
    root: Path,
    tmp_path: Path,
    instance: dg.DagsterInstance,
) -> None:
    source = records(COUNT)
    faults.healed = 3
    execute(definitions_at(tmp_path / "without", source, faults), instance)
    faults.healed = 0
    faults.taken()

    definitions = definitions_at(root, source, faults, layout=layout)
    execute(definitions, instance)
    assert faults.taken()["a"] == COUNT
    open_records = COUNT // 10
    for healed in (1, 2, 3):
        faults.healed = healed
        failed_before = read_jsonl(root / "docs" / "a" / "a_error.jsonl")
        result = retry(definitions, instance)
        assert result.success
        taken = faults.taken()
        assert taken["a"] == open_records == len(failed_before)
        open_records = metadata_of(result, "docs", "a")["rows_failed"]
        assert taken["b"] == taken["c"] == COUNT - open_records  # their input has changed
        assert [check.passed for check in checks_of(result)] == [healed == 3, True, True]
        ids = [record["id"] for record in result_of(root, "docs", "c")]
        assert ids == sorted(ids)

    assert bytes_of(root) == bytes_of(tmp_path / "without")
    assert not (root / "docs" / "a" / "a_error.jsonl").exists()


def test_a_node_with_an_unchanged_input_retries_only_its_own_failures(
    registry: OperatorRegistry, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    faults = Faults(registry)
    ppl = pipeline_of(a=faults.flaky(node="a", every=10**6), b=faults.flaky(node="b"))
    definitions = build_definitions(
        ppl, source=records(COUNT), resource=resource_at(root), jobs=["pipeline", "retry"]
    )
    faults.healed = 1  # the failing record of a, id 3, is none
    execute(definitions, instance)
    faults.taken()
    faults.healed = 3
    result = retry(definitions, instance)
    assert set(faults.taken()) == {"b"}
    assert "no failed record to retry" in metadata_of(result, "docs", "a")["notes"]
    assert [record["id"] for record in result_of(root, "docs", "b")] == list(range(COUNT))


def test_failed_retries_leave_downstream_results_unchanged(
    faults: Faults, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    definitions = definitions_at(root, records(COUNT), faults)
    execute(definitions, instance)
    before = bytes_of(root)
    faults.taken()
    retry(definitions, instance)
    assert set(faults.taken()) == {"a"}
    assert bytes_of(root) == before


def test_the_source_is_not_made_again(
    faults: Faults, root: Path, instance: dg.DagsterInstance
) -> None:
    asked: list[int] = []

    def texts() -> Any:
        asked.append(1)
        return numbered(COUNT)

    definitions = definitions_at(root, texts, faults)
    execute(definitions, instance)
    faults.healed = 3
    result = retry(definitions, instance)
    assert len(asked) == 1
    assert len(result.get_asset_materialization_events()) == 3
    assert len(result_of(root, "docs", "c")) == COUNT


def test_a_retry_that_was_cut_short_between_two_nodes_is_finished_by_the_next(
    faults: Faults, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    definitions = definitions_at(root, records(COUNT), faults)
    execute(definitions, instance)
    faults.healed = 3
    only_a = [dg.AssetKey(["docs", "a"])]
    retry(definitions, instance, asset_selection=only_a)
    faults.taken()
    result = retry(definitions, instance)
    assert faults.taken() == {"b": COUNT, "c": COUNT}
    line = "b: processing all records, because the input is not that of run"
    assert any(text.startswith(line) for text in log_of(instance, result.run_id))


def test_steps_stopped_by_a_blocking_check_run_after_the_failures_are_fixed(
    faults: Faults, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    rate = ErrorRateCheck(0.01, blocking=True)
    definitions = definitions_at(root, records(COUNT), faults, max_error_rate=rate)
    assert not execute(definitions, instance, raise_on_error=False).success
    assert set(faults.taken()) == {"a"}
    faults.healed = 3
    assert retry(definitions, instance).success
    assert faults.taken() == {"a": COUNT // 10, "b": COUNT, "c": COUNT}


def test_a_result_that_was_edited_is_never_replaced_by_the_retry_job(
    faults: Faults, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    definitions = definitions_at(root, records(COUNT), faults)
    execute(definitions, instance)
    path = write_jsonl(root / "docs" / "a" / "a_results.jsonl", [{"id": 0, "mine": True}])
    with pytest.raises(RetryRefusedError, match="edited or replaced"):
        retry(definitions, instance)
    assert read_jsonl(path) == [{"id": 0, "mine": True}]


def test_an_operator_that_takes_all_records_follows(
    faults: Faults,
    registry: OperatorRegistry,
    records: Records,
    root: Path,
    instance: dg.DagsterInstance,
) -> None:
    runs: list[int] = []

    @registry("data.text", rewrite_func="forward_batch_input")
    def backwards(data: list[dict]) -> list[dict]:
        runs.append(len(data))
        return data[::-1]

    ppl = pipeline_of(a=faults.flaky(node="a"), b=backwards())
    definitions = build_definitions(
        ppl, source=records(COUNT), resource=resource_at(root), jobs=["pipeline", "retry"]
    )
    execute(definitions, instance)
    retry(definitions, instance)
    assert runs == [COUNT - 20]  # nothing has changed
    faults.healed = 3
    retry(definitions, instance)
    assert runs == [COUNT - 20, COUNT]
    retry(definitions, instance)
    assert len(runs) == 2


def test_launchpad_settings_of_a_step_are_applied(
    faults: Faults, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    definitions = definitions_at(root, records(COUNT), faults)
    execute(definitions, instance)
    faults.taken()
    never = {"ops": {"docs__a": {"config": {"resume": "never"}}}}
    retry(definitions, instance, run_config=never)
    assert faults.taken()["a"] == COUNT
