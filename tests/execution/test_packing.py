"""Tests of operators that pack windows, by a run of each."""

from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import Lazy, data, data_register
from tests.execution.helpers import error_rows, node, run, run_over, write_input
from tests.nodes import ResumePolicy
from tests.training.file_stores import FolderStore

data_register.new_group("packing_tests")
Records = list[dict[str, Any]]
BROKEN: set[int] = set()


class Threes(data.packing_tests):
    """Packs of three; the last of each window is left out."""

    def select_samples_to_pack(self, samples: Records) -> list[Records]:
        if any(sample.get("unfit") for sample in samples):
            raise ValueError("unfit")
        return [samples[at : at + 3] for at in range(0, len(samples) - 1, 3)]

    def pack_selected_samples(self, samples: Records) -> dict[str, Any]:
        if BROKEN.intersection(sample["n"] for sample in samples):
            raise KeyError("broken")
        return {"n": [sample["n"] for sample in samples]}


@data_register("data.packing_tests", window=5)
class Files:
    """Reads a lazy file of the first record."""

    def select_samples_to_pack(self, samples: Records) -> list[Records]:
        return [samples]

    def pack_selected_samples(self, samples: Records) -> Any:
        for sample in samples[:2]:
            yield {"text": sample["file"].get().decode()}


@pytest.fixture(autouse=True)
def whole() -> None:
    BROKEN.clear()


def numbers(count: int) -> Records:
    return [{"n": number} for number in range(count)]


@pytest.mark.parametrize("mode", ["single", "thread", "process"])
def test_every_mode_makes_the_same_packs(tmp_path: Path, mode: str) -> None:
    report = run_over(
        tmp_path, Threes(_concurrency_mode=mode, _max_workers=2, _batch_size=7), numbers(17)
    )

    packs = [[0, 1, 2], [3, 4, 5], [7, 8, 9], [10, 11, 12], [14, 15, 16]]
    assert list(report.dataset) == [{"n": pack} for pack in packs]
    manifest = report.manifest
    assert (manifest.dropped, manifest.drops) == (2, {"not packed": 2})


def test_a_failed_group_is_retried_alone(tmp_path: Path) -> None:
    dataset = write_input(tmp_path / "input.jsonl", numbers(9))
    folder = node(tmp_path)
    operator = Threes(_concurrency_mode="single", _batch_size=9)
    BROKEN.add(4)
    report = run(operator, dataset, folder)

    assert [one["n"] for one in report.dataset] == [[0, 1, 2], [6, 7, 8]]
    assert [row["input"]["n"] for row in error_rows(folder)] == [3, 4, 5]
    BROKEN.clear()
    again = run(operator, dataset, folder, run="again", resume=ResumePolicy.FAILED_RECORDS)
    assert sorted(one["n"] for one in again.dataset) == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    assert again.manifest.failed == 0


def test_a_failed_selection_fails_its_window(tmp_path: Path) -> None:
    records = [*numbers(6), {"n": 6, "unfit": True}, {"n": 7}]
    folder = node(tmp_path)
    report = run(
        Threes(_concurrency_mode="single", _batch_size=4),
        write_input(tmp_path / "input.jsonl", records),
        folder,
    )

    assert [one["n"] for one in report.dataset] == [[0, 1, 2]]
    assert [row["exception"] for row in error_rows(folder)] == ["ValueError"] * 4


def test_lazy_files_are_files_again_in_the_next_operator(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    for number in range(8):
        (store / f"{number}.txt").write_text(f"file {number}")
    lazy = [{"file": Lazy(FolderStore(str(store)), f"{number}.txt")} for number in range(8)]
    report = run_over(tmp_path, data.packing_tests.Files(_concurrency_mode="process"), lazy)

    assert [one["text"] for one in report.dataset] == ["file 0", "file 1", "file 5", "file 6"]
