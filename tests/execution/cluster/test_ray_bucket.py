"""Test a run on Ray whose machines share a bucket and nothing else."""

from pathlib import Path

import pytest

from tests.execution.cluster import ray_bucket_campaign


@pytest.mark.slow
@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.filterwarnings("ignore")
def test_results_are_those_of_a_run_at_home_whatever_is_killed(tmp_path: Path) -> None:
    for name in ("ray", "obstore", "moto.server"):
        pytest.importorskip(name, reason="needs ray, obstore and moto")
    counts = ray_bucket_campaign.on_ray(tmp_path, kills=6, seed=0)
    assert counts["results"] > 0
