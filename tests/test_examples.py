"""Tests that the examples run unchanged, and load in Dagster."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*/definitions.py"))
MINI = ROOT / "examples" / "mini_data_loader" / "definitions.py"


def run(folder: Path, *command: str) -> str:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DATAOPS_")}
    home = folder / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    finished = subprocess.run(
        [sys.executable, "-W", "ignore", *command],
        cwd=folder,
        env=environment | {"DAGSTER_HOME": str(home), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr[-4000:]
    return finished.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.parent.name)
def test_an_example_loads_in_dagster(example: Path, tmp_path: Path) -> None:
    run(tmp_path, "-m", "dagster", "definitions", "validate", "-f", str(example))


def test_the_mini_data_loader_gives_x_and_y_as_two_assets(tmp_path: Path) -> None:
    printed = run(tmp_path, str(MINI))
    found = {
        name: ast.literal_eval(records)
        for name, _, records in (line.partition(": ") for line in printed.splitlines())
    }

    rows = [tuple(row) for batch in found["mini_reader"] for row in batch["values"]]
    x = [number for batch in found["x"] for number in batch["x"]]
    y = [number for batch in found["y"] for number in batch["y"]]
    assert [len(batch["values"]) for batch in found["mini_reader"]] == [4, 4, 4, 4, 2]
    assert list(zip(x, y, strict=True)) == rows
    plain = [
        tuple(map(float, line.split(",")))
        for name in ("part-000", "part-001")
        for line in (MINI.parent / name).read_text().splitlines()
    ]
    assert sorted(rows) == sorted(plain)
    assert rows != plain
    assert found["line"] == [{"slope": 2.006, "intercept": 0.01}]
