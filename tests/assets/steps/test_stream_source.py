"""Tests of streams as sources: one result, with a checkpoint, reported like an operator's."""

import gzip
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import orjson
import pytest

from dagster_dataops import (
    DataOpsResource,
    DataPipeline,
    DataPipelineBuilder,
    assets,
    build_definitions,
    checks,
    dataops_assets,
    dataops_resources,
    read_jsonl,
    read_sequence,
)
from dagster_dataops.assets.steps.source_assets import source_asset
from dagster_dataops.errors import (
    ConfigurationError,
    OperatorDefinitionError,
    PipelineDefinitionError,
    StreamDefinitionError,
    StreamItemError,
)
from dagster_dataops.execution.runners.given_stream import of_partition
from dagster_dataops.streams.operations import Operations
from tests.assets.helpers import (
    Records,
    definitions_of,
    execute,
    log_of,
    metadata_of,
    numbered,
    pipeline_of,
    resource_at,
    result_of,
    spec_of,
)
from tests.registries import OperatorRegistry
from tests.streams.serving import served

ROWS = list(numbered(60))
UPPER = [{**row, "text": row["text"].upper()} for row in ROWS]


@pytest.fixture
def upper(registry: OperatorRegistry) -> Any:
    @registry("data.text", _concurrency_mode="single")
    def upper(record: dict) -> None:
        record["text"] = record["text"].upper()

    return pipeline_of(upper=upper())


def shuffled(path: Path, window: int = 7) -> DataPipelineBuilder:
    return read_jsonl(path).shuffle(window, seed=1)


def uppered(rows: Any) -> list[dict[str, Any]]:
    return [{**row, "text": row["text"].upper()} for row in rows]


@pytest.mark.parametrize("layout", ["steps", "single_step"])
def test_a_stream_is_an_asset_that_the_first_node_takes(
    layout: Any, upper: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    path = records(60)
    definitions = definitions_of(upper, shuffled(path), root, layout=layout)
    deps = spec_of(definitions, "docs", "upper").deps
    assert [dep.asset_key for dep in deps] == [dg.AssetKey(["docs", "texts"])]
    result = execute(definitions, instance)
    assert result_of(root, "docs", "texts") == list(shuffled(path))
    assert result_of(root, "docs", "upper") == uppered(shuffled(path))
    found = metadata_of(result, "docs", "texts")
    assert found["dagster/row_count"] == 60
    assert "rows_resumed" not in found
    assert found["seeds"] == {"read_jsonl>shuffle": "1"}
    assert [column.name for column in found["dagster/column_schema"].columns] == ["id", "text"]
    events = result.get_asset_materialization_events()
    versions = {
        event.asset_key.path[-1]: event.materialization.tags["dagster/data_version"]
        for event in events
        if event.materialization.tags
    }
    assert versions["texts"].startswith("xxh3:")


class Reader:
    """An object that makes a stream, like a reader."""

    name = "reader"

    def stream(self) -> Operations:
        return read_sequence(ROWS)


def streamed() -> DataPipeline:
    """Sixty texts, as a stream."""
    return read_sequence(ROWS).and_return()


def unannotated():  # type: ignore[no-untyped-def]
    """Return sixty texts; without an annotation, the stream is detected only when it is made."""
    return read_sequence(ROWS)


@pytest.mark.parametrize(
    ("source", "name", "given"),
    [
        (read_sequence(ROWS).filter(bool), "filter", ""),
        (read_sequence(ROWS).and_return(), "read_sequence", ""),
        (read_sequence(ROWS), "sixty", "sixty"),
        (Reader(), "reader", ""),
        (streamed, "streamed", ""),
        (streamed, "other", "other"),
        (unannotated, "unannotated", ""),
    ],
)
def test_streams_of_any_form_have_a_name(
    source: Any, name: str, given: str, upper: Any, root: Path, instance: dg.DagsterInstance
) -> None:
    definitions = definitions_of(upper, source, root, stream_name=given)
    result = execute(definitions, instance)
    assert result_of(root, "docs", name) == ROWS
    assert result_of(root, "docs", "upper") == UPPER
    assert metadata_of(result, "docs", name)["dagster/row_count"] == 60


def test_a_registered_reader_is_a_source_whose_columns_are_checked(
    upper: Any, registry: OperatorRegistry, root: Path, instance: dg.DagsterInstance
) -> None:
    @registry("data.text", columns={"id": int, "text": str})
    def numbers(count: int) -> DataPipelineBuilder:
        """Yield a number of texts."""
        return read_sequence(list(numbered(count)))

    reader = registry.group("text").numbers(count=60)
    definitions = definitions_of(upper, reader, root)
    assert spec_of(definitions, "docs", "numbers").description == "Yield a number of texts."
    execute(definitions, instance)
    assert result_of(root, "docs", "numbers") == ROWS

    @registry("data.text", _concurrency_mode="single", reads={"title": str})
    def titled(record: dict) -> None: ...

    with pytest.raises(PipelineDefinitionError, match="reads column 'title'"):
        definitions_of(pipeline_of(titled=titled()), reader, root)


def test_the_asset_shows_its_stages_and_what_describes_a_function(upper: Any, root: Path) -> None:
    spec = spec_of(definitions_of(upper, streamed, root), "docs", "streamed")
    assert spec.description == "Sixty texts, as a stream."
    assert "dagster/code_references" in spec.metadata
    definitions = definitions_of(upper, read_sequence(ROWS).shuffle(5), root)
    shown = spec_of(definitions, "docs", "shuffle").metadata["dagster_dataops/stages"]
    assert r"| 1 | read\_sequence |" in shown.value  # type: ignore[union-attr]
    assert "| 2 | shuffle |" in shown.value  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["texts.jsonl.gz", "texts.jsonl.zst", "texts.jsonl.bz2"])
