"""The option ``max_memory_mb`` of operators that see whole sets."""

from dagster_dataops.errors import DefinitionError


def memory_bytes(max_memory_mb: int) -> int:
    """Return the option ``max_memory_mb`` in bytes.

    Raises:
        DefinitionError: It is less than 1.
    """
    if max_memory_mb < 1:
        msg = f"max_memory_mb must be at least 1, got {max_memory_mb}"
        raise DefinitionError(msg)
    return max_memory_mb << 20
