"""Fixtures for the tests of the assets."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from dagster.components.testing.utils import create_defs_folder_sandbox

from tests.assets.component_project import Project
from tests.assets.helpers import numbered, write_jsonl
from tests.assets.memory_databases import prepared_databases
from tests.registries import OperatorRegistry


@pytest.fixture(scope="session", autouse=True)
def _migrations_read_once() -> Iterator[None]:
    """Keep Dagster's migrations of databases in memory: every instance reads all of them."""
    read = ScriptDirectory.from_config
    known: dict[str | None, ScriptDirectory] = {}

    def from_config(config: Config) -> ScriptDirectory:
        location = config.get_main_option("script_location")
        if location not in known:
            known[location] = read(config)
        return known[location]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ScriptDirectory, "from_config", from_config)
        yield


@pytest.fixture(scope="session", autouse=True)
def _databases_prepared_once() -> Iterator[None]:
    """Let the instances in memory share tables and statements."""
    with prepared_databases():
        yield


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """An instance in memory."""
    with dg.DagsterInstance.ephemeral() as ephemeral:
        yield ephemeral


@pytest.fixture(scope="session")
def _new_instance(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an instance without runs, to be copied: making its databases takes long."""
    folder = tmp_path_factory.mktemp("new_instance")
    with dg.DagsterInstance.local_temp(str(folder)):
        return folder


@pytest.fixture
def stored(tmp_path: Path, _new_instance: Path) -> Iterator[dg.DagsterInstance]:
    """An instance on disk."""
    folder = tmp_path / "instance"
    shutil.copytree(_new_instance, folder)
    with dg.DagsterInstance.local_temp(str(folder)) as instance:
        yield instance


@pytest.fixture
def records(tmp_path: Path) -> Callable[[int], Path]:
    """A jsonl file of as many records."""

    def write(count: int) -> Path:
        return write_jsonl(tmp_path / "texts.jsonl", list(numbered(count)))

    return write


@pytest.fixture
def upper(registry: OperatorRegistry) -> Any:
    """An operator that raises texts to capital letters."""

    @registry("data.text", _concurrency_mode="thread")
    def upper(record: dict) -> None:
        record["text"] = record["text"].upper()

    return upper


@pytest.fixture
def project() -> Iterator[Project]:
    """A project with a defs folder."""
    with create_defs_folder_sandbox() as sandbox:
        yield Project(sandbox)
