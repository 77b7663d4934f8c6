"""Tests of dagster_dataops.execution.runners.artefact_runner."""

import errno
import os
import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from dagster_dataops import data_register, load_artefact, load_result
from dagster_dataops.errors import (
    DatasetOperatorError,
    OperatorDefinitionError,
    OperatorOptionError,
    OutageError,
    RecordError,
    ResultMissingError,
    RetryRefusedError,
    RunStoppedError,
    StorageError,
)
from tests.execution.helpers import Listener, error_rows, look_at_every_tick, node, run, write_input
from tests.faults.failing import failing
from tests.nodes import NodeFolder, ResumePolicy, deleting, held, published

group = data_register.new_group("artefact_runner_tests")
RECORDS = [{"n": n} for n in range(10)]


class Numbers(group):
    """Write the numbers, and call a function of the folder."""

    def __init__(self, then=None, **kwargs):
        super().__init__(**kwargs)
        self.then = then

    def build(self, records, folder):
        assert not list(folder.iterdir())
        assert isinstance(records, Iterator)
        (folder / "numbers").write_text(" ".join(str(record["n"]) for record in records))
        return self.then(folder) if self.then else None


class Pairs(group):
    def build(self, left, right, folder):
        (folder / "pairs").write_text(str([len(list(left)), len(list(right))]))


@pytest.fixture
def dataset(tmp_path: Path):
    return write_input(tmp_path / "input.jsonl", RECORDS)


@pytest.fixture
def folder(tmp_path: Path) -> NodeFolder:
    return node(tmp_path, "index")


def versions(folder: NodeFolder) -> list[str]:
    deleting.finish()
    return sorted(path.name for path in folder.artefact.iterdir() if path.is_dir())


def test_the_result_is_a_folder_with_a_listing_of_its_files(dataset, folder: NodeFolder) -> None:
    report = run(Numbers(), dataset, folder)
    assert report.artefact == load_artefact(folder).path
    assert (report.artefact / "numbers").read_text() == "0 1 2 3 4 5 6 7 8 9"
    (row,) = load_result(folder).read()
    assert (row["path"], row["size_bytes"]) == ("numbers", 19)
    assert report.manifest.fingerprint == f"xxh3:{report.manifest.artefact}"
    counts = (report.manifest.rows_in, report.manifest.rows_out, report.manifest.dropped)
    assert counts == (10, 1, 0)


def test_several_inputs_come_separately(dataset, folder: NodeFolder) -> None:
    run(Pairs(), [dataset, dataset], folder)
    assert (load_artefact(folder).path / "pairs").read_text() == "[10, 10]"


def test_two_inputs_are_joined_for_an_operator_that_takes_one(dataset, folder: NodeFolder) -> None:
    report = run(Numbers(), [dataset, dataset], folder)
    assert report.manifest.rows_in == 20


def test_a_finished_artefact_is_used_again_until_something_changes(
    tmp_path: Path, dataset, folder: NodeFolder
) -> None:
    first = run(Numbers(), dataset, folder, run="first")
    again = run(Numbers(), dataset, folder, run="again", reuse_finished=True)
    assert again.reused
    assert again.artefact == first.artefact
    assert "already finished by run first: 1 file," in again.notes[0]
    other = write_input(tmp_path / "other.jsonl", RECORDS[:5])
    assert not run(Numbers(), other, folder, reuse_finished=True).reused
    assert not run(Numbers(then=_return), other, folder, reuse_finished=True).reused


def _return(folder: Path) -> Path:
    return folder


@pytest.mark.parametrize("policy", [ResumePolicy.AUTO, ResumePolicy.NEVER])
def test_an_artefact_that_was_changed_is_built_anew(
    dataset, folder: NodeFolder, policy: ResumePolicy
) -> None:
    first = run(Numbers(), dataset, folder)
    (first.artefact / "numbers").write_text("edited")
    assert published(folder) is None
    again = run(Numbers(), dataset, folder, resume=policy, reuse_finished=True)
    assert not again.reused
    assert again.artefact == first.artefact
    assert (load_artefact(folder).path / "numbers").read_text().startswith("0 1")
    assert versions(folder) == [first.artefact.name]


def test_an_equal_artefact_that_is_built_anew_stays_where_it_is(
    dataset, folder: NodeFolder
) -> None:
    first = run(Numbers(), dataset, folder)
    inode = (first.artefact / "numbers").stat().st_ino
    again = run(Numbers(), dataset, folder, run="again")
    assert not again.reused
    assert (again.artefact / "numbers").stat().st_ino == inode
    assert versions(folder) == [first.artefact.name]


def test_the_version_before_stays_until_the_second_publication(
    tmp_path: Path, folder: NodeFolder
) -> None:
    built = []
    for count in (1, 2, 3, 4):
        dataset = write_input(tmp_path / f"{count}.jsonl", RECORDS[:count])
        built.append(run(Numbers(), dataset, folder).artefact.name)
        assert versions(folder) == sorted(built[-2:])


def test_a_version_in_use_is_not_removed(tmp_path: Path, folder: NodeFolder) -> None:
    def build(count: int) -> Path:
        dataset = write_input(tmp_path / f"{count}.jsonl", RECORDS[:count])
        return run(Numbers(), dataset, folder).artefact

    first = build(1)
    with held([first]):
        for count in (2, 3, 4):
            build(count)
        assert (first / "numbers").read_text() == "0"
    build(5)
    assert not first.exists()
    assert len(versions(folder)) == 2


@pytest.mark.parametrize("value", [3, {}, "text", Path("/elsewhere")])
def test_a_value_that_build_returns_is_refused(dataset, folder: NodeFolder, value) -> None:
    with pytest.raises(DatasetOperatorError, match=f"build returned a {type(value).__name__}"):
        run(Numbers(then=lambda _: value), dataset, folder)


