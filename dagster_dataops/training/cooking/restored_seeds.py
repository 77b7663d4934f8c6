"""`with_restored_seeds`: seed the global random numbers by the record that a function gets."""

import functools
import inspect
import os
import random
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import orjson
import xxhash

from dagster_dataops.foundation.hashing.values import digest
from dagster_dataops.records import RESTORE_KEY

_NUMPY_SEEDS: Final = 1 << 32  # numpy.random takes seeds below this number

_lock = threading.RLock()  # the global random numbers belong to all threads of a process


def _renew_lock() -> None:
    """Forget a lock that another thread of the parent process held."""
    global _lock  # noqa: PLW0603 - the thread that held it does not exist in this process
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def with_restored_seeds(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, called with random numbers that depend on its record alone.

    While it runs, `random`, `numpy.random` and PyTorch (each if it was imported) are seeded by the
    restore keys of the records among its arguments, or by the arguments if none has a key. Then
    their states are as before. Calls in several threads wait for one another.
    """
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        msg = (
            f"stateless(restore_seeds=True) takes no coroutine function, and {function.__name__} "
            "is one; make it a function, or draw from random.Random(key of the record)"
        )
        raise TypeError(msg)

    @functools.wraps(function)
    def seeded(*args: Any, **kwargs: Any) -> Any:
        return _called_seeded(function, args, kwargs)

    return seeded


def _called_seeded(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call a function; a function of its own, so that wrappers can be sent to processes."""
    with _lock, _seeded(_seed_of([*args, *kwargs.values()])):
        result = function(*args, **kwargs)
        return iter(list(result)) if inspect.isgenerator(result) else result


def _seed_of(arguments: Iterable[Any]) -> int:
    values = list(arguments)
    keys = [key for value in values for key in _keys_of(value)]
    text = (
        orjson.dumps(keys)
        if keys
        else digest([value for value in values if _is_data(value)]).encode()
    )
    return xxhash.xxh3_64_intdigest(text)


def _keys_of(value: Any) -> Iterator[Any]:
    """Yield the restore keys of a record, or of the records in a list."""
    if isinstance(value, Mapping):
        if value.get(RESTORE_KEY):
            yield value[RESTORE_KEY]
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _keys_of(item)


def _is_data(value: Any) -> bool:
    """Return whether an argument is a record or a batch, and no object such as a task encoder."""
    return isinstance(value, (Mapping, list, tuple, str, bytes, int, float)) or hasattr(
        value, "dtype"
    )


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed the global random numbers, and set their states back at the end."""
    with ExitStack() as states:
        states.callback(random.setstate, random.getstate())
        random.seed(seed)
        if (numpy := sys.modules.get("numpy")) is not None:
            states.callback(numpy.random.set_state, numpy.random.get_state())
            numpy.random.seed(seed % _NUMPY_SEEDS)
        if (torch := sys.modules.get("torch")) is not None:
            devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
            states.enter_context(torch.random.fork_rng(devices))
            torch.manual_seed(seed)
        yield
