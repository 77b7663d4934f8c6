"""Tests of dagster_dataops.datasets.exporters.delivery: whole or not at all, and current or not."""

import fcntl
import os
import shutil
from pathlib import Path

import orjson
import pytest

from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.exporters import folder_swap
from dagster_dataops.datasets.exporters.delivery import Delivery, Exported
from dagster_dataops.datasets.exporters.exporter import ExportRecords, UnfitValueError
from dagster_dataops.errors import ExportError, StorageError
from tests.datasets.exporters.folders import names_in
from tests.nodes import write_records


class Numbers:
    """Writes the numbers of the records, to a file or to two files of a folder."""

    format = "numbers"

    def __init__(self, place="file"):
        self.place = place

    def write(self, records, place):
        for index, record in enumerate(records):
            if record["n"] == "bad":
                raise UnfitValueError(index, "n", "it is bad", "Drop it.")
        text = " ".join(str(record["n"]) for record in records)
        if self.place == "file":
            place.write_text(text)
        else:
            (place / "inner").mkdir()
            (place / "inner" / "one").write_text(text)
            (place / "two").write_text(text)


@pytest.fixture
def dataset(tmp_path: Path) -> JsonlDataset:
    return write_records(tmp_path / "in.jsonl", [{"n": n} for n in range(3)], "test")


def delivered(target: Path, dataset: JsonlDataset, place: str = "file", origin: str = "o"):
    with Delivery(Numbers(place), target, target.parent / "receipt", origin) as delivery:
        found = delivery.current()
        if found is not None:
            return found, False
        delivery.write(ExportRecords(dataset))
        return delivery.place(), True


@pytest.mark.parametrize("place", ["file", "folder"])
def test_an_export_is_made_once_and_again_if_anything_about_it_has_changed(
    tmp_path, dataset, place
):
    target = tmp_path / "out" / "target"
    one = target if place == "file" else target / "inner" / "one"

    def made(origin="o") -> bool:
        export, new = delivered(target, dataset, place, origin)
        assert export == Exported.load(tmp_path / "out" / "receipt")
        assert (export.rows, export.format, export.target) == (3, "numbers", target)
        assert one.read_text() == "0 1 2"
        return new

    assert made()
    assert not made()
    assert made("other origin")
    assert not made("other origin")
    one.write_text("0 1 3")  # same size
    assert made("other origin")
    one.unlink()
    assert made("other origin")
    os.utime(one)  # another change time, the same bytes
    assert not made("other origin")
    receipt = tmp_path / "out" / "receipt"
    if place == "file":
        receipt.write_bytes(orjson.dumps({**orjson.loads(receipt.read_bytes()), "files": []}))
        assert made("other origin")

    receipt.write_text("{")
    assert made("other origin")
    if place == "folder":
        (target / "more").touch()
        assert made("other origin")
        assert names_in(target) == [".dataops_export", "inner", "two"]
    assert names_in(tmp_path / "out") == ["receipt", "target"]


def test_the_size_and_the_files_of_an_export_are_known(tmp_path, dataset):
    export, _ = delivered(tmp_path / "target", dataset, "folder")

    assert [file["path"] for file in export.files] == ["inner/one", "two"]
    assert export.size_bytes == 10


def test_a_file_with_the_same_bytes_is_not_replaced(tmp_path, dataset):
    target = tmp_path / "target"
    delivered(target, dataset)
    before = target.stat().st_ino

    assert delivered(target, dataset, origin="another")[1]
    assert target.stat().st_ino == before


@pytest.mark.parametrize("place", ["file", "folder"])
def test_a_record_that_does_not_fit_keeps_the_earlier_export(tmp_path, dataset, place):
    target = tmp_path / "out" / "target"
    delivered(target, dataset, place)
    bad = write_records(tmp_path / "bad.jsonl", [{"n": 1}, {"n": "bad"}], "test")

    with pytest.raises(ExportError, match=r"record 1 \(.*bad.jsonl, line 2\), column 'n': it is"):
        delivered(target, bad, place, "bad")
    assert not delivered(target, dataset, place)[1]
    assert names_in(tmp_path / "out") == ["receipt", "target"]


