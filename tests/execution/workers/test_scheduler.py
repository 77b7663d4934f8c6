import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagster_dataops.execution.workers.scheduler import Scheduler
from dagster_dataops.workplaces import Interval
from tests.execution.engine import Mode, Range


@contextmanager
def _schedule(path: Path, content: bytes, workers: int, *todo: Interval) -> Iterator[Scheduler]:
    path.write_bytes(content)
    descriptor = os.open(path, os.O_RDONLY)
    yield Scheduler(descriptor, list(todo) or [Interval(0, len(content))], workers)
    os.close(descriptor)


def _taken(schedule: Scheduler, pace: float = 1e-6, sharing: int = 1) -> list[Range]:
    taken = []
    while (given_range := schedule.take(sharing)) is not None:
        taken.append(given_range)
        size = given_range.end - given_range.start
        schedule.measured(size, size * pace)
    return taken


@given(
    st.lists(st.integers(0, 300), min_size=1, max_size=60),
    st.integers(1, 5),
    st.sampled_from([1e-9, 1e-5, 1e-2]),
    st.booleans(),
)
@settings(deadline=None)
def test_ranges_cover_the_input_and_end_at_lines(
    tmp_path_factory: pytest.TempPathFactory,
    lengths: list[int],
    workers: int,
    pace: float,
    newline: bool,
) -> None:
    content = b"\n".join(b"x" * length for length in lengths) + (b"\n" if newline else b"")
    if not content:
        return
    with _schedule(tmp_path_factory.mktemp("x") / "input", content, workers) as schedule:
        taken = _taken(schedule, pace)
        assert not schedule
    assert taken[0].start == 0
    assert taken[-1].end == len(content)
    for one, other in pairwise(taken):
        assert one.end == other.start
        assert content[one.end - 1 : one.end] == b"\n"


def _take(schedule: Scheduler, sharing: int = 1) -> Range:
    taken = schedule.take(sharing)
    assert taken is not None
    return taken


def test_the_first_range_is_a_single_record(tmp_path: Path) -> None:
    with _schedule(tmp_path / "input", b"abc\n" * 1000, 2) as schedule:
        first = _take(schedule)
        assert first[:2] == (0, 4)


def test_a_lone_worker_then_gets_a_large_range_for_a_moment(tmp_path: Path) -> None:
    with _schedule(tmp_path / "input", b"abc\n" * 2_000_000, 2) as schedule:
        first = _take(schedule)
        schedule.measured(4, 0.1)
        trial = _take(schedule)
        assert trial.start == 4
        assert 1_000_000 < trial.end < 8_000_000  # a blocked interpreter cannot give back
        assert trial.patience < first.patience / 10


def test_a_lone_worker_gets_no_range_ahead_of_its_trial(tmp_path: Path) -> None:
    with _schedule(tmp_path / "input", b"abc\n" * 2_000_000, 2) as schedule:
        schedule.take(1)
        schedule.measured(4, 1e-6)
        trial = _take(schedule)
        assert schedule.depth == 1  # the lines that it gives back come next
        schedule.measured(trial.end - trial.start, 0.008)
        assert schedule.depth == 2


def test_workers_that_share_get_small_first_ranges(tmp_path: Path) -> None:
    with _schedule(tmp_path / "input", b"abc\n" * 1000, 2) as schedule:
        assert schedule.take(1)
        assert schedule.take(2) is not None
        schedule.measured(4, 0.1)
        third = _take(schedule, 2)
        assert third.end - third.start < 100


def test_slow_records_go_out_one_by_one_and_quick_ones_in_bulk(tmp_path: Path) -> None:
    content = b"x" * 99 + b"\n"
    with _schedule(tmp_path / "slow", content * 200, 2) as schedule:
        slow = _taken(schedule, pace=0.01, sharing=2)
        assert all(item.end - item.start == 100 for item in slow)
        assert schedule.depth == 1
    with _schedule(tmp_path / "quick", content * 50_000, 2) as schedule:
        for _ in range(3):
            schedule.take(2)
            schedule.measured(100, 1e-7)
        assert schedule.depth == 2
        sizes = [item.end - item.start for item in _taken(schedule, pace=1e-9, sharing=2)]
        assert max(sizes) > 100_000
        assert len(sizes) < 120
        assert schedule.depth == 1  # nothing is left to hand out ahead


def test_gaps_are_never_joined(tmp_path: Path) -> None:
    todo = [Interval(0, 8), Interval(16, 20)]
    with _schedule(tmp_path / "input", b"abc\n" * 5, 1, *todo) as schedule:
        taken = _taken(schedule, sharing=2)
    assert [(item.start, item.end) for item in taken] == [(0, 4), (4, 8), (16, 20)]
    with _schedule(tmp_path / "input", b"abc\n" * 5, 1, *todo) as schedule:
        taken = _taken(schedule)
    assert [(item.start, item.end) for item in taken] == [(0, 4), (4, 8), (16, 20)]


def test_a_range_given_back_comes_first(tmp_path: Path) -> None:
    with _schedule(tmp_path / "input", b"abc\n" * 5, 1) as schedule:
        first = _take(schedule)
        schedule.give_back(first)
        schedule.give_back(Range(4, 4))
        again = schedule.take(1)
        assert again == first


