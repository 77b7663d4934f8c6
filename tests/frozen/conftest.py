"""Frozen folders, put where tests can use them."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dagster_dataops import config

HERE = Path(__file__).parent
VERSIONS = sorted(path.name for path in HERE.iterdir() if (path / "times.json").exists())


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    """The version that wrote the folder."""
    return str(request.param)


@pytest.fixture
def thaw(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Path]]:
    """Return a function that puts frozen cases into a root, which is that of runs; they resume."""
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.chdir(tmp_path)
    frozen = HERE / version
    times = json.loads((frozen / "times.json").read_bytes())
    config.data_process_path, config.data_process_resume = tmp_path / "root", True

    def put(*cases: str) -> Path:
        for name in ("input.jsonl", "table.csv", *(f"root/{case}" for case in cases)):
            source = frozen / name
            if not source.exists() and name == "table.csv":
                continue
            target = tmp_path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
            else:
                shutil.copy(source, target)
        for name, at in times.items():
            if (tmp_path / name).is_file():
                os.utime(tmp_path / name, ns=(at, at))
        return tmp_path / "root"

    yield put
    config.data_process_path = config.data_process_resume = None
    config.clients.clear()
    for name in ("frozen_cases", "frozen_operators", "state_cases"):
        sys.modules.pop(name, None)
