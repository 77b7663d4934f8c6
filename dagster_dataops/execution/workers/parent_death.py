"""Parent death: end a worker when its parent ends, by a pipe.

The parent holds the only writing end. When that end closes, the kernel kills the worker at once.
"""

import fcntl
import os
import select
import signal
from typing import Final, NoReturn

_F_SETSIG: Final = getattr(fcntl, "F_SETSIG", None)  # Linux


def end_with_parent(descriptor: int) -> None:
    """Make the kernel kill this process when the other end of ``descriptor`` closes."""
    bound = _signalled_by(descriptor)
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    if poll.poll(0):  # the pipe closed before this process was bound
        os._exit(1)
    if not bound:
        import threading

        threading.Thread(target=_exit_at_end_of, args=(descriptor,), daemon=True).start()


def _signalled_by(descriptor: int) -> bool:
    """Make the kernel watch the pipe, which works even while C code holds the interpreter."""
    if _F_SETSIG is None:
        return False
    try:
        # The process to signal is a property of the open file, which all workers share. So reopen
        # it.
        reopened = os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    fcntl.fcntl(reopened, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(reopened, _F_SETSIG, signal.SIGKILL)
    flags = fcntl.fcntl(reopened, fcntl.F_GETFL)
    fcntl.fcntl(reopened, fcntl.F_SETFL, flags | os.O_ASYNC)
    return True


def _exit_at_end_of(descriptor: int) -> NoReturn:
    os.read(descriptor, 1)
    os._exit(1)
