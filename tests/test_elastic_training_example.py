"""Tests of the example of elastic training: killed, it goes on with other ranks and workers."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent.parent / "examples" / "elastic_training.py"
STEPS = 30


def train(folder, ranks, workers, *more):
    options = ["--ranks", str(ranks), "--workers", str(workers), *map(str, more)]
    command = [sys.executable, str(EXAMPLE), str(folder), *options]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def notes(folder):
    return [json.loads(line) for line in (folder / "trained.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_killed_again_and_again_it_trains_the_same_model_with_other_ranks_and_workers(tmp_path):
    undisturbed = train(tmp_path / "undisturbed", 1, 0)
    assert undisturbed.returncode == 0, undisturbed.stderr
    weights = [float(one) for one in undisturbed.stdout.split()[1:]]
    assert weights == pytest.approx([2.0, -1.0, 0.5], abs=0.2)

    folder = tmp_path / "killed"
    for die_at, ranks, workers in ((3, 2, 1), (10, 3, 0), (11, 1, 2), (20, 4, 0), (24, 2, 0)):
        killed = train(folder, ranks, workers, "--die-at", die_at)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
    finished = train(folder, 3, 0)

    assert finished.stdout == undisturbed.stdout, finished.stderr
    expected = notes(tmp_path / "undisturbed")
    assert notes(folder) == expected
    assert len(expected) == STEPS
    epochs = [[n for step in expected[at : at + 10] for n in step] for at in range(0, STEPS, 10)]
    assert all(sorted(epoch) == list(range(240)) for epoch in epochs)
