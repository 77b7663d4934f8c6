"""Tests of the metadata of records that earlier attempts had settled."""

from collections.abc import Callable
from pathlib import Path

import dagster as dg

from tests.assets.helpers import definitions_of, execute, metadata_of, pipeline_of
from tests.registries import OperatorRegistry

KEY = dg.AssetKey(["docs", "fragile"])


def test_a_run_links_to_the_run_that_it_resumes_and_names_several(
    registry: OperatorRegistry,
    records: Callable[[int], Path],
    root: Path,
    instance: dg.DagsterInstance,
) -> None:
    fails_at = [60, 80]

    @registry("data.text", _concurrency_mode="single", _ignore_errors=False)
    def fragile(record: dict) -> None:
        if fails_at and record["id"] == fails_at[0]:
            fails_at.pop(0)
            raise ConnectionError

    definitions = definitions_of(pipeline_of(fragile=fragile()), records(100), root)
    first = execute(definitions, instance, raise_on_error=False)
    second = execute(definitions, instance, raise_on_error=False)
    third = metadata_of(execute(definitions, instance), "docs", "fragile")
    assert third["rows_resumed"] == 80
    assert third["resumed_from"] == f"{first.run_id}, {second.run_id}"

    fails_at.append(60)
    failed = execute(definitions, instance, raise_on_error=False)
    goes_on = execute(definitions, instance)
    (event,) = [e for e in goes_on.get_asset_materialization_events() if e.asset_key == KEY]
    link = event.materialization.metadata["dagster_dataops/resumed_from"]
    assert link == dg.MetadataValue.dagster_run(failed.run_id)


def test_a_run_that_resumes_nothing_does_not_mention_it(
    registry: OperatorRegistry,
    records: Callable[[int], Path],
    root: Path,
    instance: dg.DagsterInstance,
) -> None:
    @registry("data.text", _concurrency_mode="single")
    def sound(record: dict) -> None:
        """Leave the record as it is."""

    definitions = definitions_of(pipeline_of(sound=sound()), records(10), root)
    metadata = metadata_of(execute(definitions, instance), "docs", "sound")
    assert not {"rows_resumed", "resumed_from"} & metadata.keys()
