"""Results that version 0.2 wrote in parts are read, retried, reused and replaced."""

import os
import shutil
from pathlib import Path

import pytest

from dagster_dataops import To
from dagster_dataops.checkpoints.folder.manifest import NodeFolder, load_result, published
from dagster_dataops.checkpoints.resume.resume_policy import ResumePolicy
from dagster_dataops.data import data_register
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.exporters.exporter import ExportRecords
from dagster_dataops.errors import InputError, ResultMissingError
from dagster_dataops.foundation.concurrency.background import deleting
from dagster_dataops.foundation.places.parted_file import PartedFile
from dagster_dataops.pipelines.tracing.tracer import trace
from tests.execution.helpers import MODES, act, node, operator_for, plan, run, write_input
from tests.object_stores import FakeStore, machine
from tests.parted_results import is_single, parts_of, put_in_parts, store_in_parts

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
