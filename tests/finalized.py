"""An object in a cycle, whose finalizer writes in which process it ran."""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class _Finalized:
    def __init__(self, path: Path) -> None:
        self.cycle, self.path = self, path

    def __del__(self) -> None:
        with self.path.open("a") as file:
            file.write(f"{os.getpid()}\n")


@contextmanager
def garbage_of_this_process(path: Path) -> Iterator[None]:
    """Make garbage that copies of this process inherit; check that no copy finalizes it."""
    gc.disable()
    try:
        _Finalized(path)
        yield
        assert not path.exists()
    finally:
        gc.enable()
    gc.collect()
    assert path.read_text() == f"{os.getpid()}\n"
