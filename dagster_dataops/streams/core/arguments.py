"""Check the arguments of stages when a stream is built."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any, Final

from dagster_dataops.errors import StreamArgumentError, StreamDefinitionError

_SEED_LIMIT: Final = 2**64


def check_callable(stage: str, argument: str, value: object) -> None:
    """Raise `StreamArgumentError` unless ``value`` is callable."""
    if not callable(value):
        reason = f"{argument} is a {type(value).__name__}; it must be a function"
        raise StreamArgumentError(stage, reason)


def check_takes(stage: str, functions: Iterable[Callable[..., Any]], *values: str) -> None:
    """Raise `StreamArgumentError` unless functions can be called with some values, by position."""
    for function in functions:
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):  # some functions that are not written in Python have none
            continue
        try:
            signature.bind(*values)
        except TypeError as error:
            name = getattr(function, "__qualname__", type(function).__name__)
            words = " and ".join(values)
            reason = f"fn is called with {words}, which {name}{signature} does not take: {error}"
            raise StreamArgumentError(stage, reason) from None


def check_count(stage: str, argument: str, value: object, least: int) -> None:
    """Raise an error unless ``value`` is an integer of at least ``least``."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        reason = f"{argument} is {value!r}; it must be an integer of at least {least}"
        raise StreamArgumentError(stage, reason)
    if value < least:
        raise StreamDefinitionError(stage, f"{argument} is {value}; it must be at least {least}")


def texts(stage: str, argument: str, values: Iterable[str] | None) -> tuple[str, ...] | None:
    """Return a list of texts as a tuple; ``None`` for ``None``.

    Raises:
        StreamArgumentError: It is one text, or holds something else.
    """
    if values is None:
        return None
    checked = tuple(values)
    if isinstance(values, str) or not all(isinstance(value, str) for value in checked):
        raise StreamArgumentError(stage, f"{argument} is {values!r}; it must be a list of texts")
    return checked


def check_seed(stage: str, seed: object) -> None:
    """Raise `StreamArgumentError` unless ``seed`` is ``None`` or an unsigned 64-bit integer."""
    if seed is not None and not is_seed(seed):
        reason = f"seed is {seed!r}; it must be an integer from 0 to 2^64 - 1"
        raise StreamArgumentError(stage, reason)


def is_seed(seed: object) -> bool:
    """Return whether ``seed`` is an unsigned 64-bit integer."""
    return type(seed) is int and 0 <= seed < _SEED_LIMIT
