import pytest


@pytest.fixture(autouse=True)
def indices(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "indices"))
