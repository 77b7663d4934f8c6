"""Channel: pickled messages over a socket, without ever waiting for the other side to read."""

import pickle
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

_LENGTH: Final = struct.Struct("<Q")
_RECEIVE_BYTES: Final = 1 << 20


class Channel:
    """Messages over a socket.

    Args:
        connection: The socket, which is made non-blocking.
    """

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(0.0)
        self._socket = connection
        self._incoming = bytearray()
        self._outgoing = bytearray()
        self.ended = False

    def fileno(self) -> int:
        """Return the descriptor of the socket."""
        return self._socket.fileno()

    @property
    def full(self) -> bool:
        """Whether messages wait until the other side reads."""
        return bool(self._outgoing)

    def send(self, message: object) -> None:
        """Send a message, now or by a later `flush`."""
        data = pickle.dumps(message)
        self._outgoing += _LENGTH.pack(len(data)) + data
        self.flush()

    def flush(self) -> None:
        """Send as much as the other side takes."""
        try:
            while self._outgoing:
                del self._outgoing[: self._socket.send(self._outgoing)]
        except BlockingIOError:
            pass
        except OSError:  # the other side has ended
            self._outgoing.clear()

    def receive(self) -> Iterator[Any]:
        """Yield the messages that have arrived; set ``ended`` if no other will."""
        with suppress(BlockingIOError):
            try:
                while data := self._socket.recv(_RECEIVE_BYTES):
                    self._incoming += data
            except ConnectionError:
                pass
            self.ended = True
        yield from self._unpacked()

    def _unpacked(self) -> Iterator[Any]:
        while len(self._incoming) >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(self._incoming)
            end = _LENGTH.size + size
            if len(self._incoming) < end:
                return
            message = pickle.loads(self._incoming[_LENGTH.size : end])  # noqa: S301 - our own
            del self._incoming[:end]
            yield message

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
