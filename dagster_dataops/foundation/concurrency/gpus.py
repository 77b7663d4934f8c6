"""The GPUs of this machine, as `CUDA_VISIBLE_DEVICES` names them."""

import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final

VISIBLE: Final = "CUDA_VISIBLE_DEVICES"
_DEVICES: Final = Path("/dev")
_COMMAND: Final = ("nvidia-smi", "--query-gpu=index", "--format=csv,noheader")
_COMMAND_SECONDS: Final = 30.0
LOOKED_FOR: Final = f"{VISIBLE}, nvidia-smi and /dev/nvidia0"


def visible_gpus(devices: Path = _DEVICES) -> list[str]:
    """Return the names of the GPUs that this process may use; none without GPUs.

    They are those in ``CUDA_VISIBLE_DEVICES`` if it is set, else the numbers that ``nvidia-smi``
    lists, else those of the device files ``nvidia0``, ``nvidia1``, ...

    Args:
        devices: The folder of the device files.
    """
    chosen = os.environ.get(VISIBLE)
    if chosen is not None:
        return _until_invalid(chosen.split(","))
    with suppress(OSError, subprocess.SubprocessError):
        listed = subprocess.run(  # noqa: S603 - a fixed command
            _COMMAND, capture_output=True, check=True, text=True, timeout=_COMMAND_SECONDS
        )
        return listed.stdout.split()
    numbers = (path.name.removeprefix("nvidia") for path in devices.glob("nvidia[0-9]*"))
    return sorted(filter(str.isdecimal, numbers), key=int)


def _until_invalid(names: list[str]) -> list[str]:
    """Return the names before the first one that is empty or negative, as CUDA does."""
    gpus = []
    for name in map(str.strip, names):
        if not name or name.startswith("-"):
            break
        gpus.append(name)
    return gpus
