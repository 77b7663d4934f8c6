"""Hands standard output and error, and the heartbeat's memory, to a worker that is there already.

What a parent writes to changes while a worker lives: Dagster has every step write to files of its
own. Descriptors cross with one byte, which comes before a run's first message.
"""

import io
import os
import socket
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_MOST: Final = 3
_CLOSE_ON_EXEC: Final = getattr(socket, "MSG_CMSG_CLOEXEC", 0)  # Linux


def send_streams(connection: "Connection[bytes, bytes]", heartbeat: int) -> None:
    """Send what this process writes to now; nothing, where a stream is closed.

    Args:
        connection: To the worker.
        heartbeat: Descriptor of the shared memory; -1 for none.

    Raises:
        OSError: The worker has ended.
    """
    null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    try:
        given = [number if _is_open(number) else null for number in (1, 2)]
        with socket.socket(fileno=os.dup(connection.fileno())) as channel:
            socket.send_fds(channel, [b"\0"], [*given, *([heartbeat] * (heartbeat >= 0))])
    finally:
        os.close(null)


def receive_streams(connection: "Connection[bytes, bytes]") -> int:
    """Write where the parent writes now.

    Returns:
        The heartbeat's descriptor; -1 for none.

    Raises:
        EOFError: The parent has closed the connection.
    """
    with socket.socket(fileno=os.dup(connection.fileno())) as channel:
        said, given, _, _ = socket.recv_fds(channel, 1, _MOST, _CLOSE_ON_EXEC)
    if not said:
        raise EOFError
    for standard, descriptor in zip((1, 2), given, strict=False):
        os.dup2(descriptor, standard)
        os.close(descriptor)
    if isinstance(sys.stdout, io.TextIOWrapper):  # not what a user's module has put there
        sys.stdout.reconfigure(line_buffering=os.isatty(1))
    return given[2] if len(given) > 2 else -1


def leave_streams() -> None:
    """Write nowhere: whoever reads what the parent wrote waits for the end of all who write."""
    flush_streams()
    null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    for standard in (1, 2):
        os.dup2(null, standard)
    os.close(null)


def flush_streams() -> None:
    """Write what is still in a buffer."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
