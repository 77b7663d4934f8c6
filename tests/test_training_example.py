"""Tests of the fine-tuning example: killed at every bucket, it trains on the same records."""

import importlib.util
import json
import signal
from collections import Counter
from pathlib import Path

import pytest

from dagster_dataops.testing import assert_resumes_anywhere
from tests.warm_python import SCRIPT

EXAMPLE = Path(__file__).parent.parent / "examples" / "training_stream.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("training_stream", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def train(tmp_path, warm_dagster):
    def trained(folder, *arguments):
        return warm_dagster.ended(SCRIPT, str(EXAMPLE), str(folder), *arguments, folder=tmp_path)

    return trained


@pytest.mark.slow
def test_killed_at_every_step_it_trains_on_the_same_buckets(train, tmp_path):
    undisturbed = train(tmp_path / "undisturbed")
    expected = (tmp_path / "undisturbed" / "trained.jsonl").read_text()
    steps = expected.count("\n")
    assert undisturbed.output == f"trained on {steps} buckets\n", undisturbed.errors

    folder = tmp_path / "killed"
    for step in range(1, steps + 1):
        killed = train(folder, "--die-at", str(step))
        assert killed.status == -signal.SIGKILL, killed.errors
    assert train(folder).output == f"trained on {steps} buckets\n"

    assert (folder / "trained.jsonl").read_text() == expected
    ids = [one for line in expected.splitlines() for one in json.loads(line)]
    assert len(ids) == len(set(ids)) == 60


def test_ranks_train_on_separate_records_of_similar_length(example, tmp_path):
    example.write_parts(tmp_path)
    found = [[*bucket] for rank in range(2) for bucket in example.buckets(tmp_path, rank, 2)]

    assert Counter(len(record["prompt"]) <= 4 for bucket in found for record in bucket)[True] > 10
    assert len({record["id"] for bucket in found for record in bucket}) == 60
    full = [bucket for bucket in found if len(bucket) == 8]
    assert full
    assert all(len(record["prompt"]) <= 4 for bucket in full for record in bucket)


@pytest.mark.slow
def test_it_resumes_at_any_position_within_the_process(example, tmp_path):
    example.write_parts(tmp_path)
    assert_resumes_anywhere(lambda: example.buckets(tmp_path, 1, 2))
    assert_resumes_anywhere(lambda: example.buckets(tmp_path).repeat(), limit=60)
