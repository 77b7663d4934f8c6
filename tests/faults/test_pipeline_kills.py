"""Random pipelines in random modes, killed at random instants, against a reference."""

from pathlib import Path

import pytest

from tests.faults.pipeline_campaign import run_pipelines


@pytest.mark.slow
def test_killed_random_pipelines_have_the_results_of_the_reference(
    tmp_path: Path,
) -> None:
    tally = run_pipelines(6, seed=1, folder=tmp_path)
    assert tally.wrong == []
    assert tally.cases == 6
