"""Tests of dagster_dataops.datasets.artefact."""

import os
import pickle
import shutil
from pathlib import Path

import pytest

from dagster_dataops import config, data_register, load_artefact
from dagster_dataops.datasets.artefact import (
    Artefact,
    damage,
    digest_of_listing,
    held,
    is_version,
    list_files,
    path_form,
)
from dagster_dataops.errors import ResultMissingError
from dagster_dataops.foundation.concurrency.file_lock import unused


class Files(data_register.new_group("artefact_tests")):
    """Write the text of each record to the file that it names."""

    def build(self, records, folder):
        for record in records:
            (folder / record["name"]).parent.mkdir(parents=True, exist_ok=True)
            (folder / record["name"]).write_text(record["text"])


RECORDS = [{"name": "a", "text": "A"}, {"name": "inner/b", "text": "BB"}]


@pytest.fixture
def version() -> Path:
    return Files()(RECORDS)


def test_a_handle_has_path_digest_size_and_number_of_files(version: Path) -> None:
    artefact = load_artefact(version)
    assert (artefact.path, artefact.size_bytes, artefact.files) == (version, 3, 2)
    assert artefact.digest == version.name
    assert os.fspath(artefact) == str(version)
    assert pickle.loads(pickle.dumps(artefact)) == artefact


def test_the_digest_is_that_of_names_and_bytes(tmp_path: Path, version: Path) -> None:
    other = tmp_path / "other"
    (other / "inner").mkdir(parents=True)
    (other / "inner" / "b").write_text("BB")
    (other / "a").write_text("A")
    assert digest_of_listing(list_files(other)) == version.name
    (other / "a").rename(other / "c")
    assert digest_of_listing(list_files(other)) != version.name


def test_an_empty_folder_counts(tmp_path: Path) -> None:
    before = digest_of_listing(list_files(tmp_path))
    (tmp_path / "empty").mkdir()
    assert [row["path"] for row in list_files(tmp_path)] == ["empty/"]
    assert digest_of_listing(list_files(tmp_path)) != before


def test_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    with pytest.raises(ValueError, match="'link' is a link or a special file"):
        list_files(tmp_path)


def test_a_name_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    with open(os.fsencode(tmp_path) + b"/\xff", "wb"):  # noqa: PTH123 - no name of a Path
        pass
    with pytest.raises(ValueError, match="is not UTF-8"):
        list_files(tmp_path)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda path: (path / "a").write_text("C"), "a was changed"),
        (lambda path: (path / "a").write_text("longer"), "a was changed"),
        (lambda path: (path / "a").unlink(), "a is missing"),
        (lambda path: (path / "c").write_text(""), "c was added"),
        (lambda path: (path / "empty").mkdir(), "empty/ was added"),
        (lambda path: (path / "inner" / "b").rename(path / "b"), "inner/b is missing, b was added"),
        (lambda path: (path / "c").symlink_to("a"), "is a link"),
        (lambda path: path.with_name(f"{path.name}.jsonl").write_text("{}\n"), "the listing"),
        (lambda path: path.with_name(f"{path.name}.jsonl").write_text("["), "cannot be read"),
        (lambda path: path.with_name(f"{path.name}.jsonl").unlink(), "does not exist"),
        (lambda path: path.rename(path.with_name("x")), "does not exist"),
    ],
)
def test_a_change_is_noticed(version: Path, change, expected: str) -> None:
    assert damage(version) == ""
    change(version)
    assert expected in damage(version)
    with pytest.raises(ResultMissingError, match="Materialize the operator that writes it"):
        Artefact.at(version)


def test_a_change_is_noticed_whose_times_and_size_are_set_back(version: Path) -> None:
    before = (version / "a").stat()
    (version / "a").write_text("Z")
    os.utime(version / "a", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert "a was changed" in damage(version)


def test_many_changes_are_counted(version: Path) -> None:
    for number in range(9):
        (version / f"n{number}").touch()
    assert damage(version).endswith("and 6 more")


def test_files_that_were_only_touched_are_intact(version: Path) -> None:
    (version / "a").touch()
    (version / "inner" / "b").chmod(0o600)
    assert damage(version) == ""


def test_the_form_of_a_version_is_its_content_and_not_its_place(
    tmp_path: Path, version: Path
) -> None:
    with config.temporary(data_process_path=tmp_path / "elsewhere"):
        other = Files()(RECORDS)
    assert other != version
    assert path_form(other) == path_form(version) == {"artefact": version.name}
    (version / "a").write_text("B")
    assert path_form(version) not in ({"artefact": version.name}, None)


def test_other_paths_have_no_form(tmp_path: Path, version: Path) -> None:
    for path in (tmp_path, version / "a", version.parent, tmp_path / ("0" * 32)):
        assert not is_version(path)
        assert path_form(path) is None
    assert not is_version(str(version))


def test_a_version_may_be_missing_or_lie_elsewhere(tmp_path: Path, version: Path) -> None:
    missing = version.with_name("0" * 32)
    assert is_version(missing)
    assert path_form(missing) == {"artefact": "unreadable"}
    copy = tmp_path / version.name
    shutil.copytree(version, copy)
    shutil.copy(version.with_name(f"{version.name}.jsonl"), tmp_path)
    assert path_form(copy) == {"artefact": version.name}
    assert load_artefact(copy).path == copy


def test_a_version_that_is_held_is_used(version: Path) -> None:
    with held([version]):
        with unused(version) as free:
            assert not free
        with held([version]):  # by several at once
            pass
    with unused(version) as free:
        assert free


def test_a_version_that_was_changed_cannot_be_held(version: Path) -> None:
    (version / "a").unlink()
    with pytest.raises(ResultMissingError, match="a is missing"), held([version]):
        pytest.fail("it was held")
