"""Runs all tests in two processes: those of the Dagster face, which mostly wait, beside the others.

``python -m tests`` takes pytest's options, and prints what the second process said when both have
ended. ``python -m pytest`` runs the same tests one after another.
"""

import subprocess
import sys
import tempfile

import pytest

BESIDE = ("tests/assets", "tests/end_to_end")


def main(options: list[str]) -> int:
    """Run both; return 0 if both passed, or one did and the options left no test to the other."""
    command = [sys.executable, "-m", "pytest", *options]
    with tempfile.TemporaryFile() as output:
        apart = ["-o", "cache_dir=.pytest_cache/beside", *BESIDE]
        beside = subprocess.Popen([*command, *apart], stdout=output, stderr=subprocess.STDOUT)
        try:
            first = subprocess.call([*command, *(f"--ignore={folder}" for folder in BESIDE)])
            second = beside.wait()
        except BaseException:
            beside.terminate()
            raise
        output.seek(0)
        sys.stdout.write(f"\nBeside them, {' and '.join(BESIDE)}:\n\n")
        sys.stdout.write(output.read().decode(errors="replace"))
        sys.stdout.flush()
    codes = {first, second} - {pytest.ExitCode.OK}
    if len({first, second}) == 2:
        codes -= {pytest.ExitCode.NO_TESTS_COLLECTED}
    return max(codes, default=0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
