"""A cooked asset is killed in the middle; the next materialization goes on where it ended."""

import json
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.training.filestores.shards import samples, write_tar
from tests.warm_python import SCRIPT, Ended

pytestmark = pytest.mark.slow

_COUNT = 300
_SCRIPT = """
import os, pathlib, signal, sys, time

os.environ.setdefault("RUN", str(os.getpid()))  # workers inherit it
home, mode = pathlib.Path(sys.argv[1]), sys.argv[2]

from dagster_dataops import (
    DataOpsResource, TextSample, basic_sample_keys, build_definitions, cook, crude, pipeline
)
from dagster_dataops.training.filestores.tar_store import TarStore
from tests.journal_sizes import size_of_journals

def dying(store, name):
    time.sleep(0.02)
    sizes.append(size_of_journals(home / "out" / "docs" / "cooked"))
    if len(sizes) > 20 and sizes[-1] > sizes[20]:  # more records are settled
        os.kill(int(os.environ["RUN"]), signal.SIGKILL)
    return read(store, name)

def cook_text(sample, media):
    with (home / "cooked.log").open("a") as log:
        log.write(f"{os.getpid()} {sample['__key__']}\\n")
    if sample["__key__"] == "k00007":
        raise ValueError("seven")
    file = media.get(f"{sample['__key__']}.txt", sample)
    text = sample["txt"].decode() + " + " + file.decode()
    return TextSample(**basic_sample_keys(sample), text=text)

read, sizes = TarStore.read, []
if sys.argv[3] == "deadly":  # outside of the cooker, whose code stays the same
    TarStore.read = dying
with pipeline("docs") as ppl:
    ppl.cooked = cook(cook_text, _concurrency_mode=mode, _max_workers=2)
source = crude(home / "data" / "*.tar", aux={"media": str(home / "data")})
defs = build_definitions(ppl, source=source, resource=DataOpsResource(root=str(home / "out")))

if __name__ == "__main__":
    quiet = {"loggers": {"console": {"config": {"log_level": "ERROR"}}}}
    assert defs.resolve_job_def("docs_pipeline").execute_in_process(run_config=quiet).success
"""


@pytest.fixture
def run(tmp_path, warm_dagster):
    script = tmp_path / "cooking.py"
    script.write_text(_SCRIPT)

    def started(home: Path, mode: str, how: str) -> Ended:
        (home / "dagster").mkdir(parents=True, exist_ok=True)
        (home / "dagster" / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
        for shard in range(3):
            path = home / "data" / f"d-{shard}.tar"
            if not path.exists():
                write_tar(path, samples("k", shard * _COUNT // 3, _COUNT // 3))
        return warm_dagster.ended(
            SCRIPT,
            str(script),
            str(home),
            mode,
            how,
            folder=tmp_path,
            DAGSTER_HOME=str(home / "dagster"),
            XDG_CACHE_HOME=str(home / "cache"),
        )

    return started


def node_of(home: Path) -> Path:
    return home / "out" / "docs" / "cooked"


def facts_of(home: Path) -> dict:
    return json.loads((node_of(home) / "cooked_results.jsonl.json").read_bytes())


@pytest.mark.parametrize("mode", ["single", "thread", "process"])
def test_a_killed_asset_goes_on_and_cooks_no_settled_sample_again(run, tmp_path, mode):
    calm, home = tmp_path / "calm", tmp_path / "home"
    assert run(calm, mode, "calmly").status == 0
    killed = run(home, mode, "deadly")
    assert killed.status == -signal.SIGKILL, killed.errors[-4000:]
    assert not (node_of(home) / "cooked_results.jsonl").exists()
    before = len((home / "cooked.log").read_text().split("\n"))
    finished = run(home, mode, "calmly")
    assert finished.status == 0, finished.errors[-4000:]

    facts = facts_of(home)
    cooked = Counter(line.split()[1] for line in (home / "cooked.log").read_text().splitlines())
    result = (node_of(home) / "cooked_results.jsonl").read_bytes()
    whole = (node_of(calm) / "cooked_results.jsonl").read_bytes()
    assert result.replace(bytes(home), b"HOME") == whole.replace(bytes(calm), b"HOME")
    assert 0 < facts["resumed"] < _COUNT
    assert 0 < before < _COUNT
    assert len(cooked) == _COUNT
    assert sum(cooked.values()) <= 2 * _COUNT - facts["resumed"]
    assert (facts["rows_out"], facts["failed"]) == (_COUNT - 1, 1)
