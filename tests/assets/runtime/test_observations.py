"""Tests of the asset page during a step: one line, of the right asset and partition."""

import time
import types
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import DataOpsResource, JsonlDataset
from dagster_dataops.assets import build_operator_job
from dagster_dataops.assets.runtime.observations import Observations, progress_metadata
from dagster_dataops.execution.progress import ProgressState
from tests.assets.helpers import definitions_of, execute, pipeline_of, resource_at
from tests.registries import OperatorRegistry

KEY = dg.AssetKey(["docs", "slow"])
Records = Callable[[int], Path]


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the first observation at once instead of after seconds."""
    monkeypatch.setattr("dagster_dataops.assets.runtime.observations._FIRST_SECONDS", 0.0)


@pytest.fixture
def slow(registry: OperatorRegistry) -> Any:
    @registry("data.text", _concurrency_mode="thread", _max_workers=2)
    def slow(record: dict) -> None:
        time.sleep(0.02)
        if record["id"] == 5:
            raise ValueError

    return slow


def observed(instance: dg.DagsterInstance, key: dg.AssetKey = KEY) -> list[Any]:
    """Return the observations of an asset, the oldest first."""
    records = instance.fetch_observations(key, limit=100).records
    return [record.asset_observation for record in reversed(records)]


def shown(observation: Any) -> str:
    """Return the text of an observation, which has no other metadata."""
    ((name, value),) = observation.metadata.items()
    assert name == "dagster_dataops/progress"
    assert isinstance(value, dg.TextMetadataValue)
    return value.text or ""


@pytest.mark.parametrize(("hours", "least"), [(1 / 6, 6), (1, 9), (100, 15), (1000, 18)])
def test_a_run_of_any_length_is_observed_at_most_twenty_times(
    hours: float, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr("dagster_dataops.execution.progress.time", clock)
    context: Any = None
    observations = Observations(context, KEY, None)
    times = []
    for second in range(int(hours * 3600)):
        clock.now = 100.0 + second
        if observations.due():
            times.append(second)
    assert least <= len(times) <= 19  # and one at its end
    assert times[0] == 5
    pauses = [after - before for before, after in pairwise(times)]
    assert pauses == sorted(pauses)


def test_progress_is_one_text_so_that_nothing_of_it_is_plotted_beside_results() -> None:
    begun = ProgressState(0, 0, 0, 10_000, None, 0)
    assert progress_metadata(begun, 0.0) == {
        "dagster_dataops/progress": "0 records",
    }
    assert progress_metadata(ProgressState(50, 2, 500, 2000, None, 10), 10.0) == {
        "dagster_dataops/progress": f"{'█' * 5}{'░' * 15} 50 of ~200 records (25.0 %), "
        "4.0 records/s, 38 s left, 2 failed",
    }
    done = progress_metadata(ProgressState(50, 0, 500, 500, 50, 0), 10.0)
    assert done["dagster_dataops/progress"].startswith(f"{'█' * 20} 50 of 50 records (100.0 %)")


def test_a_short_step_is_not_observed(
    slow: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    execute(definitions_of(pipeline_of(slow=slow()), records(10), root), instance)
    assert observed(instance) == []


@pytest.mark.usefixtures("quick")
def test_a_step_is_observed_while_it_runs_and_materialized_once_at_its_end(
    registry: OperatorRegistry, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    seen: list[tuple[int, bool]] = []

    def look() -> None:
        materialized = instance.get_latest_materialization_event(KEY) is not None
        seen.append((len(observed(instance)), materialized))

    looks = types.SimpleNamespace(once=look)  # an object, whose code is not the operator's

    @registry("data.text", _concurrency_mode="thread", _max_workers=2)
    def slow(record: dict) -> None:
        time.sleep(0.02)
        if record["id"] == 5:
            raise ValueError
        if record["id"] == 90:
            looks.once()

    definitions = definitions_of(pipeline_of(slow=slow()), records(100), root)
    result = execute(definitions, instance)
    ((before, materialized),) = seen
    assert before >= 1
    assert not materialized
    found = [shown(observation) for observation in observed(instance)]
    assert "100 of ~100 records (100.0 %)" in found[-1]
    assert found[-1].endswith(", 1 failed")
    assert "100.0 %" not in found[0]
    (event,) = [e for e in result.get_asset_materialization_events() if e.asset_key == KEY]
    assert event.materialization.metadata["dagster/row_count"].value == 99
    latest = instance.get_latest_materialization_event(KEY)
    assert latest is not None
    assert latest.timestamp >= instance.fetch_observations(KEY, limit=1).records[0].timestamp


@pytest.mark.usefixtures("quick")
def test_observations_leave_the_asset_with_the_data_version_of_its_content(
    slow: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    definitions = definitions_of(pipeline_of(slow=slow()), records(20), root)
    versions = []
    for _ in range(2):
        execute(definitions, instance)
        event = instance.get_latest_data_version_record(KEY)
        assert event is not None
        assert event.asset_materialization is not None
        versions.append((event.asset_materialization.tags or {})["dagster/data_version"])
    assert versions[0] == versions[1]
    assert observed(instance)


@pytest.mark.usefixtures("quick")
def test_an_observation_is_of_the_partition_that_is_worked_on(
    slow: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    source = JsonlDataset.of_file(records(20))

    @dg.asset(key=KEY, partitions_def=dg.StaticPartitionsDefinition(["a", "b"]))
    def parts(context: dg.AssetExecutionContext, dataops: DataOpsResource) -> None:
        folder = dataops.folder(KEY.path, context.partition_key)
        dataops.run_operator(context, slow(), [source], folder)

    given = {"dataops": resource_at(root)}
    assert dg.materialize([parts], resources=given, partition_key="b", instance=instance).success
    assert {observation.partition for observation in observed(instance)} == {"b"}


@pytest.mark.usefixtures("quick")
def test_assets_of_one_step_are_observed_separately(
    slow: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    source = JsonlDataset.of_file(records(20))
    keys = [KEY, dg.AssetKey(["docs", "slower"])]

    @dg.multi_asset(specs=[dg.AssetSpec(key) for key in keys])
    def both(context: dg.AssetExecutionContext, dataops: DataOpsResource) -> Any:
        for key in keys:
            dataops.run_operator(context, slow(), [source], dataops.folder(key.path))
            yield dg.MaterializeResult(key)

    given = {"dataops": resource_at(root)}
    assert dg.materialize([both], resources=given, instance=instance).success
    for key in keys:
        assert "20 of " in shown(observed(instance, key)[-1])


@pytest.mark.usefixtures("quick")
def test_a_folder_without_an_asset_is_not_observed(
    slow: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    source = JsonlDataset.of_file(records(20))

    @dg.asset(key=KEY)
    def elsewhere(context: dg.AssetExecutionContext, dataops: DataOpsResource) -> None:
        dataops.run_operator(context, slow(), [source], dataops.folder(["scratch"]))

    given = {"dataops": resource_at(root)}
    assert dg.materialize([elsewhere], resources=given, instance=instance).success
    assert observed(instance) == []


@pytest.mark.usefixtures("quick")
def test_ops_are_not_observed(
    slow: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    job = build_operator_job(
        pipeline_of(slow=slow()), source=records(20), resources={"dataops": resource_at(root)}
    )
    result = job.execute_in_process(instance=instance)
    assert result.success
    kinds = [event.event_type for event in result.all_events]
    assert dg.DagsterEventType.ASSET_OBSERVATION not in kinds
