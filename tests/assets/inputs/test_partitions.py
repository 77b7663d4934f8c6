"""Inputs of steps: partitions, and files for the time of a step."""

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import DataOpsTranslator, Pipeline, assets, pipeline
from dagster_dataops.assets.inputs.partitions import ordered
from dagster_dataops.assets.inputs.step_inputs import StepInputs, StepScratch
from dagster_dataops.errors import (
    ConfigurationError,
    InputError,
    OperatorDefinitionError,
    PipelineDefinitionError,
    ResultMissingError,
)
from tests.assets.helpers import (
    definitions_of,
    execute,
    log_of,
    pipeline_of,
    result_of,
    spec_of,
    write_jsonl,
)
from tests.assets.inputs.tagging import (
    LETTERS,
    SINGLE_RUN,
    Tagging,
    ids,
    of_range,
    part_of,
    partitions_of,
)
from tests.registries import OperatorRegistry


def test_each_partition_takes_its_own_file_and_has_its_own_folder(
    static: dg.Definitions, root: Path, instance: dg.DagsterInstance
) -> None:
    result = execute(static, instance, partition_key="a")
    assert ids(part_of(root, "second", "a")) == ["a0", "a1"]
    assert list(partitions_of(result, "docs", "second")) == ["a"]
    found = sorted(path.name for path in (root / "docs" / "second" / "partitions").iterdir())
    assert found == ["a"]
    assert spec_of(static, "docs", "inbox").partitions_def == LETTERS


def test_time_windows_take_the_file_of_their_date(
    tagging: Tagging, tmp_path: Path, root: Path, instance: dg.DagsterInstance
) -> None:
    write_jsonl(tmp_path / "logs" / "2024" / "01" / "02.jsonl", [{"id": "second"}])
    definitions = definitions_of(
        pipeline_of(tag=tagging.operator()),
        tmp_path / "logs" / "{partition:%Y/%m/%d}.jsonl",
        root,
        partitions_def=dg.DailyPartitionsDefinition("2024-01-01"),
    )
    execute(definitions, instance, partition_key="2024-01-02")
    assert ids(part_of(root, "tag", "2024-01-02")) == ["second"]
    with pytest.raises(InputError, match=r"logs/2024/01/01\.jsonl"):
        execute(definitions, instance, partition_key="2024-01-01")


def test_dimensions_are_called_by_their_names(
    tagging: Tagging, tmp_path: Path, root: Path, instance: dg.DagsterInstance
) -> None:
    write_jsonl(tmp_path / "red" / "2024-01-01.jsonl", [{"id": "found"}])
    both = dg.MultiPartitionsDefinition(
        {
            "date": dg.DailyPartitionsDefinition("2024-01-01"),
            "color": dg.StaticPartitionsDefinition(["red", "blue"]),
        }
    )
    source = tmp_path / "{color}" / "{date}.jsonl"
    ppl = pipeline_of(tag=tagging.operator())
    definitions = definitions_of(ppl, source, root, partitions_def=both)
    key = dg.MultiPartitionKey({"date": "2024-01-01", "color": "red"})
    execute(definitions, instance, partition_key=key)
    assert ids(part_of(root, "tag", "red%7C2024-01-01")) == ["found"]


def texts(partition: str) -> Iterator[dict[str, Any]]:
    """Yield two records of a partition."""
    return ({"id": f"{partition}{number}"} for number in range(2))


@pytest.mark.parametrize("run", [{"partition_key": "a"}, {"tags": of_range("c", "b")}], ids=str)
def test_a_source_function_takes_the_key_of_the_partition(
    run: dict[str, Any], tagging: Tagging, root: Path, instance: dg.DagsterInstance
) -> None:
    ppl = pipeline_of(tag=tagging.operator())
    definitions = definitions_of(
        ppl, texts, root, partitions_def=LETTERS, backfill_policy=SINGLE_RUN
    )
    result = execute(definitions, instance, **run)
    assert ids(part_of(root, "tag", "a")) == ["a0", "a1"]
    assert partitions_of(result, "docs", "texts")["a"]["dagster/row_count"] == 2


