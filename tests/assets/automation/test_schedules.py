"""Schedules, automation conditions and freshness policies of pipelines."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import DataOpsTranslator, PipelineSchedule, build_definitions
from dagster_dataops.errors import ConfigurationError, PipelineDefinitionError
from tests.assets.helpers import definitions_of, execute, pipeline_of, spec_of

DAYS = dg.DailyPartitionsDefinition("2024-01-01")
HOURS = dg.HourlyPartitionsDefinition("2024-01-01-00:00")
LETTERS = dg.StaticPartitionsDefinition(["b", "a"])
EAGER = dg.AutomationCondition.eager()


@pytest.fixture
def scheduled(upper: Any, root: Path) -> Any:
    def build(cron: Any, partitions: Any, source: Any = "in/{partition}.jsonl") -> Any:
        ppl = pipeline_of(upper=upper())
        return definitions_of(ppl, source, root, partitions_def=partitions, schedule=cron)

    return build


def schedule_of(definitions: dg.Definitions) -> Any:
    return definitions.resolve_schedule_def("docs_pipeline_schedule")


def requests_of(
    definitions: dg.Definitions, moment: datetime, instance: dg.DagsterInstance
) -> list[dg.RunRequest]:
    context = dg.build_schedule_context(
        instance=instance,
        scheduled_execution_time=moment,
        repository_def=definitions.get_repository_def(),
    )
    return schedule_of(definitions).evaluate_tick(context).run_requests or []


def tick(definitions: dg.Definitions, moment: datetime, instance: dg.DagsterInstance) -> list[Any]:
    return [request.partition_key for request in requests_of(definitions, moment, instance)]


# Dagster's partitioned schedules use a name that Dagster has deprecated.
own_deprecation = pytest.mark.filterwarnings(
    "ignore:Function `JobDefinition.run_request_for_partition` is deprecated:DeprecationWarning"
)
NIGHT = datetime(2024, 3, 1, 2, tzinfo=UTC)


@own_deprecation
@pytest.mark.parametrize(
    ("cron", "partitions", "found", "keys"),
    [
        ("@window", DAYS, "0 0 * * *", ["2024-02-29"]),
        ("@daily", DAYS, "0 0 * * *", ["2024-02-29"]),
        ("0 2 * * *", DAYS, "0 2 * * *", ["2024-02-29"]),
        ("30 * * * *", HOURS, "30 * * * *", ["2024-03-01-01:00"]),
        ("0 2 * * *", LETTERS, "0 2 * * *", ["b", "a"]),
        ("15 3 * * 1", dg.WeeklyPartitionsDefinition("2024-01-01"), "15 3 * * 1", ["2024-02-18"]),
        ("5 4 3 * *", dg.MonthlyPartitionsDefinition("2024-01-01"), "5 4 3 * *", ["2024-02-01"]),
    ],
)
def test_a_schedule_materializes_the_window_that_has_closed_or_every_static_partition(
    cron: str,
    partitions: Any,
    found: str,
    keys: list[str],
    scheduled: Any,
    instance: dg.DagsterInstance,
) -> None:
    definitions = scheduled(cron, partitions)
    assert schedule_of(definitions).cron_schedule == found
    assert tick(definitions, NIGHT, instance) == keys


@own_deprecation
@pytest.mark.filterwarnings("ignore:Non-compliant tag keys like:DeprecationWarning")
def test_dates_among_dimensions_are_scheduled_with_all_of_the_others(
    scheduled: Any, instance: dg.DagsterInstance
) -> None:
    both = dg.MultiPartitionsDefinition({"date": DAYS, "letter": LETTERS})
    definitions = scheduled("@window", both, "in/{letter}/{date}.jsonl")
    assert sorted(tick(definitions, NIGHT, instance)) == ["2024-02-29|a", "2024-02-29|b"]


@pytest.mark.parametrize(
    ("cron", "partitions"),
    [
        ("0 2 * * *", HOURS),
        ("0 * * * *", DAYS),
        ("*/5 * * * *", DAYS),
        ("0 2 * * 1", DAYS),
        ("at night", DAYS),
        ("0 2 * * *", dg.DynamicPartitionsDefinition(name="files")),
        ("@window", LETTERS),
    ],
    ids=str,
)
def test_a_schedule_that_misses_or_repeats_windows_is_refused(
    cron: str, partitions: Any, scheduled: Any
) -> None:
    with pytest.raises(ConfigurationError, match="schedule"):
        scheduled(cron, partitions)


def test_windows_without_partitions_are_refused(scheduled: Any) -> None:
    with pytest.raises(ConfigurationError, match="@window"):
        scheduled("@window", None, "docs.jsonl")


def numbers() -> Iterator[dict[str, Any]]:
    return iter([{"text": "a"}])


def requested(
    definitions: dg.Definitions, instance: dg.DagsterInstance, cursor: Any, *names: str
) -> tuple[set[str], Any]:
    """Return the docs assets that are requested now."""
    selection = dg.AssetSelection.assets(*(dg.AssetKey(["docs", name]) for name in names))
    result = dg.evaluate_automation_conditions(
        definitions,
        instance,
        asset_selection=selection,
        cursor=cursor,
        evaluation_time=None,
    )
    found = {name for name in names if result.get_num_requested(dg.AssetKey(["docs", name])) > 0}
    return found, result.cursor


def test_an_eager_pipeline_follows_its_upstream_asset(
    upper: Any, root: Path, instance: dg.DagsterInstance
) -> None:
    @dg.asset(io_manager_key="dataops_io")
    def raw() -> list[dict[str, Any]]:
        return [{"text": "a"}]

    ppl = pipeline_of(first=upper(), second=upper())
    definitions = definitions_of(ppl, raw, root, others=[raw], automation_condition=EAGER)
    names = ("first", "second")
    found, cursor = requested(definitions, instance, None, *names)
    assert found == set()
    execute(definitions, instance, only=[["raw"]])
    found, cursor = requested(definitions, instance, cursor, *names)
    assert found == {"first", "second"}
    execute(definitions, instance, only=[["docs", "first"], ["docs", "second"]])
    found, cursor = requested(definitions, instance, cursor, *names)
    assert found == set()


def test_a_condition_and_a_freshness_policy_count_for_the_source_and_every_node(
    upper: Any, root: Path
) -> None:
    policy = dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=24))
    ppl = pipeline_of(first=upper(), second=upper())
    given = {"automation_condition": EAGER, "freshness_policy": policy}
    definitions = definitions_of(ppl, numbers, root, **given)
    for name in ("numbers", "first", "second"):
        spec = spec_of(definitions, "docs", name)
        assert (spec.automation_condition, spec.freshness_policy) == (EAGER, policy)


def test_conditions_may_be_given_by_node(upper: Any, root: Path) -> None:
    ppl = pipeline_of(first=upper(), second=upper())
    definitions = definitions_of(ppl, numbers, root, automation_condition={"second": EAGER})
    found = [
        spec_of(definitions, "docs", name).automation_condition for name in ("first", "second")
    ]
    assert found == [None, EAGER]
    with pytest.raises(PipelineDefinitionError, match="absent"):
        definitions_of(ppl, numbers, root, automation_condition={"absent": EAGER})


def test_an_unpartitioned_node_is_requested_when_a_partition_is_new(
    upper: Any, root: Path, instance: dg.DagsterInstance
) -> None:
    @dg.asset(partitions_def=LETTERS, io_manager_key="dataops_io")
    def raw(context: dg.AssetExecutionContext) -> list[dict[str, Any]]:
        return [{"text": context.partition_key}]

    definitions = definitions_of(
        pipeline_of(each=upper(), all=upper()),
        raw,
        root,
        others=[raw],
        partitions_def=LETTERS,
        unpartitioned=["all"],
        automation_condition=EAGER,
    )
    _, cursor = requested(definitions, instance, None, "all")
    for key in ("a", "b"):
        execute(definitions, instance, only=[["raw"], ["docs", "each"]], partition_key=key)
    found, _ = requested(definitions, instance, cursor, "all")
    assert found == {"all"}


def test_definitions_with_everything_can_be_loaded(upper: Any, root: Path) -> None:
    definitions = definitions_of(
        pipeline_of(upper=upper(), all=upper()),
        "in/{partition}.jsonl",
        root,
        partitions_def=DAYS,
        unpartitioned=["all"],
        backfill_policy=dg.BackfillPolicy.single_run(),
        automation_condition=dg.AutomationCondition.on_cron("@daily"),
        schedule="@window",
        freshness_policy=dg.FreshnessPolicy.cron("0 9 * * *", timedelta(hours=1)),
    )
    dg.Definitions.validate_loadable(definitions)


def test_a_schedule_has_time_zone_status_run_config_and_tags(
    scheduled: Any, instance: dg.DagsterInstance
) -> None:
    config = {"ops": {"docs__upper": {"config": {"limit": 3}}}}
    given = PipelineSchedule(
        cron="0 2 * * *",
        timezone="Europe/Berlin",
        running=True,
        run_config=config,
        tags={"team": "search"},
    )
    for partitions, source in ((None, "in/all.jsonl"), (LETTERS, "in/{partition}.jsonl")):
        definitions = scheduled(given, partitions, source)
        schedule = schedule_of(definitions)
        assert schedule.execution_timezone == "Europe/Berlin"
        assert schedule.default_status is dg.DefaultScheduleStatus.RUNNING
        requests = requests_of(definitions, NIGHT, instance)
        assert len(requests) == (1 if partitions is None else 2)
        for request in requests:
            assert request.run_config == config
            assert request.tags["team"] == "search"


@pytest.mark.parametrize("as_run_config", [dict, lambda given: dg.RunConfig(**given)])
@pytest.mark.parametrize("partitions", [None, LETTERS], ids=["whole", "letters"])
def test_the_runs_of_a_schedule_read_environment_variables(
    scheduled: Any,
    partitions: Any,
    as_run_config: Any,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = {"limit": dg.EnvVar.int("LIMIT"), "retry_on": [dg.EnvVar("RETRIED")]}
    given = as_run_config({"ops": {"docs__upper": {"config": config}}})
    source = "in/all.jsonl" if partitions is None else "in/{partition}.jsonl"
    definitions = scheduled(PipelineSchedule(cron="@daily", run_config=given), partitions, source)

    (request, *_) = requests_of(definitions, NIGHT, instance)
    named = {"limit": {"env": "LIMIT"}, "retry_on": [{"env": "RETRIED"}]}
    assert request.run_config["ops"] == {"docs__upper": {"config": named}}

    monkeypatch.setenv("LIMIT", "3")
    monkeypatch.setenv("RETRIED", "OSError")
    read = dg.validate_run_config(definitions.resolve_job_def("docs_pipeline"), request.run_config)
    assert read["ops"]["docs__upper"]["config"] == {"limit": 3, "retry_on": ["OSError"]}


@pytest.mark.parametrize(
    ("given", "setting"),
    [
        ({"schedule": dg.EnvVar("NAME")}, "schedule"),
        ({"schedule": PipelineSchedule(cron=dg.EnvVar("NAME"))}, "schedule.cron"),
        (
            {"schedule": PipelineSchedule(cron="@daily", timezone=dg.EnvVar("NAME"))},
            "schedule.timezone",
        ),
        (
            {"schedule": PipelineSchedule(cron="@daily", tags={"team": dg.EnvVar("NAME")})},
            "schedule.tags.team",
        ),
        ({"job_tags": {"team": dg.EnvVar("NAME")}}, "job_tags.team"),
        ({"job_owners": [dg.EnvVar("NAME")]}, "job_owners"),
        ({"op_tags": {"upper": {"queue": dg.EnvVar("NAME")}}}, "op_tags.upper.queue"),
        ({"pools": dg.EnvVar("NAME")}, "pools"),
        ({"pools": {"upper": dg.EnvVar("NAME")}}, "pools.upper"),
        ({"workers": dg.EnvVar.int("NAME")}, "workers"),
        ({"source": dg.EnvVar("NAME")}, "source"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_needed_before_a_run_is_no_environment_variable(
    given: dict[str, Any], setting: str, upper: Any
) -> None:
    said = f"{setting} is \"EnvVar('NAME')\"; it must be the value itself, such as os.environ"
    with pytest.raises(ConfigurationError, match=re.escape(said)):
        build_definitions(pipeline_of(upper=upper()), **{"source": "texts.jsonl"} | given)


@own_deprecation
def test_a_schedule_of_windows_has_status_and_tags(
    scheduled: Any, instance: dg.DagsterInstance
) -> None:
    days = dg.DailyPartitionsDefinition("2024-01-01", timezone="Europe/Berlin")
    given = PipelineSchedule(
        cron="0 2 * * *", timezone="Europe/Berlin", running=True, tags={"team": "search"}
    )
    definitions = scheduled(given, days)
    schedule = schedule_of(definitions)
    assert schedule.execution_timezone == "Europe/Berlin"
    assert schedule.default_status is dg.DefaultScheduleStatus.RUNNING
    (request,) = requests_of(definitions, NIGHT, instance)
    assert request.tags["team"] == "search"


@pytest.mark.parametrize(
    ("given", "partitions", "said"),
    [
        ({"timezone": "Mars/Base"}, None, "schedule.timezone is 'Mars/Base'"),
        ({"timezone": ""}, None, "schedule.timezone is ''"),
        ({"timezone": "../etc"}, LETTERS, "schedule.timezone is '../etc'"),
        ({"timezone": "Europe/Berlin"}, DAYS, "that of the time windows, 'UTC', or left out"),
        ({"run_config": {}}, DAYS, "schedules of time windows have no run config"),
        ({"tags": {"a": 1}}, None, "schedule.tags is {'a': 1}"),
        ({"cron": "nightly"}, None, "schedule is 'nightly'; it must be a cron line"),
        ({"cron": ""}, LETTERS, "schedule is ''; it must be a cron line"),
        ({"cron": ["@daily"]}, DAYS, "schedule.cron is ['@daily']; it must be a cron line"),
        ({"running": "maybe"}, None, "schedule.running is 'maybe'; it must be true or false"),
        ({"running": 1}, DAYS, "schedule.running is 1; it must be true or false"),
        ({"run_config": 5}, None, "schedule.run_config is 5; it must be the run config of a job"),
        ({"run_config": "ops: {}"}, LETTERS, "schedule.run_config is 'ops: {}'"),
        (
            {"run_config": "ops: {password: abcd}"},
            None,
            "schedule.run_config is 'ops: {password: (hidden)}'",
        ),
        ({"run_config": [{"api_key": "abcd"}]}, None, "is [{'api_key': '(hidden)'}]"),
        ({"run_config": {"a": "abcd"}}, DAYS, "schedule.run_config is '(hidden)'"),
    ],
)
def test_what_a_schedule_cannot_have_is_refused(
    given: dict[str, Any], partitions: Any, said: str, scheduled: Any
) -> None:
    source = "in/all.jsonl" if partitions is None else "in/{partition}.jsonl"
    with pytest.raises(ConfigurationError, match=re.escape(said)):
        scheduled(PipelineSchedule(**{"cron": "@daily"} | given), partitions, source)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"ops": {"docs__upper": {"config": {"limitt": 3}}}}, 'unexpected config entry "limitt"'),
        ({"ops": {"docs__uper": {}}}, 'unexpected config entry "docs__uper"'),
        ({"opss": {}}, 'unexpected config entry "opss" at the root'),
        (
            {"ops": {"docs__upper": {"config": {"limit": "private"}}}},
            "The value at path root:ops:docs__upper:config:limit must be Int",
        ),
        (
            {"ops": {"docs__upper": {"config": {"limit": ["private"]}}}},
            "path root:ops:docs__upper:config:limit must be dict",
        ),
        ({"ops": {"docs__upper": ["private"]}}, "path root:ops:docs__upper must be dict"),
        (
            {"ops": {"docs__upper": {"config": {"extra": 1, "text": "private"}}}},
            "unexpected config entries",
        ),
        ({"resources": {"dataops": {"config": {"rot": "/x"}}}}, 'unexpected config entry "rot"'),
        ({"execution": {"config": {"workers": 2}}}, 'unexpected config entry "workers"'),
        ({"ops": 5}, "path root:ops must be dict"),
        ({"resources": 5}, "path root:resources must be dict"),
        ({1: {}}, 'unexpected config entry "1"'),
        (dg.RunConfig(ops={"docs__upper": {"config": {"limi": 3}}}), '"limi"'),
    ],
    ids=lambda value: None if isinstance(value, dg.RunConfig) else str(value),
)
@pytest.mark.parametrize("partitions", [None, LETTERS], ids=["whole", "letters"])
def test_a_run_config_that_does_not_fit_the_job_is_refused(
    given: Any, partitions: Any, said: str, scheduled: Any
) -> None:
    source = "in/all.jsonl" if partitions is None else "in/{partition}.jsonl"
    with pytest.raises(ConfigurationError, match=re.escape(said)) as caught:
        scheduled(PipelineSchedule(cron="@daily", run_config=given), partitions, source)
    assert "schedule.run_config" in str(caught.value)
    assert "private" not in str(caught.value)


def test_a_run_config_may_name_what_the_rest_of_the_code_location_has(
    upper: Any, root: Path
) -> None:
    class Told(DataOpsTranslator):
        def execute(self, context: Any, dataops: Any, slack: Any) -> Iterator[Any]:
            yield from dataops.run(context)

        def get_asset_spec(self, data: Any) -> dg.AssetSpec:
            spec = super().get_asset_spec(data)
            return spec.merge_attributes(metadata={"dagster/io_manager_key": "other_io"})

    @dg.success_hook(required_resource_keys={"pager"})
    def calling(context: dg.HookContext) -> None:
        pass

    config = {
        "ops": {"docs__upper": {"config": {"limit": {"env": "NOT_SET_HERE"}}}},
        "resources": {"slack": {"config": {"channel": "x"}}, "dataops": {"config": {"root": "/x"}}},
    }
    definitions = build_definitions(
        pipeline_of(upper=upper()),
        source="in/all.jsonl",
        schedule=PipelineSchedule(cron="@daily", run_config=config),
        dagster_dataops_translator=Told(),
        job_hooks={calling},
    )
    others = dict.fromkeys(("slack", "pager", "other_io"), dg.mem_io_manager)
    whole = dg.Definitions.merge(definitions, dg.Definitions(resources=others))
    assert schedule_of(whole).cron_schedule == "@daily"
