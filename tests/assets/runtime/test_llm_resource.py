"""Tests of dagster_dataops.assets.runtime.llm_resource."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import (
    DataOpsResource,
    LLMOperator,
    LLMResource,
    Price,
    build_definitions,
    pipeline,
)
from dagster_dataops.errors import RunStoppedError
from tests.assets.helpers import metadata_of
from tests.models.running_server import RunningServer, running_server
from tests.registries import OperatorRegistry


@pytest.fixture
def server() -> Iterator[RunningServer]:
    with running_server() as started:
        yield started


@pytest.fixture
def echo(registry: OperatorRegistry) -> Any:
    @registry("data.demo")
    class Echo(LLMOperator):
        """Repeats a text."""

        prompt = "{{ text }}"

    return Echo


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "docs.jsonl"
    path.write_text("".join(f'{{"text": "number {n}"}}\n' for n in range(12)))
    return path


def executed(operator: Any, source: Path, root: Path, **clients: LLMResource) -> Any:
    with pipeline("cards") as ppl:
        ppl.city = operator
    definitions = build_definitions(
        ppl, source=str(source), resource=DataOpsResource(root=str(root)), clients=clients
    )
    job = definitions.resolve_job_def("cards_pipeline")
    with dg.instance_for_test() as instance:
        return job.execute_in_process(instance=instance)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["async", "process"])
def test_operators_use_the_client_and_the_cost_is_on_the_page(
    echo: Any,
    source: Path,
    root: Path,
    server: RunningServer,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
):
    monkeypatch.setenv("A_KEY", "key of the environment")
    client = LLMResource(
        base_url=server.address,
        api_key=dg.EnvVar("A_KEY"),
        prices={"rule": Price(input=1.0, output=4.0)},
    )

    done = executed(
        echo(model="rule", _concurrency_mode=mode, _max_workers=2), source, root, default=client
    )

    stats = server.stats()
    assert stats["authorizations"] == ["Bearer key of the environment"]
    assert stats["answered"] == 12
    shown = metadata_of(done, "cards", "city")
    assert shown["calls"] == 12
    assert shown["tokens_out"] == stats["tokens_out"]
    assert shown["cost"] == pytest.approx((stats["tokens_in"] + 4 * stats["tokens_out"]) / 1e6)


@pytest.mark.slow
def test_estimated_costs_are_on_the_page_as_such(
    echo: Any, source: Path, root: Path, server: RunningServer
):
    source.write_text('{"text": "[[fault:nousage]] a"}\n{"text": "b"}\n')
    client = LLMResource(base_url=server.address, prices={"rule": Price(1.0, 4.0)})

    done = executed(echo(model="rule"), source, root, default=client)

    shown = metadata_of(done, "cards", "city")
    assert shown["calls_without_usage"] == 1
    assert 0 < shown["tokens_estimated"] < shown["tokens_in"] + shown["tokens_out"]
    assert 0 < shown["cost_estimated"] < shown["cost"]


@pytest.mark.slow
def test_a_refused_key_fails_the_run_without_error_rows(
    echo: Any, source: Path, root: Path, server: RunningServer
):
    source.write_text('{"text": "[[fault:401]]"}\n' * 300)

    with pytest.raises(RunStoppedError, match="AuthenticationFailed"):
        executed(echo(model="rule"), source, root, default=LLMResource(base_url=server.address))

    assert server.stats()["requests"] <= 200
    assert not list(root.rglob("*_error.jsonl"))


def test_resources_do_not_show_their_secrets():
    assert "sk-1" not in repr(LLMResource(api_key="sk-1"))
    assert "sk-1" not in repr(DataOpsResource(storage_options={"secret_access_key": "sk-1"}))


def test_prices_are_plain_values_in_the_launchpad():
    resource = LLMResource(prices={"a": Price(1.0), "b": {"input": 2.0, "output": 3.0}})

    assert json.loads(json.dumps(resource.prices)) == {
        "a": {"input": 1.0, "output": 0.0},
        "b": {"input": 2.0, "output": 3.0},
    }
    assert resource.model_client.prices == {"a": Price(1.0), "b": Price(2.0, 3.0)}
    assert "LLMResource" in sys.modules[LLMResource.__module__].__doc__


def test_equal_clients_can_be_merged(echo: Any, source: Path, root: Path):
    merged = []
    for name in ("first", "second"):
        with pipeline(name) as ppl:
            setattr(ppl, f"{name}_echo", echo(model="rule"))
        client = LLMResource(base_url="http://localhost/v1", prices={"a": Price(1.0)})
        resource = DataOpsResource(root=str(root))
        merged.append(
            build_definitions(
                ppl, source=str(source), resource=resource, clients={"default": client}
            )
        )

    assert dg.Definitions.merge(*merged).resources
