"""Tests of the example of elastic training: killed, it goes on with other ranks and workers."""

import json
import signal
from pathlib import Path

import pytest

from tests.warm_python import SCRIPT

EXAMPLE = Path(__file__).parent.parent / "examples" / "elastic_training.py"
STEPS = 30


@pytest.fixture
def train(tmp_path, warm_dagster):
    def trained(folder, ranks, workers, *more):
        options = ["--ranks", str(ranks), "--workers", str(workers), *map(str, more)]
        return warm_dagster.ended(SCRIPT, str(EXAMPLE), str(folder), *options, folder=tmp_path)

    return trained


def notes(folder):
    return [json.loads(line) for line in (folder / "trained.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_killed_again_and_again_it_trains_the_same_model_with_other_ranks_and_workers(
    train, tmp_path
):
    undisturbed = train(tmp_path / "undisturbed", 1, 0)
    assert undisturbed.status == 0, undisturbed.errors
    weights = [float(one) for one in undisturbed.output.split()[1:]]
    assert weights == pytest.approx([2.0, -1.0, 0.5], abs=0.2)

    folder = tmp_path / "killed"
    for die_at, ranks, workers in ((3, 2, 1), (10, 3, 0), (11, 1, 2), (20, 4, 0), (24, 2, 0)):
        killed = train(folder, ranks, workers, "--die-at", die_at)
        assert killed.status == -signal.SIGKILL, killed.errors
    finished = train(folder, 3, 0)

    assert finished.output == undisturbed.output, finished.errors
    expected = notes(tmp_path / "undisturbed")
    assert notes(folder) == expected
    assert len(expected) == STEPS
    epochs = [[n for step in expected[at : at + 10] for n in step] for at in range(0, STEPS, 10)]
    assert all(sorted(epoch) == list(range(240)) for epoch in epochs)
