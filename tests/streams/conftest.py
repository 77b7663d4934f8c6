"""The fixture that tests of the index and of its random order share."""

import pytest

from tests.streams.indexed_files import records, write


@pytest.fixture
def source(tmp_path):
    """A file of 100 records."""
    return write(tmp_path / "source.jsonl", records(100))