def test_ranges_get_smaller_after_each_death_until_the_record_is_known(tmp_path: Path) -> None:
    with _schedule(tmp_path / "input", b"abc\n" * 5, 1) as schedule:
        while schedule.take(1):
            pass
        assert schedule.give_back_after_death(Range(0, 20), 4) is None
        careful = schedule.take(1)
        assert careful == Range(4, 20, Mode.CAREFUL)
        assert schedule.give_back_after_death(careful, 8) is None
        alone, rest = schedule.take(1), schedule.take(1)
        assert alone == Range(8, 12, Mode.ALONE)
        assert rest is not None
        assert rest[:3] == (12, 20, Mode.NORMAL)
        assert schedule.give_back_after_death(alone, 0) == Range(8, 12, Mode.ALONE)
        assert not schedule


def test_at_most_a_usual_range_is_processed_carefully(tmp_path: Path) -> None:
    content = (b"x" * 9 + b"\n") * 100_000
    with _schedule(tmp_path / "input", content, 2) as schedule:
        assert schedule.take(1)
        schedule.measured(10, 0.1)
        much = _take(schedule)
        assert much.end == len(content)
        assert schedule.give_back_after_death(much, 20) is None
        careful = _take(schedule)
        assert (careful.start, careful.mode) == (20, Mode.CAREFUL)
        assert careful.end < 100_000
        rest = _take(schedule, 2)
        assert (rest.start, rest.mode) == (careful.end, Mode.NORMAL)


def test_death_after_the_last_record_blames_no_record(tmp_path: Path) -> None:
    with _schedule(tmp_path / "input", b"abc\n" * 5, 1) as schedule:
        while schedule.take(1):
            pass
        assert schedule.give_back_after_death(Range(0, 20), 20) is None
        assert not schedule


def test_slow_records_at_the_end_are_shared_by_workers(tmp_path: Path) -> None:
    """Quick ones before them make them look quick as well."""
    with _schedule(tmp_path / "input", (b"x" * 9 + b"\n") * 60, 3) as schedule:
        taken: list[Range | None] = []
        while sum(item.end - item.start for item in taken if item) < 400:
            taken.append(schedule.take(3))
            schedule.measured(10, 1e-6)
        rest = [schedule.take(3) for _ in range(3)]
        assert all(item is not None and item.end - item.start <= 40 for item in rest)


def _try(schedule: Scheduler, content: bytes, done: int, seconds: float) -> None:
    """Have one worker do the first record, and then as much as a moment allows: up to ``done``."""
    assert schedule.take(1)
    schedule.measured(10, 0.1)
    assert schedule.take(1)
    schedule.put_back(Interval(done, len(content)))
    schedule.measured(done - 10, seconds)


def test_a_lone_worker_gets_a_rest_shorter_than_a_worker_start(tmp_path: Path) -> None:
    content = (b"x" * 9 + b"\n") * 1000
    with _schedule(tmp_path / "input", content, 8) as schedule:
        _try(schedule, content, 3000, 0.008)
        taken = _take(schedule)
        assert taken[:2] == (3000, len(content))


def test_a_lone_worker_gets_half_of_a_longer_rest(tmp_path: Path) -> None:
    content = (b"x" * 9 + b"\n") * 1000
    with _schedule(tmp_path / "input", content, 8) as schedule:
        _try(schedule, content, 100, 0.009)
        given: list[int] = []
        while schedule.seconds_left > 0.06 or len(given) < 3:
            taken = _take(schedule)
            assert taken.end - taken.start <= (len(content) - 100 - sum(given)) // 2 + 160
            given.append(taken.end - taken.start)
            schedule.measured(given[-1], given[-1] * 1e-4)
    assert len(given) > 3
    left = len(content)
    for size in given:
        assert size <= max(left // 2 + 9, 160)  # a sixty-fourth of all, by whole lines
        left -= size


def test_unprocessed_lines_of_a_worker_are_cut_again(tmp_path: Path) -> None:
    """Quick records before slow ones make these look quick as well."""
    content = (b"x" * 9 + b"\n") * 1000
    with _schedule(tmp_path / "input", content, 2) as schedule:
        for _ in range(4):
            rest = _take(schedule, 2)
            schedule.measured(rest.end - rest.start, 1e-6)
        assert rest.end - rest.start > 1000
        schedule.measured(20, 1.0)
        schedule.put_back(Interval(rest.start + 20, rest.end))
        for place in range(20, 60, 10):
            again = _take(schedule, 2)
            assert again[:2] == (rest.start + place, rest.start + place + 10)
            schedule.measured(10, 0.5)


def test_the_last_ranges_of_a_large_input_are_small(tmp_path: Path) -> None:
    content = (b"x" * 99 + b"\n") * 200_000
    with _schedule(tmp_path / "input", content, 2) as schedule:
        sizes = [taken.end - taken.start for taken in _taken(schedule, 1e-9, sharing=2)]
    assert max(sizes) > 1_000_000
    assert all(size < 70_000 for size in sizes[-2:])


@pytest.mark.parametrize("newline", [b"\n", b""], ids=["ended", "open end"])
def test_there_are_never_more_ranges_than_lines(tmp_path: Path, newline: bytes) -> None:
    with _schedule(tmp_path / "input", b"abc\n" * 4 + b"abc" + newline, 2) as schedule:
        assert schedule.has_more_than(4)
        assert not schedule.has_more_than(5)
        given_range = _take(schedule, 2)
        assert not schedule.has_more_than(4)
        schedule.give_back(given_range)
        assert schedule.has_more_than(4)


def test_the_lines_of_a_long_input_need_not_all_be_counted(tmp_path: Path) -> None:
    with _schedule(tmp_path / "input", b"abc\n" * 1_000_000, 2) as schedule:
        assert schedule.has_more_than(1000)
