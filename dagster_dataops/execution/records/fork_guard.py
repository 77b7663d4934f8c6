"""Clones: what is left of a run in a process that an operator forked and let come back.

It would go on with the run as if it were the run, and settle everything a second time.
"""

import os
from typing import Final

_MESSAGE: Final = (
    "dagster-dataops: a process that an operator forked came back from the operator's call; it "
    "ends here. End such processes with os._exit().\n"
)


class Original:
    """The process in which this was made."""

    def __init__(self) -> None:
        self._pid = os.getpid()

    def end_clone(self) -> None:
        """End this process at once if it is another one."""
        if os.getpid() != self._pid:
            try:
                os.write(2, _MESSAGE.encode())
            finally:
                os._exit(1)
