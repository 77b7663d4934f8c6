"""Tests of artefacts, of their versions, and of results in parts."""

import os
import pickle
import shutil
from pathlib import Path

import pytest

from dagster_dataops import To, config, data_register, load_artefact
from dagster_dataops.checkpoints.folder.manifest import load_result
from dagster_dataops.datasets.artefact import (
    Artefact,
    damage,
    digest_of_listing,
    held,
    is_version,
    list_files,
    listing_of,
    path_form,
)
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.exporters.exporter import ExportRecords
from dagster_dataops.datasets.version_folders import REMOVED, discard, put_version
from dagster_dataops.errors import InputError, ResultMissingError
from dagster_dataops.foundation.concurrency.file_lock import unused
from dagster_dataops.foundation.places.parted_file import PartedFile
from dagster_dataops.pipelines.tracing.tracer import trace
from tests.execution.helpers import MODES, act, node, operator_for, plan, run, write_input
from tests.nodes import NodeFolder, ResumePolicy, deleting, published
from tests.object_stores import FakeStore, machine
from tests.parted_results import is_single, parts_of, put_in_parts, store_in_parts


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


_GROUP = "data.parted_results"
_calls: list[int] = []


@data_register(_GROUP)
def noted(record):
    _calls.append(record["n"])
    if record.get("fails"):
        raise ValueError("no")
    record["noted"] = True


@data_register(_GROUP, outputs=("odd", "even"))
def routed(record):
    return To("odd" if record["n"] % 2 else "even")


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    _calls.clear()


def numbered(path: Path, count: int = 20) -> JsonlDataset:
    return write_input(path / "in.jsonl", [{"n": n} for n in range(count)])


def single(folder: NodeFolder, count: int = 20, **settings: object) -> JsonlDataset:
    """Return the result of a run in single mode."""
    source = numbered(folder.path.parent, count)
    return run(noted(_concurrency_mode="single", **settings), source, folder).dataset


def test_a_result_in_parts_is_read_like_one_file(tmp_path: Path) -> None:
    folder = node(tmp_path)
    made = single(folder)
    content, records = folder.result.read_bytes(), made.read()
    put_in_parts(folder, 7)

    assert [part.count(b"\n") for part in parts_of(folder)] == [7, 7, 6]
    found = load_result(folder)
    assert found == made
    assert (found.read(), found.identity) == (records, made.identity)
    assert b"".join(ExportRecords(found).lines()) == content
    assert [record["n"] for record in found.stream().skip(5).and_return()] == list(range(5, 20))


@pytest.mark.parametrize("mode", MODES)
def test_the_next_operator_reads_parts_like_one_file(tmp_path: Path, mode: str) -> None:
    first, source = node(tmp_path, "first"), write_input(tmp_path / "in.jsonl", plan(["keep"] * 40))
    dataset = run(act(), source, first).dataset
    results = []
    for name in ("file", "parts"):
        second = node(tmp_path / name)
        run(operator_for(mode, 3), dataset, second)
        results.append(second.result.read_bytes())
        put_in_parts(first, 9) if name == "file" else None
        dataset = load_result(first)
    assert results[0] == results[1]


def test_a_finished_result_in_parts_is_reused_as_it_is(tmp_path: Path) -> None:
    folder = node(tmp_path)
    single(folder)
    manifest = put_in_parts(folder, 7)
    _calls.clear()

    operator = noted(_concurrency_mode="single")
    source = JsonlDataset.of_file(tmp_path / "in.jsonl")
    report = run(operator, source, folder, reuse_finished=True)

    assert report.reused
    assert not _calls
    assert report.manifest == manifest
    assert len(parts_of(folder)) == 3


def test_another_result_replaces_the_parts_which_readers_may_still_read(tmp_path: Path) -> None:
    folder = node(tmp_path)
    single(folder, 10_000)
    put_in_parts(folder, 500)
    records = iter(load_result(folder))
    next(records)

    single(folder, 10_001)
    assert is_single(folder)
    assert len(list(records)) == 9_999
    single(folder, 10_002)
    deleting.finish()
    assert not folder.parts.exists()


def test_the_same_result_replaces_the_parts(tmp_path: Path) -> None:
    folder = node(tmp_path)
    single(folder)
    content = folder.result.read_bytes()
    put_in_parts(folder, 7)

    single(folder)

    assert is_single(folder)
    assert folder.result.read_bytes() == content
    found = published(folder)
    assert found is not None
    assert found[1].parted == ""


