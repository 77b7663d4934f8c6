"""Tests of dagster_dataops.assets.runtime.environment_values, and of secrets of resources."""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._config import process_config
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster._serdes import serialize_value

from dagster_dataops import DataOpsResource, LLMResource, build_definitions
from dagster_dataops.assets.runtime.environment_values import from_environment, written_values
from dagster_dataops.errors import ConfigurationError
from tests.assets.helpers import Records, execute, pipeline_of
from tests.registries import OperatorRegistry

HIDDEN = "TOP-1"


def test_variables_are_read_at_any_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONE", "1")
    given = {"a": dg.EnvVar("ONE"), "b": [{"env": "ONE"}, {"c": (dg.EnvVar("ONE"), "x")}], "d": 2}

    assert from_environment("options", given) == {"a": "1", "b": ["1", {"c": ["1", "x"]}], "d": 2}
    assert written_values(given) == {"b": given["b"], "d": 2}


def test_a_variable_that_is_not_set_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"options\.a.*variable NOT_SET, which it names"):
        from_environment("options", {"a": dg.EnvVar("NOT_SET")})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["a"], "of type list"),
        ("x", "of type str"),
        ({"a": 1}, "of type int for 'a'"),
        ({1: "a"}, "of type str for 1"),
        ({"key": {"evn": HIDDEN}}, r"with the keys \['evn'\] for 'key'"),
        ({"key": {"env": HIDDEN, "x": "y"}}, r"with the keys \['env', 'x'\] for 'key'"),
        ({"key": {"env": 1}}, r"with the keys \['env'\] for 'key'"),
        ({"key": {}}, r"with the keys \[\] for 'key'"),
    ],
)
def test_options_of_another_form_are_refused_without_their_values(given: Any, said: str) -> None:
    wanted = f"maps names of options to texts or dg.EnvVar.*{said}"
    with pytest.raises(Exception, match=wanted) as caught:
        DataOpsResource(storage_options=given)
    assert HIDDEN not in str(caught.value)


@pytest.mark.parametrize("as_variable", [True, False], ids=["variables", "literals"])
def test_no_secret_is_in_the_definitions_the_launchpad_or_the_run(
    registry: OperatorRegistry,
    records: Records,
    root: Path,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
    as_variable: bool,
) -> None:
    @registry("data.text")
    def same(record: dict) -> dict:
        return record

    monkeypatch.setenv("KEY", HIDDEN)
    secret = dg.EnvVar("KEY") if as_variable else HIDDEN
    definitions = build_definitions(
        pipeline_of(same=same()),
        source=records(2),
        resource=DataOpsResource(root=str(root), storage_options={"secret_access_key": secret}),
        clients={"judge": LLMResource(api_key=secret)},
    )
    job = definitions.resolve_job_def("docs_pipeline")
    defaults = process_config(job.run_config_schema.config_type, {}).value
    result = execute(definitions, instance)

    assert HIDDEN not in serialize_value(RepositorySnap.from_def(definitions.get_repository_def()))
    assert "root" in defaults["resources"]["dataops"]["config"]
    assert HIDDEN not in str(defaults)
    assert HIDDEN not in str(instance.get_runs()[0].run_config)
    assert all(HIDDEN not in str(event) for event in result.all_events)


def test_a_code_server_without_the_secret_loads_the_definitions(tmp_path: Path) -> None:
    resource = DataOpsResource(
        root="memory://bucket/x", storage_options={"secret_access_key": dg.EnvVar("NOT_SET")}
    )
    assert resource.defined_root is not None
    with pytest.raises(ConfigurationError, match="NOT_SET"):
        _ = resource.root_path


def test_an_option_may_be_called_env() -> None:
    resource = DataOpsResource(root="memory://bucket/y", storage_options={"env": "test"})
    assert resource.root_path.name == "y"
