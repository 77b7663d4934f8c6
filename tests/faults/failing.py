"""Disks that fail: system calls that return errors, and small disks that really are full."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest


class Failing:
    """Replaces a function of ``os`` and refuses some of its calls, from one call on.

    Args:
        function: The replaced function; its first argument is a path or a descriptor.
        name: The end of the names of files whose calls are refused.
        spared: The number of these calls that succeed first.
        number: The error's number.
        in_workers: Whether only calls of forked processes are refused.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        spared: int,
        number: int,
        *,
        in_workers: bool,
    ) -> None:
        self._parent = os.getpid() if in_workers else 0
        self._function = function
        self._name = name
        self._spared = spared
        self._number = number

    def __call__(self, where: Any, *args: Any, **kwargs: Any) -> Any:
        if os.getpid() != self._parent and _path_of(where).endswith(self._name):
            self._spared -= 1
            if self._spared < 0:
                raise OSError(self._number, os.strerror(self._number), str(where))
        return self._function(where, *args, **kwargs)


def _path_of(where: Any) -> str:
    if not isinstance(where, int):
        return os.fspath(where)
    try:
        return str(Path(f"/proc/self/fd/{where}").readlink())
    except OSError:
        return ""


@contextmanager
def failing(
    call: str, name: str, number: int, spared: int = 0, *, in_workers: bool = False
) -> Iterator[None]:
    """Let ``os.<call>`` fail on some files inside a ``with`` block, forked workers included."""
    with pytest.MonkeyPatch.context() as patch:
        function = getattr(os, call)
        refusing = Failing(function, name, spared, number, in_workers=in_workers)
        patch.setattr(os, call, refusing)
        yield


class SmallDisk:
    """A small file system in memory."""

    def __init__(self, path: Path, options: str) -> None:
        self.path = path
        path.mkdir()
        given = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)]
        if subprocess.run(given, capture_output=True, check=False).returncode:
            pytest.skip("only root can mount a small disk")

    def change(self, options: str) -> None:
        """Change the limits."""
        given = ["mount", "-o", f"remount,{options}", str(self.path)]
        subprocess.run(given, check=True, capture_output=True)

    def close(self) -> None:
        """Unmount it."""
        with suppress(subprocess.CalledProcessError):
            subprocess.run(["umount", "-l", str(self.path)], check=True, capture_output=True)


@contextmanager
def small_disk(path: Path, options: str) -> Iterator[SmallDisk]:
    """Mount a small disk for a ``with`` block."""
    disk = SmallDisk(path, options)
    try:
        yield disk
    finally:
        disk.close()
