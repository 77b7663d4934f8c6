"""Artefacts as assets, and the assets that take them as options."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import (
    DataOpsResource,
    Pipeline,
    To,
    checks,
    data_register,
    dataops_assets,
    dataops_resources,
    load_artefact,
    pipeline,
)
from dagster_dataops import assets as parts
from dagster_dataops.errors import PipelineDefinitionError, RecordError, ResultMissingError
from tests.assets.helpers import (
    checks_of,
    definitions_of,
    execute,
    metadata_of,
    read_jsonl,
    resource_at,
    result_of,
    spec_of,
    write_jsonl,
)

group = data_register.new_group("artefact_assets")


class Words(group):
    """Write the words of at least some length.

    Args:
        length: The length.
    """

    def __init__(self, length: int = 1, **kwargs):
        super().__init__(**kwargs)
        self.length = length

    def build(self, records, folder):
        words = {word for record in records for word in record["text"].split()}
        (folder / "words.json").write_text(
            json.dumps(sorted(word for word in words if len(word) >= self.length))
        )
        (folder / "more").mkdir()
        (folder / "more" / "count").write_text(str(len(words)))


class Lookup(group):
    """Look words up."""

    def __init__(self, words: Path, tag: str = "", **kwargs):
        super().__init__(_max_workers=2, **kwargs)
        assert tag != "refused"
        self.words = json.loads((words / "words.json").read_text())
        self.tag = tag

    def forward(self, record):
        record["found"] = [word for word in record["text"].split() if word in self.words]
        record["tag"] = self.tag


@data_register("data.artefact_assets")
def upper(record):
    record["text"] = record["text"].upper()


def lookup_pipeline(length: int = 1, **lookup: Any) -> Pipeline:
    with pipeline("docs") as ppl:
        ppl.upper = upper
        ppl.words = Words(length=length)
        ppl.lookup = Lookup(words=ppl.words, **lookup)
    return ppl


KEY = dg.AssetKey(["docs", "words"])


@pytest.mark.parametrize("layout", ["steps", "single_step"])
@pytest.mark.parametrize("mode", ["process", "thread"])
def test_an_artefact_is_an_asset_that_others_depend_on(
    tmp_path: Path, records: Callable[[int], Path], instance: Any, layout: Any, mode: str
) -> None:
    ppl = lookup_pipeline(_concurrency_mode=mode)
    definitions = definitions_of(ppl, records(5), tmp_path, layout=layout)
    dg.Definitions.validate_loadable(definitions)
    spec = spec_of(definitions, "docs", "lookup")
    assert {dep.asset_key.path[-1] for dep in spec.deps} == {"upper", "words"}
    assert spec_of(definitions, *KEY.path).kinds == {"python", "artefact"}
    options = spec.metadata["dagster_dataops/options"].value
    assert "artefact of node words" in options
    result = execute(definitions, instance)
    assert result.success
    rows = result_of(tmp_path, "docs", "lookup")
    assert [row["found"] for row in rows] == [["TEXT", str(n)] for n in range(5)]
    artefact = load_artefact(tmp_path / "docs" / "words")
    found = metadata_of(result, *KEY.path)
    assert (found["files"], found["digest"], found["rows_in"]) == (2, artefact.digest, 5)
    assert found["dagster/size_bytes"] == artefact.size_bytes
    assert found["dagster/uri"] == artefact.path.as_uri()
    assert "words.json" in found["listing"].replace("\\", "")
    assert "dagster/row_count" not in found
    event = instance.get_latest_data_version_record(KEY)
    assert event.asset_materialization.tags["dagster/data_version"] == f"xxh3:{artefact.digest}"


@pytest.mark.slow
def test_an_asset_takes_the_artefact_that_is_there(
    tmp_path: Path, records: Callable[[int], Path], instance: Any
) -> None:
    definitions = definitions_of(lookup_pipeline(), records(3), tmp_path)
    with pytest.raises(ResultMissingError, match="docs/words"):
        execute(definitions, instance, only=[["docs", "upper"], ["docs", "lookup"]])
    execute(definitions, instance, only=[KEY.path])
    assert execute(definitions, instance, only=[["docs", "lookup"]]).success
    version = load_artefact(tmp_path / "docs" / "words").path
    (version / "words.json").write_text("[]")
    with pytest.raises(ResultMissingError, match=r"words.json was changed.* Materialize"):
        execute(definitions, instance, only=[["docs", "lookup"]])
    execute(definitions, instance, only=[KEY.path])
    assert execute(definitions, instance, only=[["docs", "lookup"]]).success


@pytest.mark.slow
def test_another_artefact_is_another_option_and_an_equal_one_is_not(
    tmp_path: Path, records: Callable[[int], Path], instance: Any
) -> None:
    source = records(3)
    refresh = "docs_refresh"

    def refreshed(ppl: Pipeline) -> dict[str, str]:
        definitions = definitions_of(ppl, source, tmp_path)
        job = definitions.resolve_job_def(refresh)
        result = job.execute_in_process(instance=instance)
        names = ("upper", "words", "lookup")
        return {name: metadata_of(result, "docs", name).get("notes", "") for name in names}

    assert not any(refreshed(lookup_pipeline()).values())
    notes = refreshed(lookup_pipeline())
    assert all("already finished" in note for note in notes.values())
    notes = refreshed(lookup_pipeline(length=0))  # another option, an equal artefact
    assert not notes["words"]
    assert "already finished" in notes["lookup"]
    notes = refreshed(lookup_pipeline(length=3))
    assert (notes["words"], notes["lookup"]) == ("", "")
    assert [row["found"] for row in result_of(tmp_path, "docs", "lookup")] == [["TEXT"]] * 3


def test_the_launchpad_changes_other_options_and_leaves_the_artefact_out(
    tmp_path: Path, records: Callable[[int], Path], instance: Any
) -> None:
    definitions = definitions_of(lookup_pipeline(), records(2), tmp_path)
    given = {"config": {"params": {"tag": "x"}, "max_workers": 1}}
    words = {"config": {"params": {"length": 3}}}
    result = execute(definitions, instance, {"ops": {"docs__lookup": given, "docs__words": words}})
    assert result.success
    rows = result_of(tmp_path, "docs", "lookup")
    assert [(row["tag"], row["found"]) for row in rows] == [("x", ["TEXT"])] * 2
    step = definitions.resolve_assets_def(["docs", "lookup"]).op
    fields = step.config_schema.config_type.fields["params"].config_type.fields
    assert set(fields) == {"tag"}
    refused = {"ops": {"docs__words": {"config": {"params": {"length": "long"}}}}}
    with pytest.raises(dg.DagsterInvalidConfigError):
        execute(definitions, instance, refused)


class Strict(Lookup):
    """Fail at the first failed record, as ``__init__`` says."""

    def __init__(self, words, **kwargs):
        super().__init__(words, _ignore_errors=False, **kwargs)

    def forward(self, record):
        raise ValueError(record["id"])


def test_a_launch_keeps_the_settings_that_init_passes_on(
    tmp_path: Path, records: Callable[[int], Path], instance: Any
) -> None:
    with pipeline("docs") as ppl:
        ppl.words = Words()
        ppl.lookup = Strict(words=ppl.words)
    definitions = definitions_of(ppl, records(2), tmp_path)
    with pytest.raises(RecordError, match="record 0"):
        execute(definitions, instance)


class Flaky(Words):
    """Fail at the first attempt."""

    def build(self, records, folder):
        (folder / "half").touch()
        if not FAILED:
            FAILED.append(folder)
            raise ConnectionError("away")
        super().build(records, folder)


FAILED: list[Path] = []


def test_a_retry_of_the_step_builds_the_artefact_from_the_start(
    tmp_path: Path, records: Callable[[int], Path], instance: Any
) -> None:
    with pipeline("docs") as ppl:
        ppl.words = Flaky()
        ppl.lookup = Lookup(words=ppl.words)
    FAILED.clear()
    policy = dg.RetryPolicy(max_retries=1)
    definitions = definitions_of(ppl, records(2), tmp_path, retry_policy=policy)
    assert execute(definitions, instance).success
    assert FAILED
    assert load_artefact(tmp_path / "docs" / "words").files == 3


@pytest.mark.slow
def test_a_preview_of_one_asset_uses_the_published_artefact(
    tmp_path: Path, records: Callable[[int], Path], instance: Any
) -> None:
    definitions = definitions_of(lookup_pipeline(), records(5), tmp_path)
    execute(definitions, instance)
    before = load_artefact(tmp_path / "docs" / "words")
    limit = {"config": {"limit": 2}}
    execute(definitions, instance, {"ops": {"docs__lookup": limit}}, only=[["docs", "lookup"]])
    place = tmp_path / "docs" / "lookup" / ".preview" / "lookup_results.jsonl"
    assert [row["found"] for row in read_jsonl(place)] == [["TEXT", "0"], ["TEXT", "1"]]
    execute(definitions, instance, {"ops": {"docs__words": limit}}, only=[KEY.path])
    preview = load_artefact(tmp_path / "docs" / "words" / ".preview")
    assert (preview.path / "more" / "count").read_text() == "3"
    assert load_artefact(tmp_path / "docs" / "words") == before


@pytest.mark.parametrize("layout", ["steps", "single_step"])
def test_the_preview_job_builds_the_artefact_of_the_first_records(
    tmp_path: Path, records: Callable[[int], Path], instance: Any, layout: Any
) -> None:
    definitions = definitions_of(lookup_pipeline(), records(5), tmp_path, layout=layout)
    job = definitions.resolve_job_def("docs_preview")
    config = {"ops": {"preview_docs": {"config": {"limit": 2, "params": {"lookup": {"tag": "p"}}}}}}
    assert job.execute_in_process(config, instance=instance).success
    place = tmp_path / "docs" / "lookup" / ".preview" / "lookup_results.jsonl"
    assert [row["found"] for row in read_jsonl(place)] == [["TEXT", "0"], ["TEXT", "1"]]
    assert not (tmp_path / "docs" / "words" / "words_results.jsonl").exists()


def test_the_retry_job_keeps_an_artefact_and_retries_with_it(
    tmp_path: Path, records: Callable[[int], Path], instance: Any
) -> None:
    source = records(3)
    source.write_bytes(source.read_bytes() + b'{"id": 9, "text": null}\n')
    with pipeline("docs") as ppl:
        ppl.words = Words_of_texts()
        ppl.lookup = Lookup(words=ppl.words)
    definitions = definitions_of(ppl, source, tmp_path)
    result = execute(definitions, instance)
    assert metadata_of(result, "docs", "lookup")["rows_failed"] == 1
    version = load_artefact(tmp_path / "docs" / "words").path
    job = definitions.resolve_job_def("docs_retry_failed_records")
    assert job.execute_in_process(instance=instance).success
    assert load_artefact(tmp_path / "docs" / "words").path == version


class Words_of_texts(Words):  # noqa: N801 - names the node
    def build(self, records, folder):
        super().build((record for record in records if record["text"]), folder)


def partitioned(tmp_path: Path, **options: Any) -> dg.Definitions:
    for name in ("a", "b"):
        write_jsonl(tmp_path / f"{name}.jsonl", [{"text": f"{name} {name}{name}"}])
    return definitions_of(
        lookup_pipeline(),
        tmp_path / "{partition}.jsonl",
        tmp_path / "root",
        partitions_def=dg.StaticPartitionsDefinition(["a", "b"]),
        **options,
    )


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["steps", "single_step"])
def test_partitions_share_an_unpartitioned_artefact(
    tmp_path: Path, instance: Any, layout: Any
) -> None:
    definitions = partitioned(tmp_path, unpartitioned=["words"], layout=layout)
    assert spec_of(definitions, *KEY.path).partitions_def is None
    for name in ("a", "b"):
        only = [["docs", "upper"]]
        assert execute(definitions, instance, only=only, partition_key=name).success
    assert execute(definitions, instance, only=[KEY.path]).success
    for name in ("a", "b"):
        only = [["docs", "lookup"]]
        assert execute(definitions, instance, only=only, partition_key=name).success
    words = load_artefact(tmp_path / "root" / "docs" / "words").path / "words.json"
    assert json.loads(words.read_text()) == ["A", "AA", "B", "BB"]
    place = tmp_path / "root" / "docs" / "lookup" / "partitions" / "b" / "lookup_results.jsonl"
    assert read_jsonl(place)[0]["found"] == ["B", "BB"]


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["steps", "single_step"])
def test_a_partition_takes_the_artefact_of_its_own_partition(
    tmp_path: Path, instance: Any, layout: Any
) -> None:
    definitions = partitioned(
        tmp_path, layout=layout, backfill_policy=dg.BackfillPolicy.single_run()
    )
    tags = {"dagster/asset_partition_range_start": "a", "dagster/asset_partition_range_end": "b"}
    assert execute(definitions, instance, tags=tags).success
    for name in ("a", "b"):
        words = load_artefact(tmp_path / "root" / "docs" / "words" / "partitions" / name).path
        upper = name.upper()
        assert json.loads((words / "words.json").read_text()) == [upper, upper * 2]


def test_an_artefact_with_other_partitions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PipelineDefinitionError, match="add 'words' to `unpartitioned`"):
        partitioned(tmp_path, unpartitioned=["lookup"])


@pytest.mark.slow
def test_a_job_of_ops_builds_artefacts_and_previews_them(
    tmp_path: Path, records: Callable[[int], Path], instance: Any
) -> None:
    resources = {"dataops": resource_at(tmp_path)}
    job = parts.build_operator_job(lookup_pipeline(), source=records(3), resources=resources)
    result = job.execute_in_process(instance=instance)
    assert result.success
    assert [row["found"][1] for row in result_of(tmp_path, "docs", "lookup")] == ["0", "1", "2"]
    limit = {"ops": {"upper": {"config": {"limit": 1}}}}
    assert job.execute_in_process(limit, instance=instance).success
    place = tmp_path / "docs" / "lookup" / ".preview" / "lookup_results.jsonl"
    assert [row["found"] for row in read_jsonl(place)] == [["TEXT", "0"]]


class Divide(group, outputs=("found", "missing")):
    """Send texts to an output by whether all their words are in a list."""

    def __init__(self, words: Path, **kwargs):
        super().__init__(**kwargs)
        self.words = json.loads((words / "words.json").read_text())

    def forward(self, record):
        whole = all(word in self.words for word in record["text"].split())
        return To("found" if whole else "missing")


class Even(Words):
    """Write the words of records with even ids."""

    def build(self, records, folder):
        super().build((record for record in records if record["id"] % 2 == 0), folder)


def dividing_pipeline() -> Pipeline:
    """Divide records by the words of one artefact; look them up in that of one of the results."""
    with pipeline("docs") as ppl:
        ppl.even = Even()
        ppl.split = Divide(words=ppl.even)
        ppl.add("rest", Words(), inputs=ppl.split.missing)
        ppl.add("lookup", Lookup(words=ppl.rest), inputs=ppl.split.found)
    return ppl


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["steps", "single_step"])
def test_operators_with_several_results_take_artefacts(
    tmp_path: Path, records: Callable[[int], Path], instance: Any, layout: Any
) -> None:
    definitions = definitions_of(dividing_pipeline(), records(4), tmp_path, layout=layout)
    for name in ("found", "missing"):
        spec = spec_of(definitions, "docs", "split", name)
        assert [dep.asset_key.path[-1] for dep in spec.deps][1:] == ["even"]
    assert execute(definitions, instance).success
    found = result_of(tmp_path, "docs", "lookup")
    assert [(row["id"], row["found"]) for row in found] == [(0, ["text"]), (2, ["text"])]
    only = [["docs", "split", "found"], ["docs", "lookup"]]
    assert execute(definitions, instance, only=only).success
    job = definitions.resolve_job_def("docs_preview")
    config = {"ops": {"preview_docs": {"config": {"limit": 2}}}}
    assert job.execute_in_process(config, instance=instance).success
    place = tmp_path / "docs" / "lookup" / ".preview" / "lookup_results.jsonl"
    assert [row["found"] for row in read_jsonl(place)] == [["text"]]


def test_a_check_of_an_artefact_blocks_all_results_of_its_users(
    tmp_path: Path, records: Callable[[int], Path], instance: Any
) -> None:
    for layout in ("steps", "single_step"):
        definitions = definitions_of(
            dividing_pipeline(),
            records(4),
            tmp_path / layout,
            layout=layout,
            checks={"even": [checks.row_count(min=3, blocking=True)]},
        )
        result = execute(definitions, instance, raise_on_error=False)
        made = {event.asset_key.path[1] for event in result.get_asset_materialization_events()}
        assert made == {"texts", "even"}


@pytest.mark.slow
def test_a_job_of_ops_joins_artefacts_and_several_results(
    tmp_path: Path, records: Callable[[int], Path], instance: Any
) -> None:
    resources = {"dataops": resource_at(tmp_path)}
    job = parts.build_operator_job(dividing_pipeline(), source=records(4), resources=resources)
    assert job.execute_in_process(instance=instance).success
    assert [row["id"] for row in result_of(tmp_path, "docs", "lookup")] == [0, 2]
    limit = {"ops": {"even": {"config": {"limit": 2}}}}
    assert job.execute_in_process(limit, instance=instance).success
    place = tmp_path / "docs" / "lookup" / ".preview" / "lookup_results.jsonl"
    assert [row["id"] for row in read_jsonl(place)] == [0]


def test_a_step_with_a_body_of_its_own_builds_artefacts(
    tmp_path: Path, records: Callable[[int], Path], instance: Any
) -> None:
    @dataops_assets(lookup_pipeline(), source=records(2))
    def docs(context: dg.AssetExecutionContext, dataops: DataOpsResource):
        yield from dataops.run(context).fetch_row_count()

    resources = dataops_resources(resource_at(tmp_path))
    definitions = dg.Definitions(assets=[docs], resources=resources)
    assert execute(definitions, instance).success
    assert len(result_of(tmp_path, "docs", "lookup")) == 2


def test_checks_of_an_artefact_see_its_listing_and_block_its_users(
    tmp_path: Path, records: Callable[[int], Path], instance: Any
) -> None:
    for layout in ("steps", "single_step"):
        definitions = definitions_of(
            lookup_pipeline(),
            records(2),
            tmp_path / layout,
            layout=layout,
            checks={"words": [checks.row_count(min=3, blocking=True)]},
        )
        result = execute(definitions, instance, raise_on_error=False)
        assert [check.passed for check in checks_of(result) if "row" in check.check_name] == [False]
        assert not (tmp_path / layout / "docs" / "lookup").exists()


def test_another_asset_loads_an_artefact_as_a_path(
    tmp_path: Path, records: Callable[[int], Path], instance: Any
) -> None:
    seen: list[Any] = []

    @dg.asset(ins={"words": dg.AssetIn(KEY, input_manager_key="dataops_io")})
    def size(words: Path) -> None:
        seen.append((words / "more" / "count").read_text())

    definitions = definitions_of(lookup_pipeline(), records(2), tmp_path, others=[size])
    assert execute(definitions, instance).success
    assert seen == ["3"]