def test_failed_records_of_parts_are_retried_alone(tmp_path: Path) -> None:
    folder = node(tmp_path)
    source = write_input(tmp_path / "in.jsonl", [{"n": n, "fails": n % 5 == 0} for n in range(23)])
    operator = noted(_concurrency_mode="single")
    run(operator, source, folder)
    kept = folder.result.read_bytes()
    put_in_parts(folder, 4)
    _calls.clear()

    run(operator, source, folder, run="again", resume=ResumePolicy.FAILED_RECORDS)

    assert _calls == [0, 5, 10, 15, 20]
    assert is_single(folder)
    assert folder.result.read_bytes() == kept


def test_outcomes_in_parts_are_reused_for_a_grown_input(tmp_path: Path) -> None:
    folder = node(tmp_path)
    single(folder, _reuse_outcomes=True)
    put_in_parts(folder, 4)
    _calls.clear()

    operator = noted(_concurrency_mode="single", _reuse_outcomes=True)
    run(operator, numbered(tmp_path, 30), folder, run="again", resume=ResumePolicy.AUTO)

    assert _calls == list(range(20, 30))
    assert is_single(folder)


def test_an_edited_part_is_noticed_and_made_again(tmp_path: Path) -> None:
    folder = node(tmp_path)
    single(folder)
    before = folder.result.read_bytes()
    put_in_parts(folder, 4)
    handle, part = load_result(folder), PartedFile(folder.result).paths[2]
    times = part.stat()
    part.write_bytes(part.read_bytes().replace(b"true", b"null"))
    os.utime(part, ns=(times.st_atime_ns, times.st_mtime_ns))

    assert published(folder) is None
    with pytest.raises(InputError, match="changed after its handle was made"):
        handle.check_content()
    run(noted(_concurrency_mode="single"), numbered(tmp_path), folder, reuse_finished=True)
    assert folder.result.read_bytes() == before


def test_a_missing_part_is_an_error_and_not_a_shorter_result(tmp_path: Path) -> None:
    folder = node(tmp_path)
    single(folder)
    put_in_parts(folder, 4)
    handle = load_result(folder)
    PartedFile(folder.result).paths[-1].unlink()
    assert published(folder) is None
    with pytest.raises(InputError):
        handle.check_content()
    PartedFile(folder.result).paths[1].unlink()
    with pytest.raises(InputError):
        handle.read()
    folder.result.unlink()
    with pytest.raises(ResultMissingError):
        load_result(folder)


def test_a_copied_folder_with_parts_is_a_result(tmp_path: Path) -> None:
    folder = node(tmp_path)
    single(folder)
    put_in_parts(folder, 4)
    shutil.copytree(folder.path, tmp_path / "copy", symlinks=True)
    moved = load_result(NodeFolder(tmp_path / "copy", folder.name))
    assert moved.path == tmp_path / "copy" / folder.result.name
    assert moved.read() == load_result(folder).read()


def test_a_line_of_parts_is_traced_like_one_of_a_single_file(tmp_path: Path) -> None:
    folder, source = node(tmp_path), write_input(tmp_path / "in.jsonl", plan(["keep"] * 30))
    run(act(), source, folder)
    found = []
    for _ in range(2):
        made = [trace(folder.path, line=line) for line in (1, 12, 30)]
        found.append([one.sources for one in made])
        put_in_parts(folder, 7) if not folder.result.is_symlink() else None
    assert found[0] == found[1]


def test_named_outputs_in_parts_are_read_and_replaced(tmp_path: Path) -> None:
    source = numbered(tmp_path)
    folder = node(tmp_path).with_outputs(("odd", "even"))
    operator = routed(_concurrency_mode="single")
    run(operator, source, folder)
    records = {name: load_result(place).read() for name, place in folder.outputs.items()}
    put_in_parts(folder, 3)

    assert {name: load_result(one).read() for name, one in folder.outputs.items()} == records
    assert run(operator, source, folder, reuse_finished=True).reused
    run(operator, source, folder, run="again")
    assert all(map(is_single, folder.outputs.values()))
    assert {name: load_result(one).read() for name, one in folder.outputs.items()} == records


def test_a_result_in_parts_on_a_store_is_fetched_and_replaced(tmp_path: Path) -> None:
    store = FakeStore()
    here = node(machine(tmp_path / "here", store))
    made = run(noted(_concurrency_mode="single"), numbered(tmp_path), here)
    records = made.dataset.read()
    store_in_parts(here, 7)

    there = node(machine(tmp_path / "there", store))
    assert load_result(there).read() == records
    assert len(parts_of(there)) == 3
    run(noted(_concurrency_mode="single"), numbered(tmp_path), there, run="again")
    assert is_single(there)
    first = node(machine(tmp_path / "here", store))
    assert load_result(first).read() == records
    assert is_single(first)


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
