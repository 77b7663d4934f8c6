"""Tests of runs whose machines share a bucket and nothing else."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dagster_dataops import JsonlDataset, RunReport, config, load_result
from dagster_dataops.configuration import root_setting
from tests.execution.cluster.fixtures import Apart, input_of, of_another_user, works
from tests.execution.helpers import node, run
from tests.nodes import NodeFolder, ResumePolicy, Root
from tests.object_stores import SECRETS, s3_server

_MIXED = ["keep", "fail", "twice", "drop", "keep", "keep"]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    pytest.importorskip("obstore", reason="obstore is not installed")
    pytest.importorskip("moto.server", reason="moto is not installed")
    with s3_server() as address:
        yield address


@pytest.fixture
def bucket(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Set the environment of the machines; return the URL of a root."""
    for name, value in {**SECRETS, "AWS_ENDPOINT_URL": server}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MACHINES", str(tmp_path / "machines"))
    return f"s3://results/{tmp_path.name}"


def head(folder: Path, url: str) -> Root:
    """Return a root of results on a machine of its own."""
    of_another_user(folder)
    with config.temporary(data_process_scratch=folder):
        return root_setting("root", url)


def result(folder: Path, url: str, name: str = "works") -> tuple[bytes, bytes]:
    """Return result and error file of a node, as another machine reads them."""
    there = NodeFolder.of(head(folder, url) / name)
    content = load_result(there).path.read_bytes()
    return content, there.errors.read_bytes()


def at_home(tmp_path: Path, dataset: JsonlDataset) -> tuple[bytes, bytes]:
    """Return result and error file of a run without a bucket."""
    folder = node(tmp_path / "home")
    run(works(), dataset, folder)
    return folder.result.read_bytes(), folder.errors.read_bytes()


def away(folder: Path, url: str, dataset: JsonlDataset, **context: object) -> RunReport:
    """Run over agents that share nothing but the bucket with the head."""
    cluster = Apart(agents=2, cpus_per_agent=1)
    there = NodeFolder.of(head(folder, url) / "works")
    return run(works(seconds=0.001), dataset, there, cluster=cluster, **context)


def test_agents_put_their_outputs_in_the_bucket(tmp_path: Path, bucket: str) -> None:
    dataset = input_of(tmp_path, _MIXED * 50)

    away(tmp_path / "head", bucket, dataset, resume=ResumePolicy.AUTO)

    assert result(tmp_path / "reader", bucket) == at_home(tmp_path, dataset)
    assert not list((tmp_path / "machines").rglob("segment-*"))
