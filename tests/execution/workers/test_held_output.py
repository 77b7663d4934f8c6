import pytest

from dagster_dataops.checkpoints.journal.settled_span import Settled
from dagster_dataops.execution.workers import held_output
from dagster_dataops.execution.workers.held_output import HOLD_SECONDS, HeldRange, Holding


class _Clock:
    """Stands in for ``time``: it says what it is told."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    clock = _Clock()
    monkeypatch.setattr(held_output, "time", clock)
    return clock


@pytest.fixture
def spilled() -> list[HeldRange]:
    return []


@pytest.fixture
def held(spilled: list[HeldRange], clock: _Clock) -> Holding:
    return Holding(spilled.append)


def _span(start: int) -> Settled:
    return Settled.of(
        start,
        3,
        records=1,
        emitted=1,
        dropped=0,
        failed=0,
        output=b"{}\n",
        errors=b"",
    )


def test_a_range_waits_until_it_is_taken(held: Holding, spilled: list[HeldRange]) -> None:
    assert not held
    begun = held.begin(10)
    begun.add(_span(10))
    assert held
    assert held.holds(begun)
    assert held.take(10) is begun
    assert not held
    assert not held.holds(begun)
    assert held.take(10) is None
    assert spilled == []


def test_what_waits_too_long_is_spilled(
    held: Holding, spilled: list[HeldRange], clock: _Clock
) -> None:
    begun = held.begin(0)
    begun.add(_span(0))
    clock.now += HOLD_SECONDS / 2
    held.spill_overdue()
    assert spilled == []
    clock.now += HOLD_SECONDS / 2 + 0.01
    held.spill_overdue()
    assert spilled == [begun]
    assert held.take(0) is None  # too late for a place


def test_only_what_is_overdue_is_spilled(
    held: Holding, spilled: list[HeldRange], clock: _Clock
) -> None:
    first = held.begin(0)
    first.add(_span(0))
    clock.now += HOLD_SECONDS - 0.01
    second = held.begin(3)
    second.add(_span(3))
    clock.now += 0.02
    held.spill_overdue()
    assert spilled == [first]
    assert held.holds(second)


def test_a_range_without_output_waits_for_nothing(held: Holding, clock: _Clock) -> None:
    held.begin(0)
    clock.now += 10 * HOLD_SECONDS
    assert held.patience > HOLD_SECONDS
    assert held.patience_ms <= 1000 * HOLD_SECONDS + 1


def test_patience_is_that_of_the_oldest_output(held: Holding, clock: _Clock) -> None:
    held.begin(0).add(_span(0))
    clock.now += HOLD_SECONDS / 5
    held.begin(3).add(_span(3))
    assert held.patience == pytest.approx(HOLD_SECONDS * 4 / 5)
    assert held.patience_ms > 1000 * held.patience  # it is over when a poll ends
    clock.now += HOLD_SECONDS
    assert held.patience == 0.0


def test_everything_is_spilled_in_the_order_in_which_it_began(
    held: Holding, spilled: list[HeldRange]
) -> None:
    begun = [held.begin(start) for start in (9, 3, 6)]
    held.spill_all()
    assert spilled == begun
    assert not held


def test_there_is_so_much_that_is_held_at_most(held: Holding) -> None:
    starts = iter(range(100))
    while not held.full:
        held.begin(next(starts))
    assert 2 <= next(starts) <= 20


def test_a_range_whose_spilling_fails_is_not_spilled_twice(clock: _Clock) -> None:
    def refuse(_: HeldRange) -> None:
        raise OSError("the disk is full")

    held = Holding(refuse)
    held.begin(0).add(_span(0))
    with pytest.raises(OSError, match="full"):
        held.spill(0)
    assert not held
