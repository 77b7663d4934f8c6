"""`SharedLimits`: the limits of a client, shared by all processes of a machine.

The state is a small mapped file, changed under a lock. Requests and tokens a minute use the generic
cell rate algorithm: of each limit only the time up to which it is used up is stored, so that a
process that dies holds nothing of it. Each process has a row with its number of requests in flight,
and holds the lock of a file of the same number: a row whose lock is free is not counted.
"""

import fcntl
import mmap
import os
import struct
import time
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from dagster_dataops.concurrency.file_lock import locked
from dagster_dataops.datasets.durable_files import make_folder, storage

_HEAD: Final = struct.Struct("ddddddd")
_ROW: Final = struct.Struct("i")
_MAX_PROCESSES: Final = 256
_SIZE: Final = _HEAD.size + _MAX_PROCESSES * _ROW.size
_BURST_SECONDS: Final = 0.5  # the share of a minute's limit that may be used at once
_LONGEST_BLOCK_SECONDS: Final = 3600.0
_FULL_SECONDS: Final = 0.01  # after which to ask again when too many requests are in flight
_CUT_SECONDS: Final = 1.0  # at most one cut in this time: overloads come in bursts
_GROWTH: Final = 1.1


class Rates(NamedTuple):
    """The limits of a client; 0 for no limit of requests or tokens."""

    requests_per_minute: float = 0
    tokens_per_minute: float = 0
    max_in_flight: int = 200


class _State(NamedTuple):
    """The head of the file.

    Attributes:
        requests: Monotonic time up to which requests are used up.
        tokens: The same for tokens.
        blocked: Monotonic time before which no request may be sent.
        allowed: Requests in flight that the server can bear; 0 before the first request.
        successes: Requests that succeeded since ``allowed`` was last changed.
        cut: Monotonic time when ``allowed`` was last reduced.
        rows: Number of rows that were ever used; the others are not read.
    """

    requests: float
    tokens: float
    blocked: float
    allowed: float
    successes: float
    cut: float
    rows: float