def test_a_compressed_file_and_a_url_are_streams(name: str, tmp_path: Path) -> None:
    origin = source_asset(str(tmp_path / name), "docs")
    assert origin.key == dg.AssetKey(["docs", "texts"])
    assert origin.path is None
    for url in ("https://host/more/docs.jsonl", "s3://bucket/*/docs.jsonl", "s3://bucket/docs.csv"):
        assert source_asset(url, "docs").key == dg.AssetKey(["docs", "docs"])
        assert source_asset(url, "docs").path is None


def test_compressed_files_and_urls_become_results(
    upper: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    packed = records(60).with_suffix(".jsonl.gz")
    packed.write_bytes(gzip.compress(packed.with_suffix("").read_bytes()))
    with served(packed.parent, ranges=True) as server:
        for source in (packed, f"{server.url}/{packed.name}"):
            execute(definitions_of(upper, source, root), instance)
            assert result_of(root, "docs", "texts") == ROWS
            assert result_of(root, "docs", "upper") == UPPER


def test_a_url_of_each_partition(tmp_path: Path) -> None:
    partitions = dg.StaticPartitionsDefinition(["a", "b"])
    origin: Any = source_asset(
        "https://host/{partition}/docs.jsonl",
        "docs",
        assets.AssetOptions(partitions_def=partitions),
    )
    stage = of_partition(origin.plan.node.operator, "b").stream().stage
    assert stage.files.paths == ("https://host/b/docs.jsonl",)
    assert origin.key == dg.AssetKey(["docs", "docs"])


ENDLESS = "stage (count|repeat): never ends"
PARTITIONED = {"partitions_def": dg.StaticPartitionsDefinition(["a"])}


@pytest.mark.parametrize(
    ("source", "keywords", "error", "said"),
    [
        (DataPipeline.count(key="n").shuffle(3), {}, StreamDefinitionError, ENDLESS),
        (read_sequence(ROWS).repeat(), {}, StreamDefinitionError, ENDLESS),
        (["a.jsonl", "b.jsonl"], {}, OperatorDefinitionError, r"combine\.concat"),
        (read_sequence(ROWS), PARTITIONED, ConfigurationError, "a function of the partition's key"),
    ],
)
def test_a_source_that_cannot_be_one_is_refused_when_it_is_defined(
    source: Any, keywords: Any, error: type[Exception], said: str, upper: Any, root: Path
) -> None:
    with pytest.raises(error, match=said):
        definitions_of(upper, source, root, **keywords)


def test_an_item_that_is_not_a_record_fails_the_step_with_its_number(
    upper: Any, root: Path, instance: dg.DagsterInstance
) -> None:
    definitions = definitions_of(upper, read_sequence(ROWS).bucket(7), root)
    with pytest.raises(StreamItemError, match=r"item 0 is a list"):
        execute(definitions, instance)


@pytest.mark.slow
def test_a_function_makes_a_stream_of_each_partition(
    upper: Any, root: Path, instance: dg.DagsterInstance
) -> None:
    def daily(key: str) -> DataPipelineBuilder:
        return read_sequence(ROWS).filter(lambda row: str(row["id"])[-1] == key)

    partitions = dg.StaticPartitionsDefinition(["1", "2"])
    policy = dg.BackfillPolicy.single_run()
    definitions = definitions_of(
        upper, daily, root, partitions_def=partitions, backfill_policy=policy
    )
    execute(definitions, instance, partition_key="2")
    place = root / "docs/daily/partitions/2/daily_results.jsonl"
    found = [orjson.loads(line)["id"] for line in place.read_bytes().splitlines()]
    assert found == [2, 12, 22, 32, 42, 52]
    tags = {"dagster/asset_partition_range_start": "1", "dagster/asset_partition_range_end": "2"}
    execute(definitions, instance, tags=tags)
    assert (root / "docs/upper/partitions/1/upper_results.jsonl").exists()


# ---------------------------------------------------------------- several processes


def test_workers_write_the_same_bytes_as_one_process(
    upper: Any, records: Records, tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    def written(name: str, **options: Any) -> bytes:
        place = tmp_path / name
        execute(definitions_of(upper, shuffled(path).map(dict), place, **options), instance)
        return (place / "docs/texts/texts_results.jsonl").read_bytes()

    path = records(60)
    assert written("two", workers=2) == written("one")


def test_workers_change_no_version(upper: Any, records: Records, root: Path) -> None:
    path = records(3)
    first, second = (
        spec_of(definitions_of(upper, shuffled(path), root, **options), "docs", "texts")
        for options in ({}, {"workers": 3})
    )
    assert first.code_version == second.code_version


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), [(2, 3), (0, 2), (2, 0)])
def test_a_run_that_failed_resumes_with_another_number_of_workers(
    upper: Any,
    tmp_path: Path,
    root: Path,
    instance: dg.DagsterInstance,
    first: int,
    second: int,
) -> None:
    calls, fails = tmp_path / "calls", tmp_path / "fails"
    fails.touch()

    def noted(row: dict[str, Any]) -> dict[str, Any]:
        with calls.open("a") as file:
            file.write(f"{row['id']} ")
        time.sleep(0.005)
        if row["id"] == 40 and fails.exists():
            raise ValueError("the fortieth")
        return row

    source = read_sequence(ROWS).map(noted)
    with pytest.raises(ValueError, match="the fortieth"):
        execute(_definitions(upper, source, root, workers=first), instance)
    fails.unlink()
    calls.unlink()
    result = execute(_definitions(upper, source, root, workers=second), instance)
    assert result_of(root, "docs", "map") == ROWS
    resumed = metadata_of(result, "docs", "map").get("rows_resumed", 0)
    assert resumed <= 40
    again = [int(word) for word in calls.read_text().split()]
    assert sorted(again) == list(range(resumed, 60))


