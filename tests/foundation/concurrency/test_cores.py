import math
import os
from pathlib import Path

import pytest

from dagster_dataops.foundation.concurrency import cores
from dagster_dataops.operators.options.concurrency_modes import MODES


def _files(root: Path, files: dict[str, str]) -> tuple[Path, Path]:
    """Write the files of control groups; return where membership and hierarchies are."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root / "membership", root / "cgroup"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, math.inf),
        ({"membership": "0::/\n"}, math.inf),
        ({"membership": "0::/\n", "cgroup/cpu.max": "max 100000\n"}, math.inf),
        ({"membership": "0::/\n", "cgroup/cpu.max": "150000 100000\n"}, 1.5),
        ({"membership": "0::/a/b\n", "cgroup/a/b/cpu.max": "400000 100000\n"}, 4),
        (
            {
                "membership": "0::/a/b\n",
                "cgroup/a/b/cpu.max": "400000 100000\n",
                "cgroup/a/cpu.max": "50000 100000\n",
            },
            0.5,
        ),
        ({"membership": "0::/../x\n", "cgroup/cpu.max": "300000 100000\n"}, 3),
        (
            {
                "membership": "3:memory:/m\n2:cpu,cpuacct:/docker/1\n1:name=systemd:/\n",
                "cgroup/cpu,cpuacct/cpu.cfs_quota_us": "250000\n",
                "cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            },
            2.5,
        ),
        (
            {
                "membership": "1:cpu:/job\n0::/\n",
                "cgroup/cpu/job/cpu.cfs_quota_us": "-1\n",
                "cgroup/cpu/job/cpu.cfs_period_us": "100000\n",
            },
            math.inf,
        ),
        ({"membership": "0::/\n", "cgroup/cpu.max": "nonsense\n"}, math.inf),
    ],
)
def test_the_least_quota_of_all_groups_counts(
    tmp_path: Path, files: dict[str, str], expected: float
) -> None:
    assert cores.quota(*_files(tmp_path, files)) == expected


@pytest.mark.parametrize(("allowed", "workers"), [("50000", 1), ("100000", 1), ("max", None)])
def test_a_quota_limits_the_default_number_of_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: str, workers: int | None
) -> None:
    files = {"membership": "0::/\n", "cgroup/cpu.max": f"{allowed} 100000\n"}
    membership, hierarchies = _files(tmp_path, files)
    monkeypatch.setattr(cores, "_MEMBERSHIP", membership)
    monkeypatch.setattr(cores, "_HIERARCHIES", hierarchies)
    cores._quota.cache_clear()
    try:
        expected = workers or len(os.sched_getaffinity(0))
        assert MODES["process"].default_workers() == cores.usable_cores() == expected
    finally:
        cores._quota.cache_clear()