def test_lines_that_are_no_records_do_not_count_in_the_place_of_an_error(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text('{"n":1}\n\nnonsense\n{"n":"bad"}\n')

    assert ExportRecords(JsonlDataset.of_file(path)).place_of(1) == (path, 4)
    with pytest.raises(IndexError):
        ExportRecords(JsonlDataset.of_file(path)).place_of(2)


def test_drafts_of_dead_processes_are_removed_and_those_in_use_are_kept(tmp_path, dataset):
    target = tmp_path / "out" / "target"
    with Delivery(Numbers(), target, tmp_path / "receipt", "o") as delivery:
        delivery.write(ExportRecords(dataset))
        (draft,) = (tmp_path / "out").iterdir()
        shutil.copytree(draft, tmp_path / "copy")
    dead = draft.with_name(f"{draft.name[:-1]}_")
    (tmp_path / "copy").rename(dead)
    other = tmp_path / "out" / ".dataops-export-0000-1"
    other.mkdir()
    used = draft.with_name(f"{draft.name[:-1]}-")
    used.mkdir()
    descriptor = os.open(used, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)

    delivered(target, dataset)

    os.close(descriptor)
    names = set(names_in(tmp_path / "out"))
    assert dead.name not in names
    assert {used.name, other.name, "target"} <= names


@pytest.mark.parametrize("moment", ["before it is opened", "while it is removed"])
def test_a_draft_that_another_process_removes_before_it_is_locked_is_made_again(
    tmp_path, dataset, monkeypatch, moment
):
    target = tmp_path / "out" / "target"
    plain, holders, held = os.open, [], []

    def raced(path, flags, *more, **options):
        if Path(path).parent == target.parent and not holders:
            held.append(Path(path))
            holders.append(plain(path, flags))
            fcntl.flock(holders[0], fcntl.LOCK_EX)
            if moment == "before it is opened":
                Path(path).rmdir()
        return plain(path, flags, *more, **options)

    monkeypatch.setattr("dagster_dataops.datasets.exporters.delivery.os.open", raced)
    delivered(target, dataset)
    monkeypatch.undo()
    os.close(holders[0])
    assert target.read_text() == "0 1 2"
    assert held[0].exists() == (moment == "while it is removed")


def test_a_folder_that_no_export_wrote_is_refused_and_an_empty_one_is_taken(tmp_path, dataset):
    target = tmp_path / "target"
    target.mkdir()
    assert delivered(target, dataset, "folder")[1]
    shutil.rmtree(target)
    target.mkdir()
    for number in range(5):
        (target / f"{number}").touch()

    with pytest.raises(StorageError, match=r"\(0, 1, 2 and 2 more\)"):
        delivered(target, dataset, "folder")
    assert len(names_in(target)) == 5


def test_the_input_and_the_results_of_nodes_are_never_replaced(tmp_path, dataset):
    content = dataset.path.read_bytes()
    (tmp_path / "link.jsonl").hardlink_to(dataset.path)
    for target in (dataset.path, tmp_path / "link.jsonl"):
        with pytest.raises(StorageError, match="it is the file that is to be exported"):
            delivered(target, dataset)
    result = tmp_path / "node_results.jsonl"
    result.write_text("result")
    (tmp_path / "node_results.jsonl.json").write_text("manifest")
    with pytest.raises(StorageError, match="it is the result of a node"):
        delivered(result, dataset)
    assert (dataset.path.read_bytes(), result.read_text()) == (content, "result")


def test_a_file_in_place_of_a_folder_and_a_folder_in_place_of_a_file_are_errors(tmp_path, dataset):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StorageError, match="Not a directory"):
        delivered(tmp_path / "file", dataset, "folder")
    assert (tmp_path / "file").read_text() == "mine"
    (tmp_path / "folder" / "full").mkdir(parents=True)
    with pytest.raises(StorageError, match="replace the export"):
        delivered(tmp_path / "folder", dataset)


def test_an_exporter_that_writes_nothing_or_a_link_is_an_error(tmp_path, dataset):
    class Nothing:
        format, place = "nothing", "file"

        def write(self, records, place):
            pass

    class Link(Nothing):
        def write(self, records, place):
            place.symlink_to(tmp_path)

    for exporter, message in ((Nothing(), "did not write one file"), (Link(), "is a link")):
        with Delivery(exporter, tmp_path / "t", tmp_path / "r", "o") as delivery:
            with pytest.raises(StorageError, match=message):
                delivery.write(ExportRecords(dataset))
            with pytest.raises(RuntimeError):
                delivery.place()


@pytest.mark.parametrize("exchange", [True, False])
def test_a_folder_is_replaced_with_and_without_support_of_the_system(
    tmp_path, monkeypatch, exchange
):
    if not exchange:
        monkeypatch.setattr(folder_swap, "_exchange_call", lambda: None)
    new, old = tmp_path / "new", tmp_path / "old"
    new.mkdir()
    assert folder_swap.replace_folder(new, old) is None
    (old / "before").touch()
    new.mkdir()
    (new / "after").touch()

    before = folder_swap.replace_folder(new, old)

    assert names_in(old) == ["after"]
    assert before is not None
    assert names_in(before) == ["before"]


@pytest.mark.parametrize("path", ["../precious", "/etc/passwd", "", 5, "a/../b"])
def test_a_receipt_that_names_other_files_counts_as_none(tmp_path, dataset, path):
    target = tmp_path / "out" / "target"
    delivered(target, dataset)
    receipt = tmp_path / "out" / "receipt"
    facts = orjson.loads(receipt.read_bytes())
    facts["files"][0]["path"] = path
    receipt.write_bytes(orjson.dumps(facts))
    assert Exported.load(receipt) is None
    assert delivered(target, dataset)[1]
