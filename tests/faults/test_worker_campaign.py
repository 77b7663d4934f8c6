"""A sample of the campaign against the workers of streams."""

import logging
from pathlib import Path

import pytest

from tests.faults.worker_campaign import run


def test_items_and_states_survive_kills_at_random_instants(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "dagster_dataops")
    assert sum(run(8, 1, tmp_path).values())
