"""Check the arguments of stages when a stream is built."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any, Final

from dagster_dataops.errors import StreamArgumentError, StreamDefinitionError

_SEED_LIMIT: Final = 2**64


def check_callable(stage: str, argument: str, given: object) -> None:
    """Raise `StreamArgumentError` unless ``given`` is callable."""
    if not callable(given):
        reason = f"{argument} is a {type(given).__name__}; it must be a function"
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
            given = " and ".join(values)
            reason = f"fn is called with {given}, which {name}{signature} does not take: {error}"
            raise StreamArgumentError(stage, reason) from None


def check_count(stage: str, argument: str, given: object, least: int) -> None:
    """Raise an error unless ``given`` is an integer of at least ``least``.

    Raises:
        StreamArgumentError: It is not a non-negative integer.
        StreamDefinitionError: It is a non-negative integer below ``least``.
    """
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        reason = f"{argument} is {given!r}; it must be an integer of at least {least}"
        raise StreamArgumentError(stage, reason)
    if given < least:
        raise StreamDefinitionError(stage, f"{argument} is {given}; it must be at least {least}")


def texts(stage: str, argument: str, given: Iterable[str] | None) -> tuple[str, ...] | None:
    """Return a list of texts as a tuple; ``None`` for ``None``.

    Raises:
        StreamArgumentError: It is one text, or holds something else.
    """
    if given is None:
        return None
    found = tuple(given)
    if isinstance(given, str) or not all(isinstance(one, str) for one in found):
        raise StreamArgumentError(stage, f"{argument} is {given!r}; it must be a list of texts")
    return found


def check_seed(stage: str, seed: object) -> None:
    """Raise `StreamArgumentError` unless ``seed`` is ``None`` or an unsigned 64-bit integer."""
    if seed is not None and not is_seed(seed):
        reason = f"seed is {seed!r}; it must be an integer from 0 to 2^64 - 1"
        raise StreamArgumentError(stage, reason)


def is_seed(given: object) -> bool:
    """Return whether ``given`` is an unsigned 64-bit integer."""
    return type(given) is int and 0 <= given < _SEED_LIMIT
