"""Tests of the work that is done again after the death of an agent: at most what it held."""

from collections import Counter
from collections.abc import Hashable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from dagster_dataops.workplaces import Interval
from tests.execution.cluster.fixtures import Meanwhile, Watched, both, input_of, kill_one, logs
from tests.execution.engine import LeaseSchedule


@pytest.fixture
def revoked(monkeypatch: pytest.MonkeyPatch) -> list[Interval]:
    """Return a list that gets the bytes which dead agents hold."""
    found: list[Interval] = []
    revoke = LeaseSchedule.revoke

    def noted(schedule: LeaseSchedule, agent: Hashable) -> None:
        found.extend(Interval(*part) for part in schedule._held_by(agent))
        revoke(schedule, agent)

    monkeypatch.setattr(LeaseSchedule, "revoke", noted)
    return found


def places_of(path: Path) -> Iterator[Interval]:
    """Yield the place of each line."""
    starts = [0]
    for line in path.read_bytes().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return (Interval(*pair) for pair in pairwise(starts))


@pytest.mark.slow
def test_only_records_that_a_killed_agent_held_are_processed_again(
    tmp_path: Path, revoked: list[Interval]
) -> None:
    dataset = input_of(tmp_path, ["keep"] * 1000)
    log = tmp_path / "log"
    cluster = Watched(agents=2)
    listener = Meanwhile(300, lambda: kill_one(cluster))
    both(tmp_path, dataset, logs(log=str(log), seconds=0.004), cluster, progress=listener)

    calls = Counter(map(int, log.read_text().split()))
    again = {number for number, count in calls.items() if count > 2}  # once at home, once away
    held = {
        number
        for number, (start, end) in enumerate(places_of(dataset.path))
        if any(part.start <= start and end <= part.end for part in revoked)
    }
    assert listener.acted.is_set()
    assert min(calls.values()) == 2
    assert again <= held
    assert len(held) < 700  # the records that were settled at the kill are not among them
