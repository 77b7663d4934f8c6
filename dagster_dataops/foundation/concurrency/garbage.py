"""How often the garbage collector of this process looks at objects."""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_OBJECTS: Final = 20_000  # those of some hundred calls

_lock = threading.Lock()
_thresholds: list[tuple[int, int, int]] = []  # those to restore, one for each block
_frozen: Final[list[bool]] = []  # has an item once frozen objects were found


@contextmanager
def collected_rarely() -> Iterator[None]:
    """Collect garbage in the block only after 20,000 new objects.

    The objects of calls in flight are no garbage yet when the collector looks at them as often as
    usual. That takes a sixth of the CPU time of a call of a model, a fifth of the time to define a
    thousand assets, and a tenth of the time to import this package. Blocks may overlap in threads;
    the last one restores the thresholds.
    """
    with _lock:
        usual = _thresholds[0] if _thresholds else gc.get_threshold()
        _thresholds.append(usual)
        if 0 < usual[0] < _OBJECTS:  # 0: the user has turned it off
            gc.set_threshold(_OBJECTS, *usual[1:])
    try:
        yield
    finally:
        with _lock:
            _thresholds.pop()
            if not _thresholds:
                gc.set_threshold(*usual)


@contextmanager
def objects_that_stay() -> Iterator[None]:
    """Collect garbage rarely in the block, and look at its objects rarely after it.

    Use it to import modules, whose objects are no garbage. After the block, all objects of the
    process are in the oldest generation, without a collection, which takes a twentieth of the time
    of a first run. In a process with frozen objects it only collects rarely: `gc.unfreeze` would
    unfreeze those, too.
    """
    with collected_rarely():
        yield
        if not _has_frozen_objects():
            gc.freeze()
            gc.unfreeze()


def _has_frozen_objects() -> bool:
    """Return whether this process, or that from which it was forked, has frozen objects.

    They are counted one by one, 30 ms for those of a large process: not again once there are any.
    """
    if not _frozen and gc.get_freeze_count():
        _frozen.append(True)
    return bool(_frozen)
