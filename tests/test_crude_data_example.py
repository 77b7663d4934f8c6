"""Tests of the crude data example: killed, it makes the same packs and learns the same."""

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.warm_python import SCRIPT, Ended, WarmPython

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "crude_data" / "definitions.py"

# Reads pictures slowly, and kills its process when records are settled in the journal.
_KILLED_WHILE_IT_COOKS = """
import os, pathlib, runpy, signal, sys, time
from dagster_dataops.training.filestores.tar_store import TarStore
from tests.journal_sizes import size_of_journals

home, example = pathlib.Path(sys.argv[1]), sys.argv[2]
read, sizes = TarStore.read, []

def dying(store, name):
    sizes.append(size_of_journals(home / "plain" / "crude_data" / "cooked"))
    if len(sizes) > 100:
        if sizes[-1] > sizes[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.05)
    return read(store, name)

TarStore.read = dying
sys.argv = [example]
runpy.run_path(example, run_name="__main__")
"""
_MATERIALIZE = """
import json, runpy, sys
defs = runpy.run_path(sys.argv[1])["defs"]
quiet = {"loggers": {"console": {"config": {"log_level": "WARNING"}}}}
run = defs.resolve_job_def("crude_data_pipeline").execute_in_process(run_config=quiet)
assert run.success
shown = {}
for event in run.get_asset_materialization_events():
    found = event.materialization
    shown[found.asset_key.path[-1]] = {k: str(v.value) for k, v in found.metadata.items()}
print(json.dumps(shown))
"""


Run = Callable[..., Ended]


@pytest.fixture(scope="module")
def run(warm_dagster: WarmPython) -> Run:
    """Return a function that runs code with arguments in a folder with a home."""

    def ended(folder: Path, code: str, *arguments: str) -> Ended:
        home = folder / "home"
        home.mkdir(parents=True, exist_ok=True)
        (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
        own = {"DAGSTER_HOME": str(home), "XDG_CACHE_HOME": str(folder / "cache")}
        return warm_dagster.ended(code, *arguments, folder=folder, **own)

    return ended


def facts_of(node: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((node / f"{node.name}_results.jsonl.json").read_bytes())
    return found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, run: Run) -> tuple[Path, str]:
    """Return the home and the output of a run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("calm")
    finished = run(folder, SCRIPT, str(EXAMPLE))
    assert finished.status == 0, finished.errors[-4000:]
    return folder / "home", finished.output


def test_the_model_learns_which_words_are_dark(undisturbed: tuple[Path, str]) -> None:
    assert undisturbed[1].splitlines()[-1] == (
        "from dark to light: black dark dim grey pale bright white"
    )


def test_killed_while_it_cooks_and_trains_it_makes_the_same_packs_and_model(
    undisturbed: tuple[Path, str], run: Run, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    killed = run(tmp_path, _KILLED_WHILE_IT_COOKS, str(home), str(EXAMPLE))
    assert killed.status == -signal.SIGKILL, killed.errors[-4000:]
    assert not (home / "plain" / "crude_data" / "packed").exists()
    for step in (1, 40):
        killed = run(tmp_path, SCRIPT, str(EXAMPLE), "--die-at", str(step))
        assert killed.status == -signal.SIGKILL, killed.errors[-4000:]
    finished = run(tmp_path, SCRIPT, str(EXAMPLE))

    assert finished.output == undisturbed[1], finished.errors[-4000:]
    cooked = facts_of(home / "plain" / "crude_data" / "cooked")
    assert 0 < cooked["resumed"] < 1000
    expected = undisturbed[0]
    for node in ("cooked", "packed"):
        result = Path("plain") / "crude_data" / node / f"{node}_results.jsonl"
        whole = (expected / result).read_bytes().replace(bytes(expected), b"HOME")
        assert (home / result).read_bytes().replace(bytes(home), b"HOME") == whole
    models = [json.loads((one / "model" / "model.json").read_bytes()) for one in (home, expected)]
    assert json.dumps(models[0]["weights"]) == json.dumps(models[1]["weights"])
    assert [one["step"] for one in models] == [models[0]["step"]] * 2


def test_the_index_shows_how_much_each_dataset_gave(run: Run, tmp_path: Path) -> None:
    finished = run(tmp_path, _MATERIALIZE, str(EXAMPLE))
    assert finished.status == 0, finished.errors[-4000:]
    shown = json.loads(finished.output)

    index = shown["mixture_index"]
    assert index["dagster_dataops/share_captions"] == "0.719"
    assert index["dagster_dataops/share_questions"] == "0.281"
    table = index["dagster_dataops/leaves"]
    assert "| captions | 70.0 % | 71.9 % | 719 |" in table
    assert int(shown["packed"]["dagster/row_count"]) > 0
