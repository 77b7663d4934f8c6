import os
from pathlib import Path

import pytest

from dagster_dataops.foundation.concurrency.gpus import visible_gpus


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of the only nvidia-smi; there is none at first."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    return tmp_path / "bin" / "nvidia-smi"


def write_command(command: Path, code: str) -> None:
    command.write_text(f"#!/bin/sh\n{code}\n")
    command.chmod(0o755)


@pytest.mark.parametrize(
    ("value", "gpus"),
    [
        ("0,1", ["0", "1"]),
        (" 3 , GPU-8a1b,MIG-2/1/0", ["3", "GPU-8a1b", "MIG-2/1/0"]),
        ("2,-1,3", ["2"]),
        ("0,,1", ["0"]),
        ("", []),
        ("-1", []),
    ],
)
def test_the_variable_says_which_gpus_are_visible(
    command: Path, monkeypatch: pytest.MonkeyPatch, value: str, gpus: list[str]
) -> None:
    write_command(command, "echo 7")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    assert visible_gpus() == gpus


def test_without_it_the_command_of_the_driver_says_it(command: Path, tmp_path: Path) -> None:
    write_command(command, "printf '0\\n1\\n'")
    assert visible_gpus(tmp_path) == ["0", "1"]


@pytest.mark.parametrize("code", [None, "echo no devices were found; exit 6"])
def test_without_both_device_files_are_counted(
    command: Path, tmp_path: Path, code: str | None
) -> None:
    if code is not None:
        write_command(command, code)
    assert visible_gpus(tmp_path) == []
    for name in ("nvidia0", "nvidia10", "nvidia2", "nvidiactl", "nvidia-uvm", "nvidia0x"):
        (tmp_path / name).touch()
    assert visible_gpus(tmp_path) == ["0", "2", "10"]
    assert "CUDA_VISIBLE_DEVICES" not in os.environ
