"""End a forked copy of this process that returns from an operator's call.

An operator may fork. A copy that returns would continue the run, and journal every record a second
time. Check for a copy each time control returns from the operator, before any lock is taken:
another thread may have held that lock when the copy was made.
"""

import os
from typing import Final

_MESSAGE: Final = (
    "dagster-dataops: a process forked by an operator returned from the operator's call; it is "
    "ended now. End forked processes with os._exit().\n"
)


class ForkGuard:
    """Remember the process that creates it."""

    def __init__(self) -> None:
        self._pid = os.getpid()

    def check(self) -> None:
        """End this process at once if it is a copy."""
        if os.getpid() != self._pid:
            try:
                os.write(2, _MESSAGE.encode())
            finally:
                os._exit(1)
