"""The calls of the services of a test."""

import gc

import pytest

from tests.training.loading import recording


@pytest.fixture
def calls():
    """What services were called, in order; empty at first."""
    gc.collect()  # loaders of earlier tests, which call their services as they end
    recording.CALLS.clear()
    yield recording.CALLS
    recording.CALLS.clear()
