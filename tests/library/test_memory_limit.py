import pytest

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.memory_limit import memory_bytes


def test_memory_is_given_in_megabytes() -> None:
    assert memory_bytes(2) == 2 << 20
    with pytest.raises(DefinitionError, match="max_memory_mb must be at least 1, got 0"):
        memory_bytes(0)
