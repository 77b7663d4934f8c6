"""`SharedLimits`: the limits of a client, shared by all processes of a machine.

The state is a small mapped file, changed under a lock. Requests and tokens a minute use the generic
cell rate algorithm: of each limit only the time up to which it is used up is stored, so that a
process that dies holds nothing of it. Each process has a row with its number of requests in flight,
and holds the lock of a file of the same number: a row whose lock is free is not counted.
"""

import ctypes
import mmap
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

from dagster_dataops.datasets.durable_files import make_folder, storage
from dagster_dataops.foundation.concurrency.file_lock import lock_at_once, locked

_MAX_PROCESSES: Final = 256
_BURST_SECONDS: Final = 0.5  # the share of a minute's limit that may be used at once
_LONGEST_BLOCK_SECONDS: Final = 3600.0
_FULL_SECONDS: Final = 0.01  # after which to ask again when too many requests are in flight
_CUT_SECONDS: Final = 1.0  # at most one cut in this time: overloads come in bursts
_GROWTH: Final = 1.1
_NUMBERS: Final = ("requests", "tokens", "blocked", "allowed", "successes", "cut", "used")


class Rates(NamedTuple):
    """The limits of a client; 0 for no limit of requests or tokens."""

    requests_per_minute: float = 0
    tokens_per_minute: float = 0
    max_in_flight: int = 200

    def share(self, agents: int) -> "Rates":
        """Return the part of each agent of a run; they share no memory."""
        most = max(1, self.max_in_flight // agents)
        return Rates(self.requests_per_minute / agents, self.tokens_per_minute / agents, most)


class _State(ctypes.Structure):
    """The content of the file, in the memory that all processes share.

    Attributes:
        requests: Monotonic time up to which requests are used up.
        tokens: The same for tokens.
        blocked: Monotonic time before which no request may be sent.
        allowed: Requests in flight that the server can bear; 0 before the first request.
        successes: Requests that succeeded since ``allowed`` was last changed.
        cut: Monotonic time when ``allowed`` was last reduced.
        used: Number of rows that were ever used; the others are not read.
        rows: Requests in flight of each process.
    """

    requests: float
    tokens: float
    blocked: float
    allowed: float
    successes: float
    cut: float
    used: float
    rows: "ctypes.Array[ctypes.c_int]"
    _fields_: ClassVar = [
        *((name, ctypes.c_double) for name in _NUMBERS),
        ("rows", ctypes.c_int * _MAX_PROCESSES),
    ]


class SharedLimits:
    """The limits of a client, shared by all processes of a machine that open the same file.

    The folder of the file is created. Processes with other limits keep their own.

    Raises:
        StorageError: The file cannot be created.
    """

    def __init__(self, path: Path, rates: Rates) -> None:
        self._rates = rates
        self._path = path
        self._unsent_requests = 0
        self._unsent_tokens = 0.0
        make_folder(path.parent)
        size = ctypes.sizeof(_State)
        with storage(path, "open the limits of a client"):
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            if os.fstat(self._file).st_size < size:
                os.ftruncate(self._file, size)
            self._state = _State.from_buffer(mmap.mmap(self._file, size))
            with locked(self._file):
                self._row, self._holder = self._free_row()
                self._state.rows[self._row] = 0
                self._state.used = max(self._state.used, self._row + 1.0)

    def acquire(self, tokens: float) -> float:
        """Take a request and its tokens, if there is room.

        Returns:
            0 if the request may be sent now; otherwise seconds after which to ask again.
        """
        with locked(self._file):
            now = self._begin()
            state = self._state
            wait = max(state.blocked - now, self._wait(now))
            if wait > 0:
                return wait
            if self._is_held_up():
                return _FULL_SECONDS
            if self._is_full():
                self._drop_dead_rows()
                if self._is_full():
                    return _FULL_SECONDS
            state.rows[self._row] += 1
            requests_per_minute, tokens_per_minute, _ = self._rates
            if requests_per_minute:
                state.requests = max(state.requests, now) + 60 / requests_per_minute
            if tokens_per_minute:
                state.tokens = max(state.tokens, now) + 60 * tokens / tokens_per_minute
            return 0.0

    @contextmanager
    def sending(self, tokens: float) -> Iterator[None]:
        """Count a request as taken and not yet sent in the block, such as while it connects.

        `acquire` refuses others while as many are unsent as may be sent at once. Otherwise slow
        connections could send requests of a long time at once, and exceed the limit.
        """
        self._unsent_requests += 1
        self._unsent_tokens += tokens
        try:
            yield
        finally:
            self._unsent_requests -= 1
            self._unsent_tokens -= tokens

    def release(self, unused_tokens: float = 0, *, succeeded: bool = False) -> None:
        """End a request.

        ``unused_tokens`` were taken and not used; they are negative if more were used. Many
        requests that succeeded allow more in flight.
        """
        with locked(self._file):
            self._begin()
            state = self._state
            state.rows[self._row] = max(0, state.rows[self._row] - 1)
            per_second = self._rates.tokens_per_minute / 60
            if per_second and unused_tokens:
                state.tokens -= unused_tokens / per_second
            if succeeded and state.allowed < self._rates.max_in_flight:
                self._grow()

    def lower(self, requests_per_minute: float, tokens_per_minute: float) -> None:
        """Keep to the limits that a server announces, where they are lower; 0 for none."""
        announced = (requests_per_minute, tokens_per_minute)
        both = [
            min(limit, least) if limit and least else limit or least
            for limit, least in zip(self._rates[:2], announced, strict=True)
        ]
        self._rates = Rates(both[0], both[1], self._rates.max_in_flight)

    def block(self, seconds: float) -> None:
        """Let no process send a request for some seconds."""
        with locked(self._file):
            until = self._begin() + min(seconds, _LONGEST_BLOCK_SECONDS)
            self._state.blocked = max(self._state.blocked, until)

    def cut(self) -> None:
        """Halve the requests in flight, because the server is overloaded."""
        with locked(self._file):
            now, state = self._begin(), self._state
            if now - state.cut >= _CUT_SECONDS:
                state.allowed = max(1.0, min(state.allowed, self._in_flight() + 1) / 2)
                state.successes, state.cut = 0, now

    @property
    def allowed(self) -> int:
        """Requests that may be in flight at present, in all processes."""
        with locked(self._file):
            self._begin()
            return int(min(self._state.allowed, self._rates.max_in_flight))

    @property
    def in_flight(self) -> int:
        """Requests in flight of all processes."""
        with locked(self._file):
            self._drop_dead_rows()
            return self._in_flight()

    def close(self) -> None:
        """Give up the row of this process."""
        with locked(self._file):
            self._state.rows[self._row] = 0
        del self._state
        os.close(self._holder)
        os.close(self._file)

    def _begin(self) -> float:
        """Return the time, and forget times far ahead, which are of before a restart."""
        now, state = time.monotonic(), self._state
        latest = now + _LONGEST_BLOCK_SECONDS
        if state.requests > latest:
            state.requests = 0
        if state.tokens > latest:
            state.tokens = 0
        if state.blocked > latest:
            state.blocked = 0
        if state.cut > now:
            state.cut = 0
        if not state.allowed:
            state.allowed = self._rates.max_in_flight
        return now

    def _wait(self, now: float) -> float:
        """Return the seconds until the limits a minute have room."""
        until = 0.0
        if self._rates.requests_per_minute:
            until = self._state.requests
        if self._rates.tokens_per_minute:
            until = max(until, self._state.tokens)
        return until - now - _BURST_SECONDS

    def _is_held_up(self) -> bool:
        """Return whether as much is taken and not yet sent as may be sent at once."""
        requests_per_minute, tokens_per_minute, _ = self._rates
        most = _BURST_SECONDS / 60
        requests, tokens = self._unsent_requests, self._unsent_tokens
        too_many = requests_per_minute and requests >= most * requests_per_minute
        too_large = tokens_per_minute and tokens >= most * tokens_per_minute
        return bool(requests and (too_many or too_large))

    def _grow(self) -> None:
        """Count a success: more in flight after as many as are allowed."""
        state = self._state
        state.successes += 1
        if state.successes >= state.allowed:
            state.successes = 0
            state.allowed = max(state.allowed * _GROWTH, state.allowed + 1)

    def _is_full(self) -> bool:
        return self._in_flight() >= min(self._state.allowed, self._rates.max_in_flight)

    def _in_flight(self) -> int:
        return sum(self._state.rows[: int(self._state.used)])

    def _drop_dead_rows(self) -> None:
        """Set the counts of processes that have died to 0."""
        for row, count in enumerate(self._state.rows):
            if row != self._row and count:
                descriptor = self._row_lock(row)
                if descriptor is not None:
                    self._state.rows[row] = 0
                    os.close(descriptor)

    def _free_row(self) -> tuple[int, int]:
        for row in range(_MAX_PROCESSES):
            descriptor = self._row_lock(row)
            if descriptor is not None:
                return row, descriptor
        msg = f"more than {_MAX_PROCESSES} processes use it"
        raise OSError(msg)

    def _row_lock(self, row: int) -> int | None:
        """Return the locked file of a row; ``None`` if another process holds it."""
        path = self._path.with_name(f"{self._path.name}.{row}")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if lock_at_once(descriptor):
            return descriptor
        os.close(descriptor)
        return None
