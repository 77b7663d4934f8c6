"""Tests of the settings of files as fields of `DataOpsResource`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._config import process_config
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster._serdes import serialize_value

from dagster_dataops import (
    DataOpsResource,
    FileReference,
    LocalCluster,
    build_definitions,
    config,
    data_register,
)
from dagster_dataops.errors import ConfigurationError
from tests.assets.helpers import execute, log_of, pipeline_of, result_of, write_jsonl
from tests.each import each
from tests.streams.serving import Server, served

LOGIN = "Bearer SECRET-OF-TESTS"
CONTENT = b"scan" * 1000


@data_register("data.file_settings", _max_workers=2)
def count_bytes_twice(record: dict[str, Any]) -> dict[str, Any]:
    reference = FileReference.of(record["file"])
    return {"bytes": [len(reference.read()), len(reference.read())]}


class Logins(dg.ConfigurableResource[dict[str, Any]]):
    """Like a resource that asks a store of secrets for a login."""

    server: str
    login: str

    def create_resource(self, context: dg.InitResourceContext) -> dict[str, Any]:
        return {self.server: {"headers": {"Authorization": self.login}}}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "a.bin").write_bytes(CONTENT)
    monkeypatch.setenv("LOGIN", LOGIN)
    with served(folder, ranges=True) as server:
        server.login = LOGIN
        yield server


def login_of(server: Server, way: str) -> Any:
    headers = {"variable": dg.EnvVar("LOGIN"), "text": LOGIN, "yaml": {"env": "LOGIN"}}
    if way == "resource":
        return Logins(server=server.url, login=dg.EnvVar("LOGIN"))
    return {server.url: {"headers": {"Authorization": headers[way]}}}


def definitions_of(server: Server, tmp_path: Path, mode: str, way: str) -> dg.Definitions:
    places: dict[str, Any] = {"_concurrency_mode": "process" if mode == "agents" else mode}
    cluster = LocalCluster(agents=1, cpus_per_agent=1) if mode == "agents" else None
    source = write_jsonl(tmp_path / "in.jsonl", [{"file": f"{server.url}/a.bin"}] * 3)
    return build_definitions(
        pipeline_of(count=count_bytes_twice(**places)),
        source=source,
        resource=DataOpsResource(
            root=str(tmp_path / "root"),
            url_options=login_of(server, way),
            file_cache=str(tmp_path / "kept"),
            file_cache_gb=1,
            cluster=cluster,
        ),
    )


@pytest.mark.slow
@each("case", ["thread variable", "process variable", "agents resource", "thread text"])
def test_a_run_has_the_settings_in_all_its_processes_and_hides_their_secrets(
    server: Server, tmp_path: Path, instance: dg.DagsterInstance, case: str
) -> None:
    place, sent = tmp_path / case.replace(" ", "_"), server.sent
    place.mkdir()
    definitions = definitions_of(server, place, *case.split())
    job = definitions.resolve_job_def("docs_pipeline")
    defaults = process_config(job.run_config_schema.config_type, {}).value

    result = execute(definitions, instance)

    assert result_of(place / "root", "docs", "count") == [{"bytes": [len(CONTENT)] * 2}] * 3
    assert list((place / "kept").rglob("account"))
    assert server.sent - sent <= 2 * len(CONTENT)  # six reads; two may be at the same time
    assert not config.logins()
    assert config.file_cache is None
    shown = [
        serialize_value(RepositorySnap.from_def(definitions.get_repository_def())),
        str(defaults),
        str(instance.get_run_by_id(result.run_id)),
        *log_of(instance, result.run_id),
        *(str(entry) for entry in instance.all_logs(result.run_id)),
        *(p.read_bytes().decode("latin-1") for p in place.rglob("*") if p.is_file()),
    ]
    assert not [text for text in shown if "SECRET-OF-TESTS" in text]


@pytest.mark.slow
@each("mode", ["thread", "process"])
def test_a_refused_login_is_in_no_error(
    server: Server, tmp_path: Path, instance: dg.DagsterInstance, mode: str
) -> None:
    place = tmp_path / mode
    place.mkdir()
    server.login = "another"
    definitions = definitions_of(server, place, mode, "variable")
    result = execute(definitions, instance, raise_on_error=False)
    said = [str(entry) for entry in instance.all_logs(result.run_id)]
    said += [p.read_bytes().decode("latin-1") for p in place.rglob("*") if p.is_file()]
    assert any("a.bin" in text for text in said)
    assert not [text for text in said if "SECRET-OF-TESTS" in text]


def test_a_variable_that_is_not_set_fails_the_run_and_names_its_place(
    server: Server, tmp_path: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LOGIN")
    definitions = definitions_of(server, tmp_path, "thread", "yaml")
    result = execute(definitions, instance, raise_on_error=False)
    assert not result.success
    said = "\n".join(str(entry) for entry in instance.all_logs(result.run_id))
    assert f"url_options.{server.url}.headers.Authorization" in said
    assert "LOGIN" in said


@each(
    "case",
    [
        ([LOGIN], "of type list"),
        ({"http://a": LOGIN}, "of type str for 'http://a'"),
        ({"http://a": {"env": LOGIN}}, r"keys \['env'\] for 'http://a'"),
        ({"http://a": {"headers": {"k": {LOGIN}}}}, "of type set in 'k' in 'headers'"),
        ({"": {"key": LOGIN}}, "for ''"),
        ({"http://a": {"f": lambda: LOGIN}}, "of type function in 'f'"),
    ],
)
def test_options_of_another_form_are_refused_without_their_values(case: Any) -> None:
    options, said = case
    with pytest.raises(Exception, match=f"url_options maps.*{said}") as caught:
        DataOpsResource(url_options=options)
    assert "SECRET" not in str(caught.value)


@each("name", ["url_options", "storage_options"])
def test_a_resource_gives_options_only_in_a_run(
    server: Server, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    logins = Logins(server=server.url, login=LOGIN)
    resource = DataOpsResource(root="s3://bucket/root", **{name: logins})
    assert hash(resource) == hash(resource)
    assert LOGIN not in repr(resource)
    if name == "storage_options":
        with pytest.raises(ConfigurationError, match="storage_options.*Logins"):
            _ = resource.root_path


def test_a_folder_of_a_store_is_no_folder_for_copies(
    server: Server, tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    dataops = DataOpsResource(root=str(tmp_path), file_cache="s3://bucket/kept")

    @dg.asset
    def asked(dataops: DataOpsResource) -> None: ...

    result = dg.materialize(
        [asked], resources={"dataops": dataops}, instance=instance, raise_on_error=False
    )
    assert not result.success
    assert "file_cache" in "\n".join(str(entry) for entry in instance.all_logs(result.run_id))


def test_the_fields_precede_the_settings_and_these_are_the_same_afterwards(
    tmp_path: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATAOPS_FILE_CACHE_GB", "7")
    seen: list[Any] = []

    @dg.asset
    def asked(dataops: DataOpsResource) -> None:
        seen.append((dict(config.logins()), config.file_cache, config.file_cache_gb))

    config.url_options.update({"http://a": {"n": 1}, "http://b": {"n": 2}})
    try:
        dataops = DataOpsResource(
            url_options={"http://b": {"n": 3}}, file_cache=str(tmp_path), root=str(tmp_path)
        )
        dg.materialize([asked], resources={"dataops": dataops}, instance=instance)
        assert seen == [({"http://a": {"n": 1}, "http://b": {"n": 3}}, tmp_path, 7.0)]
        assert config.logins()["http://b"] == {"n": 2}
    finally:
        config.url_options.clear()
