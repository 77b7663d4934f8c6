from pathlib import Path

from dagster_dataops.datasets.artefact import damage, list_files, listing_of
from dagster_dataops.datasets.version_folders import REMOVED, discard, put_version
from dagster_dataops.foundation.concurrency.background import deleting


def _put(folder: Path, text: str) -> Path:
    draft = folder / ".draft"
    draft.mkdir()
    (draft / "file").write_text(text)
    return put_version(draft, list_files(draft))


def test_equal_contents_are_one_version(tmp_path: Path) -> None:
    first, again, other = (_put(tmp_path, text) for text in ("one", "one", "two"))
    deleting.finish()
    assert first == again != other
    assert {path.name for path in tmp_path.iterdir()} == {
        name for path in (first, other) for name in (path.name, listing_of(path).name)
    }


def test_a_damaged_version_is_replaced(tmp_path: Path) -> None:
    version = _put(tmp_path, "one")
    (version / "file").write_text("changed")
    assert damage(version)
    assert _put(tmp_path, "one") == version
    assert not damage(version)


def test_a_discarded_folder_goes_with_its_listing(tmp_path: Path) -> None:
    version = _put(tmp_path, "one")
    (tmp_path / f"{REMOVED}earlier").mkdir()
    for path in (version, tmp_path / f"{REMOVED}earlier", tmp_path / "missing"):
        discard(path)
    deleting.finish()
    assert list(tmp_path.iterdir()) == []
