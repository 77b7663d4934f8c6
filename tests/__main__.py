"""Runs all tests in four processes: those of the folders that take longest beside the others.

``python -m tests`` takes pytest's options, and prints what the other processes said when all have
ended. ``python -m pytest`` runs the same tests one after another.
"""

import subprocess
import sys
import tempfile
from contextlib import ExitStack
from typing import IO

import pytest

# Most of each is waiting, so that four processes take two cores. What they take: see --durations.
BESIDE = (("tests/end_to_end",), ("tests/faults",), ("tests/assets",))


class Beside:
    """pytest in a process of its own.

    Args:
        command: Of pytest, with options.
        folders: What it runs.
        output: Where its words go.
    """

    def __init__(self, command: list[str], folders: tuple[str, ...], output: IO[bytes]) -> None:
        self._title = f"\nBeside them, {' and '.join(folders)}:\n\n"
        self._output = output
        cache = f"cache_dir=.pytest_cache/beside/{folders[0]}"
        self.process = subprocess.Popen(
            [*command, "-o", cache, *folders], stdout=output, stderr=subprocess.STDOUT
        )

    def show(self) -> None:
        """Print what it said."""
        self._output.seek(0)
        sys.stdout.write(self._title + self._output.read().decode(errors="replace"))
        sys.stdout.flush()


def main(options: list[str]) -> int:
    """Run all; return 0 if each passed, or some did and the options left no test to the others."""
    command = [sys.executable, "-m", "pytest", *options]
    with ExitStack() as files:
        beside = [
            Beside(command, folders, files.enter_context(tempfile.TemporaryFile()))
            for folders in BESIDE
        ]
        try:
            apart = [f"--ignore={folder}" for folders in BESIDE for folder in folders]
            codes = {subprocess.call([*command, *apart])}
            codes |= {one.process.wait() for one in beside}
        except BaseException:
            for one in beside:
                one.process.terminate()
            raise
        for one in beside:
            one.show()
    if len(codes) > 1:
        codes.discard(pytest.ExitCode.NO_TESTS_COLLECTED)
    return max(codes, default=0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
