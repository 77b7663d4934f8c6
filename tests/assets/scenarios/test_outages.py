"""Tests of outages under Dagster: no result is replaced, and a re-execution resumes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import ErrorRateCheck, build_definitions, pipeline
from dagster_dataops.errors import OutageError
from tests.assets.helpers import (
    Records,
    checks_of,
    definitions_of,
    execute,
    pipeline_of,
    resource_at,
    result_of,
    write_jsonl,
)
from tests.registries import OperatorRegistry

LAYOUTS = pytest.mark.parametrize("layout", ["steps", "single_step"])


class Endpoint:
    """A service that an operator calls for each record, and that may be down for some."""

    def __init__(self, registry: OperatorRegistry) -> None:
        self.down_for: Callable[[int], bool] = lambda _: False
        self.calls: list[int] = []

        @registry("data.text", _concurrency_mode="thread", _max_workers=2)
        def ask(record: dict) -> dict:
            self.calls.append(record["id"])
            if self.down_for(record["id"]):
                raise ConnectionError("401 the key has expired")
            return {"id": record["id"]}

        @registry("data.text", _concurrency_mode="thread", _max_workers=2)
        def keep(record: dict) -> None: ...

        self.ask: Any = ask
        self.keep: Any = keep

    def asked(self) -> list[int]:
        """Return the records of calls since the last call of this method."""
        found, self.calls[:] = sorted(self.calls), []
        return found


@pytest.fixture
def endpoint(registry: OperatorRegistry) -> Endpoint:
    return Endpoint(registry)


def config_of(layout: str, node: str, **given: Any) -> dict[str, Any]:
    """Return the run configuration of a node."""
    if layout == "steps":
        return {"ops": {f"docs__{node}": {"config": given}}}
    return {"ops": {"docs": {"config": {node: given}}}}


def numbers(root: Path, node: str) -> list[int]:
    return [record["id"] for record in result_of(root, "docs", node)]


def failure_of(result: dg.ExecuteInProcessResult) -> str:
    """Return the error that Dagster shows for the first failed step."""
    return next(
        event.step_failure_data.error.to_string()
        for event in result.all_events
        if event.is_step_failure and event.step_failure_data.error is not None
    )


@LAYOUTS
def test_an_outage_fails_the_step_and_the_next_run_calls_the_recovered_endpoint(
    layout: str, endpoint: Endpoint, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    ppl = pipeline_of(a=endpoint.ask(), b=endpoint.keep())
    definitions = definitions_of(ppl, records(12), root, layout=layout)
    assert execute(definitions, instance).success
    endpoint.down_for = lambda _: True
    records(15)
    endpoint.asked()
    for _ in range(2):
        night = execute(definitions, instance, raise_on_error=False)
        assert not night.success
        assert "OutageError" in failure_of(night)
        assert "all records failed (15)" in failure_of(night)
        assert "401 the key has expired" in failure_of(night)
        assert endpoint.asked() == list(range(15))
        assert numbers(root, "a") == numbers(root, "b") == list(range(12))
        assert night.get_asset_materialization_events() == []
    endpoint.down_for = lambda _: False
    assert execute(definitions, instance).success
    assert numbers(root, "a") == numbers(root, "b") == list(range(15))


@LAYOUTS
def test_an_outage_in_the_middle_stops_the_run_and_keeps_successful_calls(
    layout: str, endpoint: Endpoint, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    ppl = pipeline_of(a=endpoint.ask(_stop_after_failures=20), b=endpoint.keep())
    definitions = definitions_of(ppl, records(500), root, layout=layout)
    endpoint.down_for = lambda number: number >= 200
    night = execute(definitions, instance, raise_on_error=False)
    assert not night.success
    assert "20 calls failed with ConnectionError" in failure_of(night)
    first = endpoint.asked()
    assert len(first) < 300
    assert not (root / "docs" / "a" / "a_error.jsonl").exists()
    endpoint.down_for = lambda _: False
    assert execute(definitions, instance).success
    assert not {number for number in first if number < 200} & set(endpoint.asked())
    assert numbers(root, "b") == list(range(500))


def test_a_retry_policy_calls_again_after_an_outage(
    endpoint: Endpoint, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    endpoint.down_for = lambda _: len(endpoint.calls) <= 5
    definitions = definitions_of(
        pipeline_of(a=endpoint.ask()), records(5), root, retry_policy=dg.RetryPolicy(max_retries=1)
    )
    assert execute(definitions, instance).success
    assert endpoint.asked() == sorted([*range(5)] * 2)


@LAYOUTS
def test_the_launchpad_sets_the_number_of_failures_that_stops_a_run(
    layout: str, endpoint: Endpoint, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    endpoint.down_for = lambda _: True
    definitions = definitions_of(pipeline_of(a=endpoint.ask()), records(100), root, layout=layout)
    soon = config_of(layout, "a", stop_after_failures=7)
    with pytest.raises(OutageError, match="7 calls failed"):
        execute(definitions, instance, soon)
    assert 7 <= len(endpoint.asked()) <= 9
    never = config_of(layout, "a", stop_after_failures=0)
    result = execute(definitions, instance, never, raise_on_error=False)
    made = [event.asset_key for event in result.get_asset_materialization_events()]
    assert dg.AssetKey(["docs", "a"]) in made
    assert numbers(root, "a") == []


def test_one_of_several_partitions_fails_and_keeps_its_result(
    endpoint: Endpoint, tmp_path: Path, root: Path, instance: dg.DagsterInstance
) -> None:
    for place, part in enumerate("xyz"):
        write_jsonl(tmp_path / f"{part}.jsonl", [{"id": place}])
    definitions = definitions_of(
        pipeline_of(a=endpoint.ask()),
        str(tmp_path / "{partition}.jsonl"),
        root,
        partitions_def=dg.StaticPartitionsDefinition(list("xyz")),
        backfill_policy=dg.BackfillPolicy.single_run(),
    )
    job = definitions.resolve_implicit_global_asset_job_def()
    tags = {"dagster/asset_partition_range_start": "x", "dagster/asset_partition_range_end": "z"}
    assert job.execute_in_process(instance=instance, tags=tags).success
    endpoint.down_for = lambda number: number == 1
    again = job.execute_in_process(instance=instance, tags=tags, raise_on_error=False)
    assert "1 of 3 partitions failed: y (OutageError" in failure_of(again)
    results = sorted((root / "docs" / "a").rglob("*_results.jsonl"))
    assert [path.read_bytes() for path in results] == [b'{"id":0}\n', b'{"id":1}\n', b'{"id":2}\n']


def test_a_preview_shows_failures_even_if_every_record_fails(
    endpoint: Endpoint, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    endpoint.down_for = lambda _: True
    definitions = definitions_of(pipeline_of(a=endpoint.ask()), records(9), root)
    result = execute(definitions, instance, config_of("steps", "a", limit=4))
    assert result.success
    (observed,) = [
        event.asset_observation_data.asset_observation
        for event in result.all_events
        if event.event_type is dg.DagsterEventType.ASSET_OBSERVATION
        and event.asset_observation_data.asset_observation.asset_key.path == ["docs", "a"]
        and "preview/limit" in event.asset_observation_data.asset_observation.metadata
    ]
    assert observed.metadata["preview/rows_failed"].value == 4


@LAYOUTS
@pytest.mark.parametrize(("failed", "held_up"), [(5, False), (6, True)])
def test_more_than_half_failed_records_block_downstream_assets(
    layout: str,
    failed: int,
    held_up: bool,
    endpoint: Endpoint,
    records: Records,
    root: Path,
    instance: dg.DagsterInstance,
) -> None:
    endpoint.down_for = lambda number: number < failed
    ppl = pipeline_of(a=endpoint.ask(), b=endpoint.keep())
    definitions = definitions_of(ppl, records(10), root, layout=layout)
    result = execute(definitions, instance, raise_on_error=False)
    check = checks_of(result)[0]
    assert not check.passed
    assert check.severity is dg.AssetCheckSeverity("ERROR" if held_up else "WARN")
    assert ("retry_failed_records" in (check.description or "")) is held_up
    assert result.success is not held_up
    assert numbers(root, "a") == list(range(failed, 10))
    assert (root / "docs" / "b").exists() is not held_up


@pytest.mark.parametrize(
    "rate",
    [
        None,
        0.9,
        {"max_error_rate": 0.0, "severity": "WARN"},
    ],
)
def test_a_severity_of_warn_lets_downstream_assets_run_on_the_smaller_part(
    rate: Any, endpoint: Endpoint, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    chosen = ErrorRateCheck(**rate) if isinstance(rate, dict) else rate
    endpoint.down_for = lambda number: number < 8
    with pipeline("docs") as ppl:
        ppl.a = endpoint.ask()
        ppl.b = endpoint.keep()
    definitions = build_definitions(
        ppl, source=records(10), resource=resource_at(root), max_error_rate=chosen
    )
    assert execute(definitions, instance).success
    assert numbers(root, "b") == [8, 9]
