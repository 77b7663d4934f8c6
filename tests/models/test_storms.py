"""A long run against a server that fails, limits the rate, breaks connections and restarts."""

from pathlib import Path

import pytest

from tests.faults.model_storm import Ask, storm
from tests.registries import OperatorRegistry


@pytest.mark.slow
def test_every_record_is_right_or_in_the_error_file_by_class(
    registry: OperatorRegistry, root: Path
):
    found = storm(registry("data.storms")(Ask), 2000, root)

    assert found.faults == []
    assert sum(found.failed.values()) > 15
