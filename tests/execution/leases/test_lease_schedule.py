import os
import random
from pathlib import Path

import pytest

from dagster_dataops.datasets.batches import BatchStarts
from dagster_dataops.workplaces import Interval
from tests.execution.engine import LeaseSchedule

_LINE = 10


def _file(tmp_path: Path, text: bytes) -> int:
    path = tmp_path / "input.jsonl"
    path.write_bytes(text)
    return os.open(path, os.O_RDONLY)


def _lines(tmp_path: Path, count: int) -> int:
    return _file(tmp_path, b"".join(b'{"n":%03d}\n' % n for n in range(count)))


def test_a_lease_ends_at_a_line_and_is_given_once(tmp_path: Path) -> None:
    schedule = LeaseSchedule(_lines(tmp_path, 5), [Interval(0, 50)])
    first, second = schedule.take("a", 15), schedule.take("b", 1000)
    assert first is not None
    assert second is not None
    assert first.stretches == [Interval(0, 20)]
    assert second.stretches == [Interval(20, 50)]
    assert schedule.take("c", 1) is None
    assert (schedule.free, schedule.leased("a"), schedule.leased("b")) == (0, 20, 30)


def test_a_lease_joins_small_gaps(tmp_path: Path) -> None:
    gaps = [Interval(0, 10), Interval(20, 30), Interval(40, 50)]
    lease = LeaseSchedule(_lines(tmp_path, 5), gaps).take("a", 20)
    assert lease is not None
    assert lease.stretches == gaps[:2]


def test_leases_of_batches_end_where_batches_begin(tmp_path: Path) -> None:
    schedule = LeaseSchedule(_lines(tmp_path, 9), [Interval(0, 90)], BatchStarts([0, 30, 60]))
    lease = schedule.take("a", 35)
    assert lease is not None
    assert lease.stretches == [Interval(0, 60)]
    assert lease.batch_starts == [0, 30]


def test_the_first_span_counts_and_the_second_is_refused(tmp_path: Path) -> None:
    schedule = LeaseSchedule(_lines(tmp_path, 5), [Interval(0, 50)])
    schedule.take("frozen", 50)
    schedule.revoke("frozen")
    schedule.take("other", 50)
    assert schedule.accept("frozen", 0, 30)
    assert not schedule.accept("other", 0, 30)
    assert not schedule.accept("other", 20, 40)
    assert schedule.accept("other", 40, 50)
    schedule.finish("other", 0, 50)
    assert schedule.free == 10  # of the refused span
    assert schedule.take("other", 50) is not None
    assert schedule.accept("other", 30, 40)
    assert not schedule


def test_blank_lines_need_no_span(tmp_path: Path) -> None:
    schedule = LeaseSchedule(_file(tmp_path, b'{"n":1}\n\n  \n'), [Interval(0, 12)])
    schedule.take("a", 100)
    assert schedule.accept("a", 0, 8)
    assert schedule
    schedule.finish("a", 0, 12)
    assert not schedule


def test_returned_stretches_are_free_again(tmp_path: Path) -> None:
    schedule = LeaseSchedule(_lines(tmp_path, 5), [Interval(0, 50)])
    schedule.take("a", 50)
    schedule.give_back("a", 20, 50)
    schedule.give_back("b", 0, 20)  # it does not hold them
    assert (schedule.free, schedule.leased("a")) == (30, 20)


class _Agents:
    """Agents that take leases from a schedule, settle spans of random sizes, hang and die."""

    def __init__(self, schedule: LeaseSchedule, chance: random.Random) -> None:
        self._schedule = schedule
        self._chance = chance
        self._work: dict[str, list[Interval]] = {name: [] for name in "abc"}
        self.settled: list[int] = []

    def act(self) -> None:
        agent, luck = self._chance.choice("abc"), self._chance.random()
        if luck < 0.05:  # it is silent for long, but works on
            self._schedule.revoke(agent)
        elif luck < 0.1:  # it dies
            self._schedule.revoke(agent)
            self._work[agent] = []
        elif luck < 0.15:  # it is recalled
            for start, end in self._work[agent]:
                self._schedule.give_back(agent, start, end)
            self._work[agent] = []
        elif self._work[agent]:
            self._do(agent, self._work[agent].pop())
        else:
            lease = self._schedule.take(agent, self._chance.randrange(1, 150))
            self._work[agent] = list(lease.stretches) if lease else []

    def _do(self, agent: str, stretch: Interval) -> None:
        done = stretch.start
        while done < stretch.end:
            end = min(done + _LINE * self._chance.randrange(1, 5), stretch.end)
            if self._schedule.accept(agent, done, end):
                self.settled += range(done, end, _LINE)
            done = end
        self._schedule.finish(agent, *stretch)


@pytest.mark.parametrize("seed", range(30))
def test_every_record_is_settled_once_whatever_agents_do(tmp_path: Path, seed: int) -> None:
    count = 60
    schedule = LeaseSchedule(_lines(tmp_path, count), [Interval(0, count * _LINE)])
    agents = _Agents(schedule, random.Random(seed))
    for _ in range(10_000):
        if not schedule:
            break
        agents.act()
    assert sorted(agents.settled) == list(range(0, count * _LINE, _LINE))
