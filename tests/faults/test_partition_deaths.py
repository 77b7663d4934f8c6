"""Workers and agents that die while they work on partitions, and disks that are full there."""

import errno
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops.errors import DatasetOperatorError, StorageError
from dagster_dataops.execution.runners import part_files, stages
from tests.execution.cluster.fixtures import Watched
from tests.execution.helpers import node, run
from tests.faults.cases import paired
from tests.faults.crashing import wait_until
from tests.faults.partitioned import OPERATORS, PartitionedCase, in_partitions

pytestmark = pytest.mark.slow

_forward = stages.StageOperator.forward
_LAST = {"exact": "decide", "top": "decide", "sort": "work", "group": "work", "merge": "work"}


def _killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _out_of_memory() -> None:
    bytearray(1 << 40)


def _act(patch: pytest.MonkeyPatch, act: Callable[[], None], once_in: Path | None) -> None:
    """Do something before the second task of each stage, or its only one."""

    def forward(self: Any, record: Any) -> Any:
        if record["number"] == 1 or type(self.task).__name__ == "_Join":
            if once_in is None:
                act()
            else:
                flag = once_in / type(self.task).__name__
                if not flag.exists():
                    flag.touch()
                    act()
        return _forward(self, record)

    patch.setattr(stages.StageOperator, "forward", forward)


@pytest.mark.parametrize("name", OPERATORS)
def test_a_worker_that_is_killed_once_in_each_stage_changes_no_byte(
    tmp_path: Path, name: str
) -> None:
    case = PartitionedCase(tmp_path, name)
    expected = case.result("alone")
    flags = tmp_path / "flags"
    flags.mkdir()
    with in_partitions() as patch:
        _act(patch, _killed, flags)
        assert case.result("killed", "process", _max_workers=2) == expected
    assert len(list(flags.iterdir())) >= 2


@pytest.mark.parametrize(
    ("name", "end"), paired(OPERATORS, [(_killed, "killed by"), (_out_of_memory, "Memory")])
)
def test_a_partition_that_always_ends_its_worker_is_an_error(
    tmp_path: Path, name: str, end: tuple[Callable[[], None], str]
) -> None:
    act, cause = end
    case = PartitionedCase(tmp_path, name)
    operator = OPERATORS[name].func.__name__
    with in_partitions() as patch:
        _act(patch, act, None)
        message = rf"\.{operator} failed on its dataset: .*{cause}.*lower max_memory_mb or"
        with pytest.raises(DatasetOperatorError, match=message):
            case.result("poisoned", "process", _max_workers=2)
    assert not node(tmp_path / "poisoned").result.exists()
    with in_partitions():
        found = case.result("poisoned", "process", _max_workers=2)
    assert found == case.result("alone")


@pytest.mark.parametrize("name", ["exact", "sort"])
def test_partitions_keep_to_the_memory_limit_of_workers(tmp_path: Path, name: str) -> None:
    case = PartitionedCase(tmp_path, name)
    options: dict[str, Any] = {"_max_workers": 2, "_max_worker_memory_mb": 64}
    with in_partitions() as patch:
        assert case.result("limited", "process", **options) == case.result("alone")
        _act(patch, lambda: bytearray(200 << 20) and None, None)
        with pytest.raises(DatasetOperatorError, match="memory limit of 64 MB"):
            case.result("over", "process", **options)


@pytest.mark.parametrize(("name", "files"), paired(["exact", "sort"], ["range-*", "[dw][eo]*ed-*"]))
def test_an_agent_that_is_killed_in_a_stage_changes_no_byte(
    tmp_path: Path, name: str, files: str
) -> None:
    case = PartitionedCase(tmp_path, name)
    expected = case.result("alone")
    cluster, killed = Watched(agents=2, cpus_per_agent=1), threading.Event()

    def kill() -> None:
        wait_until(lambda: any((tmp_path / "away").rglob(files)), 60, files)
        for agent in cluster.alive()[:1]:
            agent.kill()
        killed.set()

    with in_partitions():
        thread = threading.Thread(target=kill)
        thread.start()
        run(OPERATORS[name](), case.inputs, node(tmp_path / "away"), cluster=cluster)
        thread.join()
    assert killed.is_set()
    assert node(tmp_path / "away").result.read_bytes() == expected


@pytest.mark.parametrize(("name", "mode"), paired(OPERATORS, ["single", "process"]))
def test_a_full_disk_in_a_stage_is_a_clear_error_and_the_run_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, mode: str
) -> None:
    case = PartitionedCase(tmp_path, name)
    expected = case.result("alone")
    draft_of = part_files.draft_of

    class FullDisk:
        def __init__(self, path: Path) -> None:
            self._path = path

        def open(self, mode: str) -> Any:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))

    for file in ("range-000001", "000003"):
        full = lambda path, file=file: FullDisk(path) if file in path.name else draft_of(path)  # noqa: E731
        with in_partitions(), monkeypatch.context() as patch:
            patch.setattr(part_files, "draft_of", full)
            with pytest.raises(
                StorageError, match=r"cannot write: No space left on device"
            ) as told:
                case.result("full", mode)
        assert str(told.value).count("that a run has finished are kept") == 1
        assert not node(tmp_path / "full").result.exists()
    with in_partitions():
        assert case.result("full", mode) == expected
    assert not node(tmp_path / "full").checkpoints.exists()
