"""Test assets with results on an object store, each run as on a machine of its own."""

from itertools import count
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import DataOpsIOManager, DataOpsResource, JsonlDataset, config
from dagster_dataops.configuration import bucket_of, root_setting
from dagster_dataops.stores.open_stores import use
from tests.object_stores import FakeStore

ROOT = "memory://assets/results"


@pytest.fixture
def machines(tmp_path: Path) -> Any:
    """Return a function that goes on as on another machine, with the same store."""
    store, numbers = FakeStore(), count()

    def go_on() -> FakeStore:
        config.data_process_scratch = tmp_path / f"machine{next(numbers)}"
        found = bucket_of(root_setting("root", ROOT))
        assert found is not None
        use(found[0], store)
        return store

    return go_on


def metadata_of(result: dg.ExecuteInProcessResult, name: str) -> dict[str, Any]:
    found = {}
    for event in result.get_asset_materialization_events():
        if event.asset_key is not None and event.asset_key.path[-1] == name:
            found = dict(event.step_materialization_data.materialization.metadata)
    return {key: value.value for key, value in found.items()}


def test_assets_and_io_manager_read_what_another_machine_has_published(
    machines: Any, instance: dg.DagsterInstance
) -> None:
    store = machines()
    dataops = DataOpsResource(root=ROOT)
    manager = DataOpsIOManager(dataops=dataops)

    @dg.asset(key=["own", "made"], io_manager_key="io")
    def made() -> list[dict[str, Any]]:
        return [{"n": 1}, {"n": 2}]

    got: list[Any] = []

    @dg.asset(ins={"made": dg.AssetIn(key=["own", "made"])}, io_manager_key="io")
    def used(made: JsonlDataset) -> list[dict[str, Any]]:
        got.append(made.read())
        return [*made, {"n": 3}]

    first = dg.materialize([made], resources={"io": manager}, instance=instance)
    machines()
    second = dg.materialize(
        [made, used], resources={"io": manager}, instance=instance, selection=[used]
    )

    assert got == [[{"n": 1}, {"n": 2}]]
    uri = metadata_of(first, "made")["dagster/uri"]
    assert uri.startswith("fake://bucket/results/own/made/.versions/")
    assert uri.endswith("/made_results.jsonl")
    assert store.objects[uri.removeprefix("fake://bucket/")][0] == b'{"n":1}\n{"n":2}\n'
    assert metadata_of(second, "used")["dagster/row_count"] == 3


def test_a_value_that_is_stored_again_replaces_the_earlier_one(
    machines: Any, instance: dg.DagsterInstance
) -> None:
    values = iter([[{"n": 1}], [{"n": 2}], [{"n": 2}]])

    @dg.asset(io_manager_key="io")
    def made() -> list[dict[str, Any]]:
        return next(values)

    kept = []
    for _ in range(3):
        store = machines()
        manager = DataOpsIOManager(dataops=DataOpsResource(root=ROOT))
        dg.materialize([made], resources={"io": manager}, instance=instance)
        kept.append([key for key in store.objects if ".versions" in key])

    assert [len(keys) for keys in kept] == [1, 1, 1]
    machines()
    from dagster_dataops import load_result

    assert load_result(f"{ROOT}/made").read() == [{"n": 2}]
