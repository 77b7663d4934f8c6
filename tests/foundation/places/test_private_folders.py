"""Tests of folders of this user in the temporary folder: nobody else's are used."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from dagster_dataops.configuration import config, root_setting
from dagster_dataops.errors import ConfigurationError, StorageError
from dagster_dataops.foundation.places.private_folders import ForeignFolderError, private_folder
from dagster_dataops.training.filestores.tars import index_cache


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def _link(place: Path) -> None:
    (place.parent.parent / "elsewhere").mkdir()
    place.symlink_to(place.parent.parent / "elsewhere")


def _dangling(place: Path) -> None:
    place.symlink_to(place.parent.parent / "nowhere")


def _open(place: Path) -> None:
    place.mkdir()
    place.chmod(0o777)


def _sticky(place: Path) -> None:
    place.mkdir()
    place.chmod(0o1777)


def _of_another(place: Path) -> None:
    if os.getuid():
        pytest.skip("only root can make a folder of another user")
    place.mkdir(mode=0o700)
    os.chown(place, 65534, 65534)


PLANTED = pytest.mark.parametrize(
    "plant", [_link, _dangling, _open, _sticky, _of_another, Path.touch]
)


def test_a_folder_is_created_for_this_user_alone(temporary: Path) -> None:
    before = os.umask(0)
    try:
        folder = private_folder("ours")
    finally:
        os.umask(before)
    assert folder == temporary / f"ours-{os.getuid()}"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert private_folder("ours") == folder


@pytest.mark.parametrize("mode", [0o755, 0o775, 0o2770])
def test_a_folder_of_this_user_that_others_cannot_write_to_becomes_private(
    temporary: Path, mode: int
) -> None:
    folder = temporary / f"ours-{os.getuid()}"
    folder.mkdir()
    folder.chmod(mode)
    (folder / "kept").touch()
    private_folder("ours")
    assert stat.S_IMODE(folder.stat().st_mode) & 0o777 == 0o700
    assert (folder / "kept").exists()


@PLANTED
def test_what_another_user_may_have_made_is_refused_and_left_alone(
    temporary: Path, plant: Callable[[Path], None]
) -> None:
    place = temporary / f"ours-{os.getuid()}"
    plant(place)
    before = place.lstat()
    with pytest.raises(ForeignFolderError, match="remove it"):
        private_folder("ours")
    assert place.lstat() == before


@PLANTED
def test_no_working_copy_is_made_in_a_folder_of_another_user(
    temporary: Path, plant: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DATAOPS_DATA_PROCESS_SCRATCH", raising=False)
    config.data_process_scratch = None
    plant(temporary / f"dagster-dataops-{os.getuid()}")
    with pytest.raises(ConfigurationError, match="DATAOPS_DATA_PROCESS_SCRATCH"):
        root_setting("root", "memory://bucket/results")


@PLANTED
def test_no_index_is_read_from_a_folder_of_another_user(
    temporary: Path, plant: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    (temporary / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(temporary / "file"))
    plant(temporary / f"dagster_dataops-{os.getuid()}")
    with pytest.raises(StorageError, match="XDG_CACHE_HOME"):
        index_cache.cache_folder()


def test_indices_are_kept_in_the_temporary_folder_without_a_home(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (temporary / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(temporary / "file"))
    folder = index_cache.cache_folder()
    assert folder == temporary / f"dagster_dataops-{os.getuid()}" / "indices"
    assert folder.is_dir()
