"""A ledger of finished calls: the number of each record in a file that every process appends to.

It survives a SIGKILL, because each entry is one write of the same length.
"""

import os
from pathlib import Path

LEDGER = "BENCHMARK_LEDGER"  # the variable with the path
ENTRY = 8  # bytes: seven digits and a line end


def add(number: int) -> None:
    """Append the number of a record whose call is finished."""
    descriptor = os.open(os.environ[LEDGER], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(descriptor, b"%07d\n" % number)
    finally:
        os.close(descriptor)


def calls(ledger: Path) -> int:
    """Return the finished calls, those of no record included."""
    return ledger.stat().st_size // ENTRY if ledger.exists() else 0


def numbers(ledger: Path) -> list[int]:
    """Return the records of the finished calls, in the order in which they finished."""
    return [int(line) for line in ledger.read_bytes().split()]