def test_workers_for_a_source_that_is_no_stream_are_refused(
    upper: Any, records: Records, root: Path
) -> None:
    with pytest.raises(ConfigurationError, match="workers is 2; .*a source that is a stream"):
        definitions_of(upper, records(3), root, workers=2)
    with pytest.raises(StreamDefinitionError, match="already has workers"):
        definitions_of(upper, read_sequence(ROWS).map(dict).workers(2), root, workers=2)


# ---------------------------------------------------------------- runs that end too soon


class Ending:
    """Records the items in a file, and ends the run at one item, once."""

    def __init__(self, home: Path, at: int, how: str) -> None:
        self.home, self.at, self.how = home, at, how

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        with (self.home / "calls").open("a") as file:
            file.write(f"{row['id']}\n")
        time.sleep(0.01)
        once = self.home / "ended"
        if row["id"] == self.at and not once.exists():
            once.touch()
            if self.how == "interrupt":
                os.kill(os.getpid(), 2)
                time.sleep(30)
            raise OSError(self.how)
        return row

    def calls(self) -> list[int]:
        return [int(text) for text in (self.home / "calls").read_text().split()]


def _goes_on(found: dict[str, Any], calls: list[int], root: Path) -> None:
    resumed = found["rows_resumed"]
    assert 0 < resumed <= 50
    assert calls == [*range(51), *range(resumed, 60)]
    assert result_of(root, "docs", "upper") == UPPER
    assert "resuming: " in found["notes"]


