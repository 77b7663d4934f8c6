"""Standard streams: send standard output and error, and the heartbeat, to a running worker.

The parent's output files change while a worker lives: Dagster has separate files for every step.
The descriptors are sent with one byte, before the first message of a run.
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
    """Send the standard streams of this process; ``/dev/null`` for a closed one.

    Args:
        connection: To the worker.
        heartbeat: Descriptor of the shared memory; -1 for none.

    Raises:
        OSError: The worker has ended.
    """
    null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    try:
        descriptors = [number if _is_open(number) else null for number in (1, 2)]
        with socket.socket(fileno=os.dup(connection.fileno())) as channel:
            socket.send_fds(channel, [b"\0"], [*descriptors, *([heartbeat] * (heartbeat >= 0))])
    finally:
        os.close(null)


def receive_streams(connection: "Connection[bytes, bytes]") -> int:
    """Make the parent's standard streams those of this process.

    Returns:
        The heartbeat's descriptor; -1 for none.

    Raises:
        EOFError: The parent has closed the connection.
    """
    with socket.socket(fileno=os.dup(connection.fileno())) as channel:
        said, descriptors, _, _ = socket.recv_fds(channel, 1, _MOST, _CLOSE_ON_EXEC)
    if not said:
        raise EOFError
    for standard, descriptor in zip((1, 2), descriptors, strict=False):
        os.dup2(descriptor, standard)
        os.close(descriptor)
    if isinstance(sys.stdout, io.TextIOWrapper):  # not an object of a user's module
        sys.stdout.reconfigure(line_buffering=os.isatty(1))
    return descriptors[2] if len(descriptors) > 2 else -1


def leave_streams() -> None:
    """Write to ``/dev/null``: readers of the parent's output wait until all writers have ended."""
    flush_streams()
    null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    for standard in (1, 2):
        os.dup2(null, standard)
    os.close(null)


def flush_streams() -> None:
    """Flush standard output and error."""
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
