"""Fixtures that several modules of this folder share."""

import pytest


@pytest.fixture
def written(tmp_path):
    """Write a table to a file and return its path."""

    def write(content, name="a.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write