def _frequent(root: Path) -> DataOpsResource:
    return DataOpsResource(root=str(root), lock_seconds=0.2, flush_seconds=0.1)


def _definitions(ppl: Any, source: Any, root: Path, **keywords: Any) -> dg.Definitions:
    return build_definitions(ppl, source=source, resource=_frequent(root), **keywords)


@pytest.mark.slow
def test_a_cancelled_run_resumes_in_a_plain_materialize(
    upper: Any, root: Path, tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    ending = Ending(tmp_path, 50, "interrupt")
    definitions = _definitions(upper, read_sequence(ROWS).map(ending), root)
    began = time.monotonic()
    with pytest.raises(dg.DagsterExecutionInterruptedError):
        execute(definitions, instance)
    assert time.monotonic() - began < 20
    assert not (root / "docs/map/map_results.jsonl").exists()
    result = execute(definitions, instance)
    _goes_on(metadata_of(result, "docs", "map"), ending.calls(), root)
    third = execute(definitions, instance)
    assert metadata_of(third, "docs", "map").get("rows_resumed") is None


@pytest.mark.slow
def test_a_retry_resumes_within_the_same_run(
    upper: Any, root: Path, tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    ending = Ending(tmp_path, 50, "failure")
    definitions = _definitions(
        upper, read_sequence(ROWS).map(ending), root, retry_policy=dg.RetryPolicy(max_retries=1)
    )
    result = execute(definitions, instance)
    _goes_on(metadata_of(result, "docs", "map"), ending.calls(), root)


@pytest.mark.slow
def test_resuming_is_switched_off_in_the_launchpad(
    upper: Any, root: Path, tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    ending = Ending(tmp_path, 50, "failure")
    definitions = _definitions(upper, read_sequence(ROWS).map(ending), root)
    with pytest.raises(OSError, match="failure"):
        execute(definitions, instance)
    result = execute(definitions, instance, {"ops": {"docs__map": {"config": {"resume": "never"}}}})
    found = metadata_of(result, "docs", "map")
    assert "rows_resumed" not in found
    assert "resuming is switched off" in found["notes"]


@pytest.mark.slow
def test_another_stream_starts_afresh_and_the_log_names_the_difference(
    upper: Any, root: Path, tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    ending = Ending(tmp_path, 50, "failure")
    with pytest.raises(OSError, match="failure"):
        execute(_definitions(upper, read_sequence(ROWS).take(55).map(ending), root), instance)
    changed = _definitions(upper, read_sequence(ROWS).take(54).map(ending), root)
    result = execute(changed, instance)
    assert any("(take) differs in its options" in line for line in log_of(instance, result.run_id))
    assert len(result_of(root, "docs", "upper")) == 54


# ---------------------------------------------------------------- metadata and logs


def test_failures_are_counted_and_shown(
    upper: Any, root: Path, instance: dg.DagsterInstance
) -> None:
    def grumpy(row: dict[str, Any]) -> dict[str, Any]:
        if row["id"] % 20 == 3:
            msg = f"no {row['id']}"
            raise ValueError(msg)
        return row

    stream = read_sequence(ROWS).map(grumpy)
    kept = definitions_of(upper, stream.and_return(on_error="quarantine"), root)
    found = metadata_of(execute(kept, instance), "docs", "map")
    assert (found["dagster/row_count"], found["rows_failed"]) == (57, 3)
    assert "ValueError | 3 | line 1: no 3" in found["errors"]
    errors = (root / "docs/map/map_error.jsonl").read_bytes().splitlines()
    assert [orjson.loads(line)["input"]["id"] for line in errors] == [3, 23, 43]
    skipped = definitions_of(upper, stream.and_return(on_error="skip"), root)
    found = metadata_of(execute(skipped, instance), "docs", "map")
    assert found["rows_failed"] == 3
    assert "errors" not in found
    assert not (root / "docs/map/map_error.jsonl").exists()


def test_the_code_version_is_that_of_the_stages(upper: Any, root: Path) -> None:
    def version(stream: Any) -> str | None:
        (key,) = (
            key
            for key in definitions_of(upper, stream, root).resolve_all_asset_keys()
            if key.path[-1] != "upper"
        )
        return spec_of(definitions_of(upper, stream, root), *key.path).code_version

    same = [version(read_sequence(ROWS).map(str).shuffle(5, seed=1)) for _ in range(2)]
    assert same[0] == same[1]
    others = {
        version(read_sequence(ROWS).map(repr).shuffle(5, seed=1)),
        version(read_sequence(ROWS).map(str).shuffle(6, seed=1)),
        version(read_sequence(ROWS).map(str).shuffle(5, seed=2)),
        version(read_sequence(ROWS).map(str).shuffle(5).and_return(seed=2)),
        same[0],
    }
    assert len(others) == 5


def test_a_preview_takes_the_first_items_and_materializes_nothing(
    upper: Any, root: Path, instance: dg.DagsterInstance
) -> None:
    seen: list[int] = []

    def rows() -> Iterator[Any]:
        for row in ROWS:
            seen.append(row["id"])
            yield row

    class Rows:
        name = "rows"

        def stream(self) -> Operations:
            return read_sequence([0]).yield_from(lambda _: read_sequence(list(rows())))

    definitions = definitions_of(upper, Rows(), root)
    result = definitions.resolve_job_def("docs_preview").execute_in_process(instance=instance)
    (observation,) = result.asset_observations_for_node("preview_docs")
    assert observation.metadata["preview/rows_in"].value == 10
    config = {"ops": {"docs__rows": {"config": {"limit": 4}}}}
    result = execute(definitions, instance, config, only=[["docs", "rows"]])
    assert result.get_asset_materialization_events() == []
    assert not (root / "docs/rows/rows_results.jsonl").exists()
    previewed = root / "docs/rows/.preview/rows_results.jsonl"
    assert len(previewed.read_bytes().splitlines()) == 4


def test_checks_of_the_source_look_at_a_stream_as_well(
    upper: Any, root: Path, instance: dg.DagsterInstance
) -> None:
    declared = {"source": [checks.row_count(min=61)]}
    definitions = definitions_of(upper, read_sequence(ROWS), root, checks=declared)
    (result,) = [
        check
        for check in execute(definitions, instance).get_asset_check_evaluations()
        if check.check_name == "row_count"
    ]
    assert not result.passed


# ---------------------------------------------------------------- custom steps and jobs


def test_a_stream_is_in_the_step_of_the_decorator(
    upper: Any, root: Path, instance: dg.DagsterInstance
) -> None:
    @dataops_assets(upper, source=read_sequence(ROWS), stream_name="sixty")
    def docs(context: dg.AssetExecutionContext, dataops: DataOpsResource) -> Iterator[Any]:
        yield from dataops.run(context)

    assert {key.path[-1] for key in docs.keys} == {"sixty", "upper"}
    dg.materialize([docs], resources=dataops_resources(resource_at(root)), instance=instance)
    assert result_of(root, "docs", "upper") == UPPER


def test_a_stream_is_run_in_a_custom_op(
    upper: Any, root: Path, instance: dg.DagsterInstance
) -> None:
    planned = assets.plan_pipeline(upper, source=read_sequence(ROWS))

    @dg.op(out={})
    def nightly(context: dg.OpExecutionContext, dataops: DataOpsResource) -> Iterator[Any]:
        yield from dataops.run(context, planned)

    @dg.job(resource_defs={"dataops": resource_at(root)})
    def job() -> None:
        nightly()

    assert job.execute_in_process(instance=instance).success
    assert result_of(root, "docs", "upper") == UPPER


def test_a_stream_is_the_source_of_a_job_of_ops(
    upper: Any, root: Path, instance: dg.DagsterInstance
) -> None:
    job = assets.build_operator_job(
        upper, source=read_sequence(ROWS), resources={"dataops": resource_at(root)}
    )
    assert job.execute_in_process(instance=instance).success
    assert result_of(root, "docs", "read_sequence") == ROWS
    assert result_of(root, "docs", "upper") == UPPER
