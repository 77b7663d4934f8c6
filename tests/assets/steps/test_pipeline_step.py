"""Tests of one step for a whole pipeline: the materializations equal those of many steps."""

from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import DataOpsTranslator, Pipeline, assets, pipeline
from tests.assets.helpers import (
    Records,
    definitions_of,
    execute,
    log_of,
    metadata_of,
    numbered,
    result_of,
    write_jsonl,
)
from tests.registries import OperatorRegistry

NODES = ("first", "second", "joined")
TIMES = {"records_per_second", "dagster/uri", "trace"}
ATTRIBUTES = (
    "key",
    "deps",
    "description",
    "metadata",
    "group_name",
    "code_version",
    "owners",
    "tags",
    "kinds",
    "automation_condition",
    "freshness_policy",
    "partitions_def",
)


class Work:
    """Operators that count their calls, and fail on request."""

    def __init__(self, registry: OperatorRegistry) -> None:
        self.calls: Counter[str] = Counter()
        self.fails: set[str] = set()
        work = self

        @registry("data.text", _concurrency_mode="single", _ignore_errors=False)
        def add(record: dict, node: str, suffix: str = "!", input_key: str = "text") -> None:
            """Add a suffix."""
            work.calls[node] += 1
            if node in work.fails:
                work.fails.discard(node)
                msg = "no answer"
                raise ConnectionError(msg)
            record[input_key] += suffix

        @registry("data.text", rewrite_func="forward_batch_input")
        def zipped(left: list[dict], right: list[dict]) -> list[dict]:
            work.calls["joined"] += 1
            return [one | {"right": two["text"]} for one, two in zip(left, right, strict=True)]

        self.add, self.zipped = add, zipped

    def pipeline(self) -> Pipeline:
        with pipeline("docs") as ppl:
            ppl.first = self.add(node="first")
            ppl.second = self.add(node="second", suffix="?")
            ppl.add("joined", self.zipped(), inputs=[ppl.second, ppl.first])
        return ppl


@pytest.fixture
def work(registry: OperatorRegistry) -> Work:
    return Work(registry)


@pytest.fixture
def single(work: Work, records: Records, root: Path) -> dg.Definitions:
    return definitions_of(work.pipeline(), records(5), root, layout="single_step")


def specs_of(definitions: dg.Definitions) -> dict[str, Any]:
    found = {}
    for asset in definitions.assets or []:
        specs = asset.specs if isinstance(asset, dg.AssetsDefinition) else [asset]
        for spec in specs:
            found[spec.key.path[-1]] = {name: getattr(spec, name) for name in ATTRIBUTES}
            metadata = dict(spec.metadata)
            metadata.pop("dagster/io_manager_key", None)  # Dagster needs it for several assets
            found[spec.key.path[-1]]["metadata"] = metadata
    return found


class Elaborate(DataOpsTranslator):
    """Changes every attribute that a spec has."""

    def get_asset_spec(self, data: assets.DataOpsTranslatorData) -> dg.AssetSpec:
        spec = super().get_asset_spec(data)
        last = data.node.name == "joined"
        deps = [*spec.deps, dg.AssetDep("elsewhere", metadata={"why": "order"})]
        return spec.replace_attributes(
            key=["other", data.node.name],
            deps=deps if last else spec.deps,
            group_name="corpus",
            owners=["team:data"],
            tags={"cost": "high"},
            kinds={"python", "openai"},
            automation_condition=dg.AutomationCondition.eager(),
            freshness_policy=dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=1)),
            partitions_def=dg.StaticPartitionsDefinition(["a", "b"]),
            metadata={**spec.metadata, "dagster/uri": "s3://bucket"},
            code_version="7",
            description="Of the user's own.",
        )


@pytest.mark.parametrize("translator", [None, Elaborate()], ids=["default", "elaborate"])
def test_both_layouts_have_the_same_specs(
    translator: DataOpsTranslator | None, work: Work, records: Records, root: Path
) -> None:
    found = [
        specs_of(
            definitions_of(
                work.pipeline(),
                records(1),
                root,
                layout=layout,
                dagster_dataops_translator=translator,
            )
        )
        for layout in ("steps", "single_step")
    ]
    assert found[0] == found[1]
    assert set(found[0]) == {"texts", *NODES}


