"""Tests of build_definitions: job, schedule, resources, executor; several pipelines."""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import DataOpsResource, build_definitions, pipeline
from dagster_dataops.errors import ConfigurationError
from tests.assets.helpers import (
    Records,
    definitions_of,
    execute,
    pipeline_of,
    resource_at,
    result_of,
    spec_of,
)


def test_a_job_materializes_every_node_and_not_the_file(
    upper: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    ppl = pipeline_of(first=upper(), second=upper())
    definitions = build_definitions(ppl, source=records(3), resource=resource_at(root))
    result = definitions.resolve_job_def("docs_pipeline").execute_in_process(instance=instance)
    steps = [event.step_key for event in result.get_step_success_events()]
    assert steps == ["docs__first", "docs__second"]


def test_nodes_of_nested_pipelines_and_functions_are_assets(
    upper: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    def backwards(rows: list[dict]) -> list[dict]:
        """Reverse the order."""
        return rows[::-1]

    inner = pipeline_of("cleaning", loud=upper(), back=backwards)
    with pipeline("docs") as ppl:
        ppl.first = upper()
        ppl.clean = inner
        ppl.again = inner
        ppl.add("both", upper(), inputs=[ppl.clean, ppl.again])
    definitions = definitions_of(ppl, records(3), root)
    upstream = {
        key.path[-1]: {
            parent.path[-1] for parent in definitions.resolve_asset_graph().get(key).parent_keys
        }
        for key in definitions.resolve_asset_graph().materializable_asset_keys
    }

    assert upstream == {
        "first": {"texts"},
        "clean_loud": {"first"},
        "clean_back": {"clean_loud"},
        "again_loud": {"clean_back"},
        "again_back": {"again_loud"},
        "both": {"clean_back", "again_back"},
    }
    function = spec_of(definitions, "docs", "clean_back")
    assert function.description == "Reverse the order."
    assert function.metadata["dagster_dataops/operator"] == f"{__name__}.{backwards.__qualname__}"
    assert execute(definitions, instance).success
    assert len(result_of(root, "docs", "both")) == 6
    assert result_of(root, "docs", "clean_back") == result_of(root, "docs", "first")[::-1]


def test_every_job_has_a_description(upper: Any, records: Records, root: Path) -> None:
    definitions = definitions_of(pipeline_of("docs", first=upper()), records(1), root)
    jobs = definitions.resolve_all_job_defs()
    described = {job.name for job in jobs if job.description}
    assert described >= {"docs_pipeline", "docs_preview", "docs_refresh"}


def test_the_definitions_can_be_loaded(upper: Any, records: Records) -> None:
    definitions = build_definitions(pipeline_of(upper=upper()), source=records(3))
    dg.Definitions.validate_loadable(definitions)


def test_a_schedule_exists_on_request(upper: Any, records: Records) -> None:
    ppl = pipeline_of(upper=upper())
    definitions = build_definitions(ppl, source=records(1), schedule="0 2 * * *")
    schedule = definitions.resolve_schedule_def("docs_pipeline_schedule")
    assert schedule.cron_schedule == "0 2 * * *"
    assert schedule.job_name == "docs_pipeline"
    without = build_definitions(ppl, source=records(1))
    assert not without.schedules


def test_an_impossible_schedule_is_refused(upper: Any, records: Records) -> None:
    with pytest.raises(ConfigurationError, match="schedule is 'at night'; it must be a cron line"):
        build_definitions(pipeline_of(upper=upper()), source=records(1), schedule="at night")


@pytest.mark.parametrize("shared", [True, False], ids=["given", "default"])
def test_one_definitions_object_may_hold_two_pipelines(
    shared: bool,
    upper: Any,
    records: Records,
    root: Path,
    instance: dg.DagsterInstance,
) -> None:
    one, other = (
        build_definitions(
            pipeline_of(name, upper=upper()),
            source=records(3),
            resource=resource_at(root) if shared else None,
            schedule="@daily",
        )
        for name in ("one", "other")
    )
    merged = dg.Definitions.merge(one, other)
    dg.Definitions.validate_loadable(merged)
    assert execute(merged, instance).success
    assert result_of(root, "one", "upper") == result_of(root, "other", "upper")


def test_pipelines_with_different_resources_are_not_merged_silently(
    upper: Any, records: Records, root: Path
) -> None:
    one, other = (
        build_definitions(
            pipeline_of(name, upper=upper()),
            source=records(3),
            resource=DataOpsResource(root=str(root / name)),
        )
        for name in ("one", "other")
    )
    with pytest.raises(dg.DagsterInvariantViolationError, match="dataops"):
        dg.Definitions.merge(one, other)


def test_a_root_that_is_changed_for_one_launch_counts_for_everything_in_it(
    upper: Any, records: Records, root: Path, tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    ppl = pipeline_of(first=upper(), second=upper())
    definitions = build_definitions(ppl, source=records(3), resource=resource_at(root))
    other = tmp_path / "trial"
    execute(definitions, instance, {"resources": {"dataops": {"config": {"root": str(other)}}}})
    assert len(result_of(other, "docs", "second")) == 3
    assert not root.exists()


def test_the_root_may_come_from_the_environment(
    upper: Any,
    records: Records,
    tmp_path: Path,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Ours(DataOpsResource):
        """A resource of the user."""

    monkeypatch.setenv("OUR_RESULTS", str(tmp_path / "ours"))
    resource = Ours(root=dg.EnvVar("OUR_RESULTS"))
    ppl = pipeline_of(upper=upper())
    execute(build_definitions(ppl, source=records(3), resource=resource), instance)
    assert len(result_of(tmp_path / "ours", "docs", "upper")) == 3


def test_one_pipeline_may_continue_another(
    upper: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    resource = resource_at(root)
    one = build_definitions(pipeline_of("one", upper=upper()), source=records(3), resource=resource)
    other = build_definitions(
        pipeline_of("other", again=upper()),
        source=dg.AssetKey(["one", "upper"]),
        resource=resource,
    )
    execute(dg.Definitions.merge(one, other), instance)
    assert result_of(root, "one", "upper") == result_of(root, "other", "again")


JOBS_OF_TWO = ("mine", "one_pipeline", "two_pipeline")


def test_the_steps_of_its_jobs_run_in_the_process_of_the_run(upper: Any, records: Records) -> None:
    definitions = build_definitions(pipeline_of(upper=upper()), source=records(1))
    jobs = [definitions.resolve_job_def(job.name) for job in definitions.jobs or ()]
    assert {job.executor_def for job in jobs} == {dg.in_process_executor}


def test_the_executor_of_the_code_location_is_left_alone(upper: Any, records: Records) -> None:
    @dg.asset
    def other() -> None: ...

    own = dg.multiprocess_executor.configured({"max_concurrent": 2}, name="two")
    mine = dg.define_asset_job("mine", "other")
    ours = [
        build_definitions(pipeline_of(name, upper=upper()), source=records(1), executor=executor)
        for name, executor in (("one", "in_process"), ("two", "multiprocess"))
    ]
    for executor, name in ((own, "two"), (None, "multi_or_in_process_executor")):
        location = dg.Definitions(assets=[other], jobs=[mine], executor=executor)
        merged = dg.Definitions.merge(location, *ours)
        found = {job: merged.resolve_job_def(job).executor_def.name for job in JOBS_OF_TWO}
        implicit = merged.resolve_implicit_global_asset_job_def()
        assert found == {"mine": name, "one_pipeline": "in_process", "two_pipeline": "multiprocess"}
        assert implicit.executor_def.name == name


def test_partitioned_assets_show_their_folders_if_the_definitions_set_the_root(
    upper: Any, records: Records, root: Path
) -> None:
    days = dg.StaticPartitionsDefinition(["a"])

    def uri(resource: DataOpsResource, partitions_def: Any = days) -> Any:
        ppl = pipeline_of(first=upper())
        source = root / "{partition}.jsonl" if partitions_def else records(3)
        made = build_definitions(
            ppl, source=source, resource=resource, partitions_def=partitions_def
        )
        return spec_of(made, "docs", "first").metadata.get("dagster/uri")

    folder = root / "docs" / "first" / "partitions"
    assert uri(resource_at(root)) == folder.as_uri()
    assert uri(resource_at(root), None) is None  # its materializations have it
    assert uri(DataOpsResource()) is None
    assert uri(DataOpsResource(root=dg.EnvVar("SOMEWHERE"))) is None