def test_a_source_function_that_does_not_fit_is_refused_when_it_is_defined(
    tagging: Tagging, root: Path
) -> None:
    def without() -> Iterator[dict[str, Any]]:
        return iter(())

    ppl = pipeline_of(tag=tagging.operator())
    with pytest.raises(OperatorDefinitionError, match="one argument, the partition's key"):
        definitions_of(ppl, without, root, partitions_def=LETTERS)
    with pytest.raises(OperatorDefinitionError, match="takes no argument"):
        definitions_of(ppl, texts, root)


@pytest.mark.parametrize(
    ("path", "partitions"),
    [
        ("docs.jsonl", LETTERS),
        ("{partition}.jsonl", None),
        ("{day}.jsonl", LETTERS),
        ("{partition}/{other}.jsonl", LETTERS),
    ],
)
def test_a_path_names_the_partition_only_with_partitions(
    path: str, partitions: Any, tagging: Tagging, root: Path
) -> None:
    with pytest.raises(ConfigurationError, match=r"\{partition\}"):
        definitions_of(pipeline_of(tag=tagging.operator()), path, root, partitions_def=partitions)


def folded(tagging: Tagging, registry: OperatorRegistry) -> Pipeline:
    """Return a partitioned node, one over all partitions, and one that takes both."""

    @registry("data.text", rewrite_func="forward_batch_input")
    def number(records: list[dict]) -> list[dict]:
        return [{**record, "place": place} for place, record in enumerate(records)]

    @registry("data.text", rewrite_func="forward_batch_input")
    def place(records: list[dict], known: list[dict]) -> list[dict]:
        places = {record["id"]: record["place"] for record in known}
        return [{"id": record["id"], "place": places[record["id"]]} for record in records]

    with pipeline("docs") as ppl:
        ppl.tagged = tagging.operator()
        ppl.numbered = number()
        ppl.again = number()
        ppl.add("placed", place(), inputs=[ppl.tagged, ppl.numbered])
    return ppl


@pytest.fixture
def whole(tagging: Tagging, inbox: Path, root: Path, registry: OperatorRegistry) -> Any:
    def build(**keywords: Any) -> dg.Definitions:
        source = inbox / "{partition}.jsonl"
        keywords = {"partitions_def": LETTERS, "unpartitioned": ["numbered"], **keywords}
        return definitions_of(folded(tagging, registry), source, root, **keywords)

    return build


def make_each(definitions: dg.Definitions, instance: dg.DagsterInstance, keys: str) -> None:
    for key in keys:
        execute(definitions, instance, only=[["docs", "tagged"]], partition_key=key)


@pytest.mark.slow
def test_an_unpartitioned_node_takes_all_partitions_in_their_order(
    whole: Any, root: Path, instance: dg.DagsterInstance
) -> None:
    definitions = whole()
    make_each(definitions, instance, "abc")
    execute(definitions, instance, only=[["docs", "numbered"], ["docs", "again"]])
    assert ids(result_of(root, "docs", "numbered")) == ["c0", "c1", "a0", "a1", "b0", "b1"]
    assert result_of(root, "docs", "again") == result_of(root, "docs", "numbered")
    specs = {name: spec_of(definitions, "docs", name) for name in ("again", "placed")}
    assert specs["again"].partitions_def is None
    assert specs["placed"].partitions_def == LETTERS


@pytest.mark.slow
def test_a_partitioned_node_is_given_the_whole_of_an_unpartitioned_one(
    whole: Any, root: Path, instance: dg.DagsterInstance
) -> None:
    definitions = whole(backfill_policy=SINGLE_RUN)
    make_each(definitions, instance, "abc")
    execute(definitions, instance, only=[["docs", "numbered"]])
    execute(definitions, instance, only=[["docs", "placed"]], tags=of_range("c", "b"))
    assert part_of(root, "placed", "a") == [{"id": "a0", "place": 2}, {"id": "a1", "place": 3}]


def test_missing_partitions_are_named(whole: Any, instance: dg.DagsterInstance) -> None:
    definitions = whole()
    make_each(definitions, instance, "a")
    with pytest.raises(Exception, match="docs/tagged") as raised:
        execute(definitions, instance, only=[["docs", "numbered"]])
    cause = raised.value if isinstance(raised.value, ResultMissingError) else raised.value.__cause__
    assert "2 of 3 partitions are missing: c, b" in str(cause)


