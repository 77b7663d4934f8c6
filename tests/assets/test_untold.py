"""Notes of results that Dagster was not told of yet."""

from pathlib import Path

import pytest

from dagster_dataops.assets.untold import all_told, begin_untold, untold_runs
from dagster_dataops.checkpoints.manifest import NodeFolder


def test_every_run_that_worked_on_a_folder_untold_is_known_until_it_is_told(tmp_path: Path) -> None:
    folder, other = NodeFolder(tmp_path / "a", "a"), NodeFolder(tmp_path / "b", "b")
    assert untold_runs(folder) == frozenset()
    begin_untold(folder, "one")
    begin_untold(folder, "two")
    begin_untold(folder, "two")
    assert untold_runs(folder) == {"one", "two"}
    assert untold_runs(other) == frozenset()
    all_told([folder, other])
    assert untold_runs(folder) == frozenset()


@pytest.mark.parametrize("content", [b"", b"{", b"3", b"\xff"])
def test_a_note_that_cannot_be_read_is_none(content: bytes, tmp_path: Path) -> None:
    folder = NodeFolder(tmp_path, "a")
    begin_untold(folder, "one")
    (note,) = tmp_path.iterdir()
    note.write_bytes(content)
    assert untold_runs(folder) == frozenset()
