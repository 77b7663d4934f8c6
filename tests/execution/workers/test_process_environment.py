"""The environment that workers share with their parent."""

from pathlib import Path

import pytest


def test_workers_have_the_environment_and_the_folder_of_their_parent_as_they_are_now(
    where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHERE", "here")
    assert where(1)["variable"] == "here"
    monkeypatch.delenv("WHERE")
    monkeypatch.chdir(tmp_path)
    found = where(2)
    assert (found["variable"], found["folder"]) == (None, str(tmp_path))