@pytest.mark.parametrize("layout", ["steps", "single_step"])
def test_missing_partitions_are_left_out_on_request(
    layout: str, whole: Any, root: Path, instance: dg.DagsterInstance
) -> None:
    definitions = whole(allow_missing_partitions=True, layout=layout)
    make_each(definitions, instance, "a")
    result = execute(definitions, instance, only=[["docs", "numbered"]])
    assert ids(result_of(root, "docs", "numbered")) == ["a0", "a1"]
    assert "skipped: c, b" in "\n".join(log_of(instance, result.run_id))


def test_partitioned_and_unpartitioned_nodes_have_a_job_each(
    whole: Any, root: Path, instance: dg.DagsterInstance
) -> None:
    definitions = whole(unpartitioned=["numbered", "placed"])
    for key in "abc":
        job = definitions.resolve_job_def("docs_pipeline")
        job.execute_in_process(instance=instance, partition_key=key)
    job = definitions.resolve_job_def("docs_pipeline_unpartitioned")
    job.execute_in_process(instance=instance)
    assert [row["place"] for row in result_of(root, "docs", "placed")] == [0, 1, 2, 3, 4, 5]


def test_an_unpartitioned_node_may_take_the_files_of_all_partitions(
    tagging: Tagging, inbox: Path, root: Path, instance: dg.DagsterInstance
) -> None:
    files = dg.DynamicPartitionsDefinition(name="files")
    instance.add_dynamic_partitions("files", ["b", "c", "a"])
    definitions = definitions_of(
        pipeline_of(tag=tagging.operator()),
        inbox / "{partition}.jsonl",
        root,
        partitions_def=files,
        unpartitioned=["tag"],
    )
    execute(definitions, instance)
    assert ids(result_of(root, "docs", "tag")) == ["a0", "a1", "b0", "b1", "c0", "c1"]
    (inbox / "b.jsonl").unlink()
    with pytest.raises(InputError, match=r"1 of 3 partitions have no file: .*b\.jsonl"):
        execute(definitions, instance)


def test_a_name_that_no_node_has_is_refused(whole: Any) -> None:
    with pytest.raises(PipelineDefinitionError, match="absent"):
        whole(unpartitioned=["absent"])


def test_partitions_set_by_a_translator_are_kept(tagging: Tagging, inbox: Path, root: Path) -> None:
    class Whole(DataOpsTranslator):
        def get_asset_spec(self, data: assets.DataOpsTranslatorData) -> dg.AssetSpec:
            spec = super().get_asset_spec(data)
            return spec.replace_attributes(partitions_def=None) if data.node.name == "b" else spec

    ppl = pipeline_of(a=tagging.operator(), b=tagging.operator())
    source = inbox / "{partition}.jsonl"
    definitions = definitions_of(
        ppl, source, root, partitions_def=LETTERS, dagster_dataops_translator=Whole()
    )
    found = [spec_of(definitions, "docs", name).partitions_def for name in "ab"]
    assert found == [LETTERS, None]


@pytest.mark.slow
@pytest.mark.parametrize("stored", ["dataops_io", "io_manager"])
def test_a_daily_partition_takes_the_hours_of_an_upstream_asset_in_one_run_of_several(
    stored: str, tagging: Tagging, root: Path, instance: dg.DagsterInstance
) -> None:
    hours = dg.TimeWindowPartitionsDefinition(  # every sixth: each is a run
        "2024-01-01-00:00",
        end="2024-01-03-00:00",
        fmt="%Y-%m-%d-%H:%M",
        cron_schedule="0 */6 * * *",
    )

    @dg.asset(partitions_def=hours, io_manager_key=stored)
    def raw(context: dg.AssetExecutionContext) -> list[dict[str, Any]]:
        return [{"id": context.partition_key}]

    definitions = definitions_of(
        pipeline_of(tag=tagging.operator()),
        raw,
        root,
        others=[raw],
        partitions_def=dg.DailyPartitionsDefinition("2024-01-01", end_date="2024-01-03"),
        backfill_policy=SINGLE_RUN,
    )
    for hour in hours.get_partition_keys():
        execute(definitions, instance, only=[["raw"]], partition_key=hour)
    days = of_range("2024-01-01", "2024-01-02")
    execute(definitions, instance, only=[["docs", "tag"]], tags=days)
    wanted = [key for key in hours.get_partition_keys() if key.startswith("2024-01-02")]
    assert len(wanted) == 4
    assert ids(part_of(root, "tag", "2024-01-02")) == wanted