class SharedLimits:
    """The limits of a client, shared by all processes of a machine that open the same file.

    Args:
        path: The file; its folder is created.
        rates: The limits. Processes with other limits keep their own.

    Raises:
        StorageError: The file cannot be created.
    """

    def __init__(self, path: Path, rates: Rates) -> None:
        self._rates = rates
        self._path = path
        make_folder(path.parent)
        with storage(path, "open the limits of a client"):
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            if os.fstat(self._file).st_size < _SIZE:
                os.ftruncate(self._file, _SIZE)
            self._memory = mmap.mmap(self._file, _SIZE)
            with locked(self._file):
                self._row, self._holder = self._free_row()
                self._set_count(self._row, 0)
                state = self._state(time.monotonic())
                self._write(state._replace(rows=max(state.rows, self._row + 1.0)))

    def acquire(self, tokens: float) -> float:
        """Take a request and its tokens, if there is room.

        Returns:
            0 if the request may be sent now; otherwise seconds after which to ask again.
        """
        with locked(self._file):
            now = time.monotonic()
            state = self._state(now)
            wait = max(state.blocked - now, self._wait(state, now))
            if wait > 0:
                return wait
            if self._is_full(state):
                self._drop_dead_rows()
                if self._is_full(state):
                    return _FULL_SECONDS
            self._set_count(self._row, self._count(self._row) + 1)
            self._write(self._used(state, now, 1, tokens))
            return 0.0

    def release(self, unused_tokens: float = 0, *, succeeded: bool = False) -> None:
        """End a request.

        Args:
            unused_tokens: Tokens that were taken and not used; negative if more were used.
            succeeded: Whether there was a reply; many of them allow more requests in flight.
        """
        with locked(self._file):
            self._set_count(self._row, max(0, self._count(self._row) - 1))
            now = time.monotonic()
            state = self._state(now)
            per_second = self._rates.tokens_per_minute / 60
            if per_second and unused_tokens:
                state = state._replace(tokens=state.tokens - unused_tokens / per_second)
            self._write(self._grown(state) if succeeded else state)

    def lower(self, requests_per_minute: float, tokens_per_minute: float) -> None:
        """Keep to the limits that a server announces, where they are lower; 0 for none."""
        announced = (requests_per_minute, tokens_per_minute)
        both = [
            min(own, other) if own and other else own or other
            for own, other in zip(self._rates[:2], announced, strict=True)
        ]
        self._rates = Rates(both[0], both[1], self._rates.max_in_flight)

    def block(self, seconds: float) -> None:
        """Let no process send a request for some seconds."""
        with locked(self._file):
            now = time.monotonic()
            state = self._state(now)
            until = now + min(seconds, _LONGEST_BLOCK_SECONDS)
            self._write(state._replace(blocked=max(state.blocked, until)))

    def cut(self) -> None:
        """Halve the requests in flight, because the server is overloaded."""
        with locked(self._file):
            now = time.monotonic()
            state = self._state(now)
            if now - state.cut >= _CUT_SECONDS:
                allowed = max(1.0, min(state.allowed, self._in_flight(state) + 1) / 2)
                self._write(state._replace(allowed=allowed, successes=0, cut=now))

    @property
    def allowed(self) -> int:
        """Requests that may be in flight at present, in all processes."""
        with locked(self._file):
            return int(min(self._state(time.monotonic()).allowed, self._rates.max_in_flight))

    @property
    def in_flight(self) -> int:
        """Requests in flight of all processes."""
        with locked(self._file):
            self._drop_dead_rows()
            return self._in_flight(self._state(time.monotonic()))

    def close(self) -> None:
        """Give up the row of this process."""
        with locked(self._file):
            self._set_count(self._row, 0)
        self._memory.close()
        os.close(self._holder)
        os.close(self._file)

    def _wait(self, state: _State, now: float) -> float:
        """Return the seconds until the limits a minute have room."""
        return max(
            used - now - _BURST_SECONDS if rate else 0.0
            for used, rate in zip(state[:2], self._rates[:2], strict=True)
        )

    def _used(self, state: _State, now: float, requests: float, tokens: float) -> _State:
        """Return the state with requests and tokens taken."""
        until = [
            max(used, now) + 60 * amount / rate if rate else used
            for used, rate, amount in zip(
                state[:2], self._rates[:2], (requests, tokens), strict=True
            )
        ]
        return state._replace(requests=until[0], tokens=until[1])

    def _grown(self, state: _State) -> _State:
        """Return the state after a success: more in flight after as many as are allowed."""
        if state.allowed >= self._rates.max_in_flight:
            return state
        if state.successes + 1 < state.allowed:
            return state._replace(successes=state.successes + 1)
        return state._replace(successes=0, allowed=max(state.allowed * _GROWTH, state.allowed + 1))

    def _state(self, now: float) -> _State:
        state = _State(*_HEAD.unpack_from(self._memory))
        # Times far ahead are of before a restart of the machine.
        latest = now + _LONGEST_BLOCK_SECONDS
        requests, tokens, blocked = (at if at <= latest else 0.0 for at in state[:3])
        return _State(
            requests,
            tokens,
            blocked,
            allowed=state.allowed or float(self._rates.max_in_flight),
            successes=state.successes,
            cut=state.cut if state.cut <= now else 0.0,
            rows=state.rows,
        )

    def _write(self, state: _State) -> None:
        _HEAD.pack_into(self._memory, 0, *state)

    def _count(self, row: int) -> int:
        (count,) = _ROW.unpack_from(self._memory, _HEAD.size + row * _ROW.size)
        return int(count)

    def _set_count(self, row: int, count: int) -> None:
        _ROW.pack_into(self._memory, _HEAD.size + row * _ROW.size, count)

    def _is_full(self, state: _State) -> bool:
        return self._in_flight(state) >= min(state.allowed, self._rates.max_in_flight)

    def _in_flight(self, state: _State) -> int:
        rows = self._memory[_HEAD.size : _HEAD.size + int(state.rows) * _ROW.size]
        return sum(count for (count,) in _ROW.iter_unpack(rows))

    def _drop_dead_rows(self) -> None:
        """Set the counts of processes that have died to 0."""
        for row in range(_MAX_PROCESSES):
            if row != self._row and self._count(row):
                descriptor = self._row_lock(row)
                if descriptor is not None:
                    self._set_count(row, 0)
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
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        os.close(descriptor)
        return None
