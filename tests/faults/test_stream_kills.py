"""Streams whose runs are killed at random instants and at chosen steps of the engine."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.crashing import alive_in_session, wait_until
from tests.faults.moments import IN_STREAM, place_of
from tests.faults.stream_campaign import run_stream_campaign
from tests.subprocesses import killed_at_exit

_MAPPING = """
import time
from dagster_dataops import read_sequence

def slowly(number):
    time.sleep(0.05)
    return number

if __name__ == "__main__":
    numbers = read_sequence(list(range(10_000)))
    for number in numbers.map(slowly, num_parallel_calls=2, mode="process"):
        print(number, flush=True)
"""


@pytest.mark.slow
def test_streams_killed_at_random_instants_finish_with_the_right_bytes(tmp_path: Path) -> None:
    campaign = run_stream_campaign(8, seed=5, folder=tmp_path, items=600)
    assert campaign.failures == []
    assert sum(campaign.kills.values()) >= 8


@pytest.mark.parametrize("name", IN_STREAM)
def test_every_moment_of_a_campaign_is_a_step_of_the_engine(name: str) -> None:
    place, function = place_of(name)
    assert callable(getattr(place, function))


def test_the_processes_of_a_parallel_map_end_with_the_one_that_was_killed(tmp_path: Path) -> None:
    script = tmp_path / "mapping.py"
    script.write_text(_MAPPING)
    command = [sys.executable, str(script)]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    with killed_at_exit(started) as process:
        assert process.stdout is not None
        process.stdout.readline()
        wait_until(lambda: len(alive_in_session(process.pid)) == 3, 10, "its workers")
        process.kill()
        process.wait()
        wait_until(lambda: not alive_in_session(process.pid), 10, "the end of its workers")
