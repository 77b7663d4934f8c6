import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops.data import data_register
from dagster_dataops.errors import ClusterError
from tests.execution.helpers import node, run, run_over, second_thread, write_input

_VISIBLE = "CUDA_VISIBLE_DEVICES"
_SECONDS = 60.0
HOW = pytest.mark.parametrize("spawned", [False, True], ids=["forked", "spawned"])


@data_register("data.gpu_tests", _concurrency_mode="process")
def sees(record: dict, folder: str = "", workers: int = 1, dies: int = -1) -> dict:
    """Note what this process sees, and wait until as many processes have done so."""
    gpus = os.environ.get(_VISIBLE)
    if record["n"] == dies and not Path(folder, "died").exists():
        Path(folder, "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    Path(folder, f"{os.getpid()}={gpus}").touch()
    end = time.monotonic() + _SECONDS
    while len(list(Path(folder).glob("*=*"))) < workers:
        assert time.monotonic() < end, "the other workers did not start"
        time.sleep(0.01)
    return {"gpus": gpus}


def seen(folder: Path) -> Counter[str]:
    """Return how many processes saw which GPUs."""
    return Counter(path.name.partition("=")[2] for path in folder.glob("*=*"))


@pytest.mark.slow
@HOW
@pytest.mark.parametrize(
    ("visible", "each", "expected"),
    [
        ("0,1", 1, ["0", "1"]),
        ("3,GPU-8a,5", 1.0, ["3", "GPU-8a", "5"]),
        ("0,1,2,3,4", 2, ["0,1", "2,3"]),
        ("0,1", 0.5, ["0", "0", "1", "1"]),
    ],
)
def test_each_worker_sees_gpus_of_its_own(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    spawned: bool,
    visible: str,
    each: float,
    expected: list[str],
) -> None:
    monkeypatch.setenv(_VISIBLE, visible)
    folder = tmp_path / "seen"
    folder.mkdir()
    operator = sees(
        folder=str(folder),
        workers=len(expected),
        _agents={"num_gpus": each},
        _max_workers=1,  # as for an agent on a cluster, it does not limit their number
    )
    with second_thread(spawned):
        run_over(tmp_path, operator, [{"n": n} for n in range(200)])
    assert seen(folder) == Counter(expected)
    assert os.environ[_VISIBLE] == visible


@pytest.mark.slow
@HOW
def test_a_worker_in_place_of_a_dead_one_sees_its_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spawned: bool
) -> None:
    monkeypatch.setenv(_VISIBLE, "4,7")
    operator = sees(folder=str(tmp_path), workers=2, dies=150, _agents={"num_gpus": 1})
    dataset = write_input(tmp_path / "input.jsonl", [{"n": n} for n in range(200)])
    with second_thread(spawned):
        report = run(operator, dataset, node(tmp_path))
    found = seen(tmp_path)
    assert set(found) == {"4", "7"}
    assert sum(found.values()) in {2, 3}  # the dead one may have noted an earlier record
    assert (report.manifest.rows_out, report.manifest.failed) == (200, 0)


@pytest.mark.slow
def test_workers_with_gpus_serve_no_other_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(_VISIBLE, "1")
    with second_thread(wanted=True):
        for number, settings in enumerate(({"_agents": {"num_gpus": 1}}, {})):
            folder = tmp_path / str(number)
            folder.mkdir()
            run_over(folder, sees(folder=str(folder), **settings), [{"n": 0}])
            monkeypatch.setenv(_VISIBLE, "9")
    assert (seen(tmp_path / "0"), seen(tmp_path / "1")) == (Counter(["1"]), Counter(["9"]))


@pytest.mark.parametrize(
    ("visible", "agents", "message"),
    [
        (
            "",
            {"num_gpus": 1},
            r"no cluster, and a worker takes 1 while .* shows no GPU; looked",
        ),
        ("0", {"num_gpus": 2}, r"takes 2 while this machine shows 1 GPU \(0\); looked for CUDA_"),
        ("0", {"num_gpus": 0}, r"no cluster: set cluster= .* or config.cluster. Without a cluster"),
        ("0", {"num_gpus": 1.5}, r"can only be \{'num_gpus': n\}"),
        ("0", {"num_gpus": 0.3}, r"can only be \{'num_gpus': n\}"),
        ("0", {"num_gpus": True}, r"can only be \{'num_gpus': n\}"),
        ("0", {"num_gpus": float("nan")}, r"can only be \{'num_gpus': n\}"),
        ("0", {"num_gpus": "1"}, r"can only be \{'num_gpus': n\}"),
        ("0", {"num_gpus": 1, "num_cpus": 2}, r"can only be \{'num_gpus': n\}"),
        ("0", {"memory": 1}, r"can only be \{'num_gpus': n\}"),
        ("0", {}, r"can only be \{'num_gpus': n\}"),
    ],
)
def test_what_one_machine_cannot_give_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, visible: str, agents: Any, message: str
) -> None:
    monkeypatch.setenv(_VISIBLE, visible)
    with pytest.raises(ClusterError, match=message):
        run_over(tmp_path, sees(folder=str(tmp_path), _agents=agents), [{"n": 0}])
    assert not node(tmp_path).result.exists()
