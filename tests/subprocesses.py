"""Processes that no test leaves behind."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import AnyStr


@contextmanager
def killed_at_exit(
    process: "subprocess.Popen[AnyStr]",
) -> Iterator["subprocess.Popen[AnyStr]"]:
    """Kill a process after the test, even if the test fails, and close its pipes.

    If it leads a process group, the whole group is killed.
    """
    leads = os.getpgid(process.pid) == process.pid
    with process:
        try:
            yield process
        finally:
            if leads:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            process.kill()