def test_an_empty_folder_is_refused(dataset, folder: NodeFolder) -> None:
    with pytest.raises(DatasetOperatorError, match="build wrote nothing"):
        run(Numbers(then=lambda folder: (folder / "numbers").unlink()), dataset, folder)


def test_a_link_is_refused_and_named(dataset, folder: NodeFolder) -> None:
    with pytest.raises(DatasetOperatorError, match="'link' is a link or a special file"):
        run(Numbers(then=lambda folder: (folder / "link").symlink_to("numbers")), dataset, folder)


def _fail(folder: Path) -> None:
    raise ValueError("broken")


def test_an_error_leaves_the_artefact_before_and_no_draft(dataset, folder: NodeFolder) -> None:
    first = run(Numbers(), dataset, folder)
    with pytest.raises(DatasetOperatorError, match="ValueError: broken") as caught:
        run(Numbers(then=_fail), dataset, folder)
    assert "in _fail" in caught.value.traceback_text
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert load_artefact(folder).path == first.artefact
    assert versions(folder) == [first.artefact.name]


def test_a_line_that_is_no_record_goes_to_the_error_file(tmp_path: Path, folder) -> None:
    dataset = write_input(tmp_path / "input.jsonl", RECORDS)
    dataset.path.write_bytes(dataset.path.read_bytes() + b"[1]\n")
    report = run(Numbers(), write_again(dataset), folder)
    assert (report.manifest.rows_in, report.manifest.failed) == (11, 1)
    assert error_rows(folder)[0]["line"] == 11
    with pytest.raises(RecordError, match="line 11"):
        run(Numbers(_ignore_errors=False), write_again(dataset), folder, run="again")
    dataset.path.write_bytes(b"{1}\n")
    with pytest.raises(OutageError):
        run(Numbers(), write_again(dataset), folder)


def write_again(dataset):
    return type(dataset).of_file(dataset.path)


def test_a_stop_is_heeded_while_records_are_read(
    dataset, folder: NodeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_at_every_tick(monkeypatch)
    with pytest.raises(RunStoppedError):
        run(Numbers(), dataset, folder, should_stop=lambda: "told to", progress=Listener())
    assert not folder.result.exists()
    assert versions(folder) == []


@pytest.mark.parametrize("call", ["fsync", "open"])
def test_a_disk_that_refuses_is_named_and_leaves_the_artefact_before(
    tmp_path: Path, dataset, folder: NodeFolder, call: str
) -> None:
    first = run(Numbers(), dataset, folder)
    other = write_input(tmp_path / "other.jsonl", RECORDS[:3])
    with failing(call, "numbers", errno.EIO), pytest.raises(StorageError, match=r"\.draft-"):
        run(Numbers(), other, folder)
    assert load_artefact(folder).path == first.artefact
    assert run(Numbers(), other, folder).artefact != first.artefact


def test_a_full_disk_in_build_is_an_error_of_the_operator(dataset, folder: NodeFolder) -> None:
    def fill(folder: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(DatasetOperatorError, match="No space left on device"):
        run(Numbers(then=fill), dataset, folder)


def test_failed_records_cannot_be_retried_alone(dataset, folder: NodeFolder) -> None:
    dataset.path.write_bytes(dataset.path.read_bytes() + b"[1]\n")
    dataset = write_again(dataset)
    run(Numbers(), dataset, folder)
    with pytest.raises(RetryRefusedError, match="an artefact is built from all records at once"):
        run(Numbers(), dataset, folder, run="again", resume=ResumePolicy.FAILED_RECORDS)


def test_an_option_that_was_removed_or_changed_fails_the_run(
    tmp_path: Path, dataset, folder: NodeFolder
) -> None:
    artefact = run(Numbers(), dataset, folder).artefact

    class Use(group):
        def __init__(self, index, **kwargs):
            super().__init__(**kwargs)

        def forward(self, record):
            return record

    (artefact / "numbers").write_text("edited")
    with pytest.raises(ResultMissingError, match="numbers was changed"):
        run(Use(index=artefact), dataset, node(tmp_path, "use"))
    shutil.rmtree(folder.path)
    with pytest.raises(ResultMissingError, match="does not exist"):
        run(Use(index=artefact), dataset, node(tmp_path, "use"))


def test_settings_and_exports_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OperatorOptionError, match="must be saved"):
        Numbers(_save_data=False)
    with pytest.raises(OperatorOptionError, match="_reuse_outcomes"):
        Numbers(_reuse_outcomes=True)
    with pytest.raises(OperatorOptionError, match="copy the folder"):
        Numbers().set_output(tmp_path)


def _without_folder(self, records): ...
def _folder_first(self, folder, records): ...
def _with_option(self, records, folder, size=3): ...
def _yields(self, records, folder):
    yield


async def _waits(self, records, folder): ...


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (_without_folder, r"build must take \(self, records, folder\).* takes \(self, records\)"),
        (_folder_first, "build must take"),
        (_with_option, "options belong to __init__"),
        (_yields, "cannot `yield`"),
        (_waits, "cannot be `async def`"),
    ],
)
def test_other_signatures_are_refused(build, expected: str) -> None:
    with pytest.raises(OperatorDefinitionError, match=expected):
        type("Wrong", (group,), {"build": build, "__qualname__": "Wrong", "__module__": __name__})


def test_a_record_operator_may_have_a_method_named_build() -> None:
    class Record(group):
        def forward(self, record):
            return self.build(record)

        def build(self, record):
            return record

    assert Record.__dataops_spec__.kind.name == "record"
