"""Samples of the campaigns, and the moments at which they kill."""

import logging
import random
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults import loader_campaign, worker_campaign
from tests.faults.campaign import run_campaign
from tests.faults.forking import run_often
from tests.faults.moments import IN_PARENT, IN_STREAM, IN_WORKER, place_of
from tests.faults.pipeline_campaign import run_pipelines
from tests.faults.stream_campaign import run_stream_campaign
from tests.faults.tally import Campaign
from tests.faults.tar_campaign import archive, compare


@pytest.mark.parametrize("name", sorted(IN_PARENT | IN_WORKER | IN_STREAM))
def test_every_moment_of_a_campaign_is_a_step_of_the_engine(name: str) -> None:
    place, function = place_of(name)
    assert callable(getattr(place, function))


def test_every_program_that_the_script_of_campaigns_starts_exists() -> None:
    root = Path(__file__).parents[2]
    steps = re.findall(r"\$python (?:-m )?([\w./]+)", (root / ".ci" / "campaigns").read_text())
    programs = [step for step in steps if step.startswith("tests")]

    files = [
        root / (step if step.endswith(".py") else f"{step.replace('.', '/')}.py")
        for step in programs
    ]

    assert len(programs) > 10
    assert [str(file) for file in files if not file.exists()] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "run",
    [
        pytest.param(lambda folder: run_campaign(8, 12, folder, scale=0.1), id="records"),
        pytest.param(lambda folder: run_stream_campaign(8, 5, folder, items=600), id="streams"),
    ],
)
def test_runs_killed_at_random_instants_finish_with_the_right_bytes(
    tmp_path: Path, run: Callable[[Path], Campaign]
) -> None:
    campaign = run(tmp_path)
    assert campaign.failures == []
    assert sum(campaign.kills.values()) >= 8


@pytest.mark.slow
def test_killed_random_pipelines_have_the_results_of_the_reference(tmp_path: Path) -> None:
    tally = run_pipelines(6, seed=1, folder=tmp_path)
    assert tally.wrong == []
    assert tally.cases == 6


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_ranks_and_workers_that_are_killed_or_suspended_lose_and_move_nothing(
    tmp_path: Path,
) -> None:
    found = loader_campaign.run(40, 3, tmp_path)
    assert found["killed"]
    assert found["suspended"]


@pytest.mark.slow
def test_items_and_states_survive_kills_at_random_instants(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "dagster_dataops")
    assert sum(worker_campaign.run(8, 1, tmp_path).values())


@pytest.mark.slow
def test_runs_from_a_parent_with_busy_threads_end(tmp_path: Path) -> None:
    run_often(20, seed=3, folder=tmp_path, workers=1)


@pytest.mark.parametrize("first", range(0, 300, 60))
def test_damaged_archives_are_read_as_tarfile_reads_them_or_refused(tmp_path, first):
    for seed in range(first, first + 60):
        assert compare(archive(random.Random(seed)), tmp_path / "a.tar") is None, f"seed {seed}"
