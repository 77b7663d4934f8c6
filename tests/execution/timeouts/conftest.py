"""The fixture that lets go of hanging calls."""

from collections.abc import Iterator

import pytest

from tests.execution.timeouts.hanging import RELEASE


@pytest.fixture(autouse=True)
def _let_go() -> Iterator[None]:
    """Let hanging calls return when a test has ended."""
    RELEASE.clear()
    yield
    RELEASE.set()
