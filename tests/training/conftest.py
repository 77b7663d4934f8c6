"""Keep the indices of the tests in their folders."""

import pytest


@pytest.fixture(autouse=True)
def index_folder(tmp_path, monkeypatch):
    """The cache folder of the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "dagster_dataops" / "indices"
