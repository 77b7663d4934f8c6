"""Test sources on an S3 server: external assets, which the operators of the pipeline read."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import DataOpsResource, NewFiles, build_definitions, checks, config, trace
from dagster_dataops.assets.steps.source_assets import source_asset
from dagster_dataops.configuration import input_object
from dagster_dataops.errors import ConfigurationError, InputError
from dagster_dataops.foundation.places.result_store import ResultStore
from dagster_dataops.records import encode
from tests.assets.helpers import (
    checks_of,
    definitions_of,
    execute,
    metadata_of,
    numbered,
    pipeline_of,
    result_of,
    spec_of,
    tags_of,
)
from tests.execution.helpers import second_thread
from tests.object_stores import SECRETS, s3_server, writing
from tests.registries import OperatorRegistry

URL = "s3://results/in/texts.jsonl"
PARTITIONS = dg.StaticPartitionsDefinition(["a", "b"])
UPPER = [{**row, "text": row["text"].upper()} for row in numbered(600)]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with s3_server() as found:
        yield found


@pytest.fixture(autouse=True)
def _no_forks() -> Iterator[None]:
    """Start workers without a fork: the threads of earlier tests do not forbid it here."""
    with second_thread(True):
        yield


@pytest.fixture
def options(address: str, tmp_path: Path) -> Mapping[str, str]:
    """Return the options of the store, which are not in the environment."""
    config.data_process_scratch = tmp_path / "scratch"
    secrets = {key.lower().removeprefix("aws_"): value for key, value in SECRETS.items()}
    return {**secrets, "endpoint": address}


@pytest.fixture
def bucket(options: Mapping[str, str]) -> ResultStore:
    store = writing(input_object(URL, options).bucket)
    store.remove(store.names("in"))
    return store


@pytest.fixture
def upper(registry: OperatorRegistry) -> Any:
    @registry("data.text", _concurrency_mode="process", _max_workers=2)
    def upper(record: dict) -> dict:
        return {**record, "text": record["text"].upper()}

    return pipeline_of(upper=upper())


def put(bucket: ResultStore, key: str, rows: Any) -> None:
    bucket.put(key, b"".join(map(encode, rows)))


def of(
    ppl: Any, source: str, root: Path, options: Mapping[str, str], **keywords: Any
) -> dg.Definitions:
    resource = DataOpsResource(root=str(root), storage_options=dict(options))
    jobs = ["pipeline", "preview"]
    return build_definitions(ppl, source=source, resource=resource, jobs=jobs, **keywords)


def version_of(instance: dg.DagsterInstance) -> str:
    return tags_of(instance, "docs", "upper")["dagster/input_data_version/docs/texts"]


@pytest.mark.slow
def test_an_object_is_an_external_asset_that_workers_read_with_the_options_of_the_resource(
    upper: Any,
    bucket: ResultStore,
    options: Mapping[str, str],
    root: Path,
    tmp_path: Path,
    instance: dg.DagsterInstance,
) -> None:
    put(bucket, "in/texts.jsonl", numbered(600))
    definitions = of(upper, URL, root, options, checks={"source": [checks.no_nulls("text")]})

    result = execute(definitions, instance)

    assert spec_of(definitions, "docs", "texts").metadata["dagster/uri"] == URL
    assert result_of(root, "docs", "upper") == UPPER
    facts = metadata_of(result, "docs", "texts")
    assert (facts["dagster/row_count"], facts["dagster/uri"]) == (600, URL)
    assert [one.passed for one in checks_of(result) if one.asset_key.path[-1] == "texts"] == [True]
    assert not list((tmp_path / "scratch").rglob("*.jsonl"))


@pytest.mark.slow
def test_the_data_version_of_an_object_follows_its_content(
    upper: Any,
    bucket: ResultStore,
    options: Mapping[str, str],
    root: Path,
    instance: dg.DagsterInstance,
) -> None:
    versions = []
    for count in (600, 600, 50):
        put(bucket, "in/texts.jsonl", numbered(count))
        execute(of(upper, URL, root, options), instance)
        versions.append(version_of(instance))

    assert versions[0] == versions[1] != versions[2]
    assert len(instance.fetch_materializations(dg.AssetKey(["docs", "texts"]), 9).records) == 2
    assert len(result_of(root, "docs", "upper")) == 50


def test_each_partition_may_be_an_object(
    upper: Any,
    bucket: ResultStore,
    options: Mapping[str, str],
    root: Path,
    instance: dg.DagsterInstance,
) -> None:
    url = "s3://results/in/{partition}/texts.jsonl"
    put(bucket, "in/b/texts.jsonl", numbered(3))
    definitions = of(upper, url, root, options, partitions_def=PARTITIONS)

    result = execute(definitions, instance, partition_key="b")

    assert metadata_of(result, "docs", "upper")["rows_in"] == 3
    preview = definitions.resolve_job_def("docs_preview")
    assert preview.execute_in_process(instance=instance).success  # of the last one that exists
    with pytest.raises(InputError, match="s3://results/in/a/texts.jsonl: there is no such object"):
        execute(definitions, instance, partition_key="a")


@pytest.mark.slow
def test_all_partitions_are_read_and_missing_objects_are_named(
    upper: Any,
    bucket: ResultStore,
    options: Mapping[str, str],
    root: Path,
    instance: dg.DagsterInstance,
) -> None:
    url = "s3://results/in/{partition}/texts.jsonl"
    keywords = {"partitions_def": PARTITIONS, "unpartitioned": ["upper"]}
    definitions = of(upper, url, root, options, **keywords)
    put(bucket, "in/b/texts.jsonl", numbered(3))
    with pytest.raises(InputError, match="1 of 2 partitions have no file: s3://results/in/a/"):
        execute(definitions, instance)

    put(bucket, "in/a/texts.jsonl", numbered(2))
    execute(definitions, instance)

    assert [row["id"] for row in result_of(root, "docs", "upper")] == [0, 1, 0, 1, 2]


def test_new_objects_have_no_sensor(upper: Any, root: Path) -> None:
    partitions = dg.DynamicPartitionsDefinition(name="files")
    with pytest.raises(ConfigurationError, match="a path of this machine as source"):
        definitions_of(
            upper, "s3://b/{partition}.jsonl", root, partitions_def=partitions, new_files=NewFiles()
        )


def test_workers_of_a_stream_are_refused_for_an_object() -> None:
    with pytest.raises(ConfigurationError, match="for a source that is a stream"):
        source_asset(URL, "docs", {"workers": 2})


@pytest.mark.slow
def test_a_trace_shows_the_line_of_an_object(
    upper: Any,
    bucket: ResultStore,
    options: Mapping[str, str],
    root: Path,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put(bucket, "in/texts.jsonl", numbered(600))
    execute(of(upper, URL, root, options), instance)
    monkeypatch.setenv("AWS_ENDPOINT_URL", options["endpoint"])
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)

    for found in (trace(root / "docs" / "upper", 3), trace(root / "docs" / "upper", source_line=3)):
        assert found.ends == ()
        assert [one.text for one in found.sources] == [
            encode(list(numbered(3))[2]).decode().strip()
        ]
