"""The calls of the services of a test."""

import pytest

from tests.loading import recording


@pytest.fixture
def calls():
    """What services were called, in order; empty at first."""
    recording.CALLS.clear()
    yield recording.CALLS
    recording.CALLS.clear()
