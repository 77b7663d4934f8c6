"""Arguments of stages: what cannot be is refused where the stream is built."""

from typing import Final

from dagster_dataops.errors import StreamArgumentError, StreamDefinitionError

_SEED_LIMIT: Final = 2**64


def check_callable(stage: str, argument: str, given: object) -> None:
    """Refuse what cannot be called."""
    if not callable(given):
        reason = f"{argument} is a {type(given).__name__}; it must be a function"
        raise StreamArgumentError(stage, reason)


def check_count(stage: str, argument: str, given: object, least: int) -> None:
    """Refuse what is no integer of at least ``least``."""
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        reason = f"{argument} is {given!r}; it must be an integer of at least {least}"
        raise StreamArgumentError(stage, reason)
    if given < least:
        raise StreamDefinitionError(stage, f"{argument} is {given}; it must be at least {least}")


def check_seed(stage: str, seed: object) -> None:
    """Refuse a seed that is no integer of 64 bits."""
    if seed is not None and not (isinstance(seed, int) and 0 <= seed < _SEED_LIMIT):
        raise StreamArgumentError(stage, f"seed is {seed!r}; it must be an integer below 2^64")