def versions_of(result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    names = ("dagster/data_version", "dagster/code_version")
    return {
        event.asset_key.path[-1]: [(event.materialization.tags or {})[name] for name in names]
        for event in made_of(result)
    }


def made_of(result: dg.ExecuteInProcessResult) -> list[Any]:
    """Return the materializations; a file that was read is reported as well."""
    events = result.get_asset_materialization_events()
    return [event for event in events if event.asset_key.path[-1] != "texts"]


def test_both_layouts_write_the_same_bytes_metadata_and_versions(
    work: Work, records: Records, root: Path, tmp_path: Path
) -> None:
    seen = []
    for layout in ("steps", "single_step"):
        place = tmp_path / layout
        definitions = definitions_of(work.pipeline(), records(5), place, layout=layout)
        with dg.DagsterInstance.ephemeral() as instance:
            result = execute(definitions, instance)
        metadata = {
            node: {
                name: value
                for name, value in metadata_of(result, "docs", node).items()
                if name not in TIMES
            }
            for node in NODES
        }
        files = {node: result_of(place, "docs", node) for node in NODES}
        seen.append((files, metadata, versions_of(result)))
    assert seen[0] == seen[1]
    assert seen[0][1]["joined"]["dagster/row_count"] == 5


@pytest.mark.parametrize("layout", ["steps", "single_step"])
def test_metadata_of_a_result_is_stored_once(
    layout: str, work: Work, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    definitions = definitions_of(work.pipeline(), records(5), root, layout=layout)
    result = execute(definitions, instance)
    outputs = [e for e in result.all_events if e.event_type is dg.DagsterEventType.STEP_OUTPUT]
    assert not {name for e in outputs for name in e.step_output_data.metadata}
    assert metadata_of(result, "docs", "first")["rows_in"] == 5


def test_there_is_one_step_with_a_materialization_an_operator(
    single: dg.Definitions, instance: dg.DagsterInstance
) -> None:
    result = execute(single, instance)
    events = made_of(result)
    assert [event.asset_key.path[-1] for event in events] == list(NODES)
    assert {event.step_key for event in events} == {"docs"}


def test_results_finished_before_a_failure_are_materialized(
    single: dg.Definitions, work: Work, root: Path, instance: dg.DagsterInstance
) -> None:
    work.fails.add("second")
    result = execute(single, instance, raise_on_error=False)
    assert not result.success
    assert [event.asset_key for event in made_of(result)] == [dg.AssetKey(["docs", "first"])]
    assert len(result_of(root, "docs", "first")) == 5


def test_a_retry_repeats_no_finished_operator(
    work: Work, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    definitions = definitions_of(
        work.pipeline(),
        records(5),
        root,
        layout="single_step",
        retry_policy=dg.RetryPolicy(max_retries=1),
    )
    work.fails.add("second")
    result = execute(definitions, instance)
    assert result.success
    assert work.calls == {"first": 5, "second": 6, "joined": 1}
    assert "already finished by run" in "\n".join(log_of(instance, result.run_id))


def test_only_selected_operators_run_and_read_published_results(
    single: dg.Definitions, work: Work, root: Path, instance: dg.DagsterInstance
) -> None:
    with pytest.raises(Exception, match=r"second_results.jsonl.*Materialize the operator that"):
        execute(single, instance, only=[["docs", "joined"]])
    execute(single, instance)
    work.calls.clear()
    result = execute(single, instance, only=[["docs", "joined"]])
    assert work.calls == {"joined": 1}
    assert len(result.get_asset_materialization_events()) == 1
    assert [row["right"] for row in result_of(root, "docs", "joined")] == [
        f"text {number}!" for number in range(5)
    ]
    execute(single, instance, only=[["docs", "first"], ["docs", "joined"]])
    assert work.calls == {"first": 5, "joined": 2}


def test_every_operator_is_configured_by_its_name(
    single: dg.Definitions, root: Path, instance: dg.DagsterInstance
) -> None:
    config = {"second": {"params": {"suffix": "+"}, "max_workers": 1}}
    execute(single, instance, {"ops": {"docs": {"config": config}}})
    assert result_of(root, "docs", "joined")[0]["text"] == "text 0!+"


@pytest.mark.parametrize(
    "config", [{"third": {}}, {"second": {"params": {"suffx": "+"}}}, {"second": {"workers": 1}}]
)
def test_a_launch_with_a_config_that_no_operator_has_is_refused(
    config: dict[str, Any], single: dg.Definitions, work: Work, instance: dg.DagsterInstance
) -> None:
    with pytest.raises(dg.DagsterInvalidConfigError):
        execute(single, instance, {"ops": {"docs": {"config": config}}})
    assert not work.calls


def test_a_source_that_another_asset_makes_is_loaded_by_its_io_manager(
    work: Work, root: Path, instance: dg.DagsterInstance
) -> None:
    @dg.asset
    def raw() -> list[dict[str, Any]]:
        return list(numbered(3))

    definitions = definitions_of(work.pipeline(), raw, root, others=[raw], layout="single_step")
    execute(definitions, instance)
    assert len(result_of(root, "docs", "joined")) == 3
    execute(definitions, instance, only=[["docs", "joined"]])  # raw is not selected


def texts() -> Any:
    """Three texts."""
    return numbered(3)


def test_a_source_function_is_a_step_before_it(
    work: Work, root: Path, instance: dg.DagsterInstance
) -> None:
    result = execute(definitions_of(work.pipeline(), texts, root, layout="single_step"), instance)
    steps = {event.step_key for event in result.get_asset_materialization_events()}
    assert steps == {"docs__texts", "docs"}


def test_an_asset_of_the_users_own_between_two_operators_splits_the_step(
    work: Work, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    @dg.asset(deps=[["docs", "first"]])
    def between() -> None: ...

    class After(DataOpsTranslator):
        def get_asset_spec(self, data: assets.DataOpsTranslatorData) -> dg.AssetSpec:
            spec = super().get_asset_spec(data)
            return spec.merge_attributes(deps=["between"]) if data.node.name == "joined" else spec

    definitions = definitions_of(
        work.pipeline(),
        records(3),
        root,
        others=[between],
        dagster_dataops_translator=After(),
        layout="single_step",
    )
    result = execute(definitions, instance)
    order = [e.asset_key.path[-1] for e in result.get_asset_materialization_events() if e.asset_key]
    assert order.index("first") < order.index("between") < order.index("joined")
    assert work.calls == {"first": 3, "second": 3, "joined": 1}


letters = dg.StaticPartitionsDefinition(["a", "b"])


class HalfPartitioned(DataOpsTranslator):
    """The first two operators are partitioned; the last one joins all their partitions."""

    def get_asset_spec(self, data: assets.DataOpsTranslatorData) -> dg.AssetSpec:
        spec = super().get_asset_spec(data)
        last = data.node.name == "joined"
        return spec if last else spec.replace_attributes(partitions_def=letters)


@pytest.mark.slow
def test_operators_with_other_partitions_have_a_separate_step(
    registry: OperatorRegistry, work: Work, root: Path, instance: dg.DagsterInstance
) -> None:
    @dg.asset(partitions_def=letters, io_manager_key="dataops_io")
    def raw(context: dg.AssetExecutionContext) -> list[dict[str, Any]]:
        return [{"text": context.partition_key}]

    @registry("data.text", _concurrency_mode="single")
    def end(record: dict) -> None:
        record["text"] += "."

    with pipeline("docs") as ppl:
        ppl.first = work.add(node="first")
        ppl.second = work.add(node="second", suffix="?")
        ppl.joined = end()
    definitions = definitions_of(
        ppl,
        raw,
        root,
        others=[raw],
        dagster_dataops_translator=HalfPartitioned(),
        layout="single_step",
    )
    for letter in ("a", "b"):
        keys = [["raw"], ["docs", "first"], ["docs", "second"]]
        execute(definitions, instance, only=keys, partition_key=letter)
    result = execute(definitions, instance, only=[["docs", "joined"]])
    assert [row["text"] for row in result_of(root, "docs", "joined")] == ["a!?.", "b!?."]
    assert {e.step_key for e in result.get_asset_materialization_events()} == {"docs_1"}


def test_one_partition_of_a_whole_pipeline_is_made_in_one_step(
    work: Work, root: Path, instance: dg.DagsterInstance
) -> None:
    class Partitioned(DataOpsTranslator):
        def get_asset_spec(self, data: assets.DataOpsTranslatorData) -> dg.AssetSpec:
            return super().get_asset_spec(data).replace_attributes(partitions_def=letters)

    source = write_jsonl(root.parent / "all.jsonl", list(numbered(2)))
    definitions = definitions_of(
        work.pipeline(),
        source,
        root,
        dagster_dataops_translator=Partitioned(),
        layout="single_step",
    )
    execute(definitions, instance, partition_key="b")
    folder = root / "docs" / "joined" / "partitions" / "b"
    assert (folder / "joined_results.jsonl").exists()
    with pytest.raises(Exception, match="Materialize the operator"):
        execute(definitions, instance, partition_key="a", only=[["docs", "joined"]])