def test_all_partitions_of_an_asset_of_any_io_manager_come_in_their_order(
    tagging: Tagging, root: Path, instance: dg.DagsterInstance
) -> None:
    @dg.asset(partitions_def=LETTERS)
    def raw(context: dg.AssetExecutionContext) -> list[dict[str, Any]]:
        return [{"id": context.partition_key}]

    definitions = definitions_of(pipeline_of(tag=tagging.operator()), raw, root, others=[raw])
    for key in "abc":
        execute(definitions, instance, only=[["raw"]], partition_key=key)
    execute(definitions, instance, only=[["docs", "tag"]])
    assert ids(result_of(root, "docs", "tag")) == ["c", "a", "b"]


def test_keys_have_an_order_that_does_not_depend_on_when_they_were_added() -> None:
    colors = dg.DynamicPartitionsDefinition(name="colors")
    assert ordered({"red", "blue", "green"}, colors) == ["blue", "green", "red"]
    assert ordered({"b", "c"}, LETTERS) == ["c", "b"]
    months = dg.TimeWindowPartitionsDefinition(
        start="1-2024", fmt="%m-%Y", cron_schedule="0 0 1 * *"
    )
    assert ordered(["02-2025", "11-2024", "03-2024"], months) == ["03-2024", "11-2024", "02-2025"]
    both = dg.MultiPartitionsDefinition({"x": LETTERS, "month": months})
    keys = ["02-2025|c", "11-2024|b", "11-2024|c"]
    assert ordered(keys, both) == ["11-2024|c", "11-2024|b", "02-2025|c"]


LONG_AGO = 3600.0  # seconds


@pytest.fixture
def folder(tmp_path: Path) -> assets.NodeFolder:
    return assets.NodeFolder(tmp_path / "docs" / "upper", "upper")


def spilled(folder: assets.NodeFolder) -> list[Path]:
    return sorted(folder.path.rglob("*.jsonl"))


def age(folder: assets.NodeFolder) -> None:
    """Make all files look old."""
    then = time.time() - LONG_AGO
    for path in folder.path.iterdir():
        os.utime(path, (then, then))


def upstream(folder: assets.NodeFolder, *texts: str) -> StepInputs:
    made = StepInputs(folder, 1, "a run")
    made.add(dg.AssetKey("texts"), [[{"text": text} for text in texts]])
    return made


def test_two_concurrent_steps_have_separate_files(folder: assets.NodeFolder) -> None:
    with upstream(folder, "one") as orphan:
        age(folder)
        with upstream(folder, "two", "three") as attempt:
            assert [row["text"] for row in orphan.datasets[0].read()] == ["one"]
            assert [row["text"] for row in attempt.datasets[0].read()] == ["two", "three"]
        assert [row["text"] for row in orphan.datasets[0].read()] == ["one"]
    assert list(folder.path.iterdir()) == []


def test_nothing_is_left_when_the_step_fails(folder: assets.NodeFolder) -> None:
    with pytest.raises(RuntimeError), upstream(folder, "one"):
        assert len(spilled(folder)) == 1
        raise RuntimeError
    assert list(folder.path.iterdir()) == []


def test_without_spilled_data_no_file_is_created(folder: assets.NodeFolder) -> None:
    with StepInputs(folder, 1, "a run"):
        pass
    assert not folder.path.exists()


def _spill_and_die(folder: assets.NodeFolder) -> None:
    upstream(folder, "lost")
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_files_of_a_killed_step_are_deleted_by_a_later_step(folder: assets.NodeFolder) -> None:
    killed = multiprocessing.get_context("spawn").Process(target=_spill_and_die, args=(folder,))
    killed.start()
    killed.join(60)
    assert killed.exitcode == -signal.SIGKILL
    (left,) = spilled(folder)

    for young in (True, False):
        if not young:
            age(folder)
        spills = StepScratch(folder, "the next")
        spills.place()
        assert left.exists() is young
        spills.delete()
    assert list(folder.path.iterdir()) == []
