"""Tests of dagster_dataops.models.calls.shared_limits."""

import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from dagster_dataops.models.calls.shared_limits import Rates, SharedLimits
from tests.subprocesses import killed_at_exit

HOLDER = """
import sys
from pathlib import Path
from dagster_dataops.models.calls.shared_limits import Rates, SharedLimits
limits = SharedLimits(Path(sys.argv[1]), Rates(max_in_flight=4))
assert [limits.acquire(1) for _ in range(3)] == [0, 0, 0]
print("held", flush=True)
sys.stdin.read()
"""
SENDER = """
import sys, time
from pathlib import Path
from dagster_dataops.models.calls.shared_limits import Rates, SharedLimits
limits = SharedLimits(Path(sys.argv[1]), Rates(requests_per_minute=6000))
end, sent = time.monotonic() + 1.5, 0
while time.monotonic() < end:
    wait = limits.acquire(1)
    if wait:
        time.sleep(wait)
    else:
        sent += 1
        limits.release(succeeded=True)
print(sent)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "models" / "default.limits"


def started(code: str, path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def burst(limits: SharedLimits, tokens: float) -> int:
    """Return how many requests may be sent at once."""
    count = 0
    while not limits.acquire(tokens):
        limits.release()
        count += 1
    return count


def test_requests_a_minute_are_limited_to_a_burst_and_the_rate(path: Path):
    limits = SharedLimits(path, Rates(requests_per_minute=600))

    assert 6 <= burst(limits, 0) <= 8
    assert 0 < limits.acquire(0) <= 0.1


@pytest.mark.parametrize(
    ("rates", "tokens"),
    [(Rates(requests_per_minute=600), 0.0), (Rates(tokens_per_minute=6000), 10.0)],
)
def test_requests_that_are_not_yet_sent_hold_up_others_however_long_it_takes(
    path: Path, monkeypatch: pytest.MonkeyPatch, rates: Rates, tokens: float
):
    limits = SharedLimits(path, rates)
    with ExitStack() as unsent:
        for _ in range(5):
            assert limits.acquire(tokens) == 0
            unsent.enter_context(limits.sending(tokens))
        later = time.monotonic() + 100
        monkeypatch.setattr(time, "monotonic", lambda: later)
        assert limits.acquire(tokens) > 0

    assert limits.acquire(tokens) == 0


def test_tokens_a_minute_are_limited_and_unused_ones_are_given_back(path: Path):
    limits = SharedLimits(path, Rates(tokens_per_minute=6000))

    assert limits.acquire(1000) == 0
    assert 9 < limits.acquire(1) <= 10
    limits.release(unused_tokens=990)
    assert limits.acquire(1) == 0


def test_a_request_larger_than_a_minutes_tokens_is_sent_alone(path: Path):
    limits = SharedLimits(path, Rates(tokens_per_minute=60))

    assert limits.acquire(300) == 0
    assert limits.acquire(1) > 290


def test_requests_in_flight_are_limited_over_all_holders(path: Path):
    first, second = (SharedLimits(path, Rates(max_in_flight=3)) for _ in range(2))

    assert [first.acquire(1), second.acquire(1), first.acquire(1)] == [0, 0, 0]
    assert second.acquire(1) > 0
    first.release()
    assert second.acquire(1) == 0


def test_a_killed_process_releases_its_requests(path: Path):
    limits = SharedLimits(path, Rates(max_in_flight=4))
    with killed_at_exit(started(HOLDER, path)) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert limits.acquire(1) == 0
        assert limits.acquire(1) > 0

    assert [limits.acquire(1) for _ in range(3)] == [0, 0, 0]
    assert limits.acquire(1) > 0
    assert limits.in_flight == 4


@pytest.mark.slow
def test_processes_share_the_rate(path: Path):
    senders = [started(SENDER, path) for _ in range(3)]
    begun = time.monotonic()
    sent = [int(sender.communicate()[0]) for sender in senders]

    assert sum(sent) <= 100 * (time.monotonic() - begun) + 60
    assert all(sent)


def test_a_block_holds_for_all(path: Path):
    first, second = (SharedLimits(path, Rates()) for _ in range(2))

    first.block(5)
    first.block(1)

    assert 4 < second.acquire(1) <= 5


def test_an_overload_halves_the_requests_in_flight_once_and_successes_restore_them(path: Path):
    limits = SharedLimits(path, Rates(max_in_flight=20))
    for _ in range(19):
        assert limits.acquire(1) == 0

    limits.cut()
    limits.cut()

    assert limits.allowed == 10
    for _ in range(19):
        limits.release(succeeded=True)
    assert limits.allowed == 11
    for _ in range(200):
        limits.acquire(1)
        limits.release(succeeded=True)
    assert limits.allowed == 20


def test_the_times_of_before_a_restart_of_the_machine_do_not_count(path: Path, monkeypatch):
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 10_000)
    limits = SharedLimits(path, Rates(requests_per_minute=60))
    limits.block(3000)
    limits.acquire(1)

    monkeypatch.setattr(time, "monotonic", lambda: now)

    assert limits.acquire(1) == 0


def test_a_closed_holder_frees_its_row(path: Path):
    for _ in range(300):
        limits = SharedLimits(path, Rates(max_in_flight=1))
        assert limits.acquire(1) == 0
        limits.close()


def test_lower_limits_count_and_higher_ones_do_not(tmp_path: Path):
    limits = SharedLimits(tmp_path / "limits", Rates(requests_per_minute=60, max_in_flight=9))
    limits.lower(6000, 600)

    assert limits.acquire(10) == 0  # each takes a second, of requests as of tokens
    assert 0.4 < limits.acquire(10) <= 0.5
    limits.close()
