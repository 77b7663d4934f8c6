"""Put the memory of this process in huge pages, so that forks of it copy fewer page tables."""

import ctypes
import sys
from pathlib import Path
from typing import Final

_HUGE_PAGE: Final = 2 << 20  # bytes
_MADV_COLLAPSE: Final = 25  # of Linux 6.1 and later; earlier ones refuse it
_ANONYMOUS: Final = 5  # columns of a line in the table of memory: there is no file


def use_huge_pages() -> None:
    """Put the memory that is in use now in huge pages, where the system can.

    A process that has imported all tests has half a gigabyte of it, and a fork takes 35 ms of
    processor time, most of it for page tables; with huge pages it takes 15 ms.
    """
    if sys.platform != "linux":
        return
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for line in Path("/proc/self/maps").read_text().splitlines():
        bounds, rights, *others = line.split()
        if rights == "rw-p" and (2 + len(others) == _ANONYMOUS or others[-1] == "[heap]"):
            begin, end = (int(bound, 16) for bound in bounds.split("-"))
            for address in range(-(-begin // _HUGE_PAGE) * _HUGE_PAGE, end, _HUGE_PAGE):
                advise(address, min(_HUGE_PAGE, end - address), _MADV_COLLAPSE)
