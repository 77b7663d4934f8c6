import threading

import pytest

from dagster_dataops.execution.records.breaker import Breaker
from dagster_dataops.execution.records.record_failures import failure_of_line
from tests.execution.engine import Failure, failure_of

REFUSED = failure_of(ConnectionError("401"))
BUSY = failure_of(TimeoutError("503"))


def fail(breaker: Breaker, failure: Failure, times: int) -> None:
    for _ in range(times):
        breaker.count(failure, 0)


def test_the_limit_of_failures_of_one_kind_opens_it_and_names_the_failure() -> None:
    opened: list[str] = []
    breaker = Breaker(3, lambda: opened.append("now"))
    fail(breaker, REFUSED, 2)
    assert not breaker.open
    fail(breaker, REFUSED, 3)
    assert breaker.failure == REFUSED
    assert opened == ["now"]


@pytest.mark.parametrize("outcome", [b"", b"{}\n"])
def test_a_success_resets_the_count_even_if_the_record_is_dropped(outcome: bytes) -> None:
    breaker = Breaker(3)
    for _ in range(5):
        fail(breaker, REFUSED, 2)
        breaker.count(outcome, 0)
    assert not breaker.open


def test_exceptions_are_counted_separately_and_another_one_is_not_a_success() -> None:
    breaker = Breaker(3)
    fail(breaker, REFUSED, 2)
    fail(breaker, BUSY, 2)
    assert not breaker.open
    fail(breaker, REFUSED, 1)
    assert breaker.failure == REFUSED


def test_bad_and_blank_lines_count_for_nothing() -> None:
    breaker = Breaker(3)
    fail(breaker, REFUSED, 2)
    for line in (b"no JSON", b" "):
        for _ in range(9):
            breaker.count(failure_of_line(line), 0)
    assert not breaker.open
    fail(breaker, REFUSED, 1)
    assert breaker.open


def test_it_never_opens_if_it_is_switched_off() -> None:
    breaker = Breaker(0)
    fail(breaker, REFUSED, 10_000)
    assert not breaker.open


def test_an_open_breaker_stays_open() -> None:
    breaker = Breaker(1)
    fail(breaker, REFUSED, 1)
    breaker.count(b"{}\n", 0)
    fail(breaker, BUSY, 5)
    assert breaker.failure == REFUSED


def test_threads_that_fail_at_once_open_it_once_and_at_the_limit() -> None:
    opened: list[int] = []
    breaker = Breaker(400, lambda: opened.append(1))
    threads = [threading.Thread(target=fail, args=(breaker, REFUSED, 50)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert opened == [1]


def test_the_failures_since_the_last_success_are_known_even_when_open() -> None:
    breaker = Breaker(2)
    breaker.count(REFUSED, 0)
    breaker.count(b"", 10)
    breaker.count(REFUSED, 20)
    breaker.count(failure_of_line(b"bad"), 30)
    breaker.count(BUSY, 40)
    assert breaker.last_failed == [20, 40]
    breaker.count(REFUSED, 50)
    breaker.count(b"", 60)
    breaker.count(REFUSED, 70)
    assert breaker.last_failed == [20, 40, 50, 70]


def test_a_success_of_an_earlier_call_does_not_clear_later_failures() -> None:
    breaker = Breaker(100, in_flight=3)
    breaker.count(REFUSED, 0)
    breaker.count(b"", 10)
    breaker.count(REFUSED, 20)
    breaker.count(b"", 30)
    assert breaker.last_failed == [0, 20]
    breaker.count(b"", 40)
    assert breaker.last_failed == [20]
    breaker.count(b"", 50)
    assert breaker.last_failed == []
