"""Files of partitions that are damaged between a kill and the next run are made again."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import JsonlDataset, data
from dagster_dataops.errors import DatasetOperatorError, RecordError, StorageError
from tests.each import each
from tests.execution.helpers import error_rows, node, run, write_input
from tests.faults.cases import cases, paired
from tests.faults.partitioned import (
    NAMES,
    OPERATORS,
    PartitionedCase,
    in_partitions,
    parts_in_form,
    replace_writer,
    write_parts,
)
from tests.object_stores import FakeStore, keep_at_most

_JOINED = ("near", "clusters", "simhash")
_SELECTIONS = ("exact", "parts", "top", *_JOINED)
_FILES = {  # the last stage that ends before the kill, by the files that are then damaged
    "range": dict.fromkeys(OPERATORS, "split"),
    "last": {name: "decide" if name in _SELECTIONS else "work" for name in OPERATORS},
    "joined": dict.fromkeys(_JOINED, "join"),
    "lines": dict.fromkeys(_SELECTIONS, "lines"),
}
_CASES = [(name, files) for files in _FILES for name in _FILES[files]]


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def _halve(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def _flip(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(bytes([content[0] ^ 1]) + content[1:])


def _zero(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def _replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "file").write_bytes(b"x")


_DAMAGE: dict[str, Callable[[Path], object]] = {
    "cut": _cut,
    "half": _halve,
    "flipped": _flip,
    "zeros": _zero,
    "gone": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "folder": _replace_by_folder,
}


class _KilledRun:
    """A run that was killed after the stage whose files are damaged, to be damaged in many ways."""

    def __init__(self, folder: Path, name: str, files: str) -> None:
        self.case = PartitionedCase(folder, name)
        self.expected = self.case.result("alone")
        with in_partitions():
            self.paths = self.case.kill_after(_FILES[files][name])
        self._run, self._copy = folder / "killed", folder / "copy"
        shutil.copytree(self._run, self._copy)

    def restore(self) -> None:
        """Let everything be as the kill left it."""
        shutil.rmtree(self._run)
        shutil.copytree(self._copy, self._run)


@pytest.fixture
def killed(tmp_path: Path, name: str, files: str) -> _KilledRun:
    return _KilledRun(tmp_path, name, files)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "files"), cases(_CASES[::2], campaign=_CASES))
@each("how", _DAMAGE)
def test_damaged_files_of_partitions_are_made_again(
    killed: _KilledRun, name: str, files: str, how: str
) -> None:
    killed.restore()
    paths = killed.paths
    assert paths
    for path in {paths[0], paths[len(paths) // 2], paths[-1]}:
        _DAMAGE[how](path)
    with in_partitions():
        assert killed.case.result("killed") == killed.expected
    assert any("damaged on disk" in note for note in killed.case.report.notes)
    assert not node(killed.case.folder / "killed").checkpoints.exists()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mode"), paired(OPERATORS, ["single", "process"]))
def test_a_killed_run_in_a_bucket_goes_on_with_its_sketches_on_another_machine(
    tmp_path: Path, name: str, mode: str
) -> None:
    """Its partitions were on the machine that died, and are made again from the sketches."""
    (folder := tmp_path / name).mkdir()
    expected = PartitionedCase(folder, name).result("alone")
    case = PartitionedCase(folder, name, FakeStore())
    with in_partitions() as patch:
        keep_at_most(patch, outputs=0, result=1 << 20)  # sketches that were sent are freed
        assert case.kill_after(_FILES["last"][name], mode)
        assert case.result("other", mode) == expected
    if name in _SELECTIONS:
        assert case.report.manifest.resumed == len(case.inputs[0].read())
    for pattern in NAMES.values():
        assert not list((folder / "other").rglob(pattern))
    assert case.result("reader") == expected


@pytest.mark.parametrize("name", ["exact", "sort"])
def test_files_that_are_damaged_again_and_again_are_an_error(tmp_path: Path, name: str) -> None:
    case = PartitionedCase(tmp_path, name)
    written: list[str] = []

    def write(path: Path, parts: Any) -> None:
        write_parts(path, parts)
        if path.name == "range-000001":
            written.append(path.name)
            _flip(path)

    with in_partitions() as patch:
        replace_writer(patch, write)
        with pytest.raises(StorageError, match="damaged again; check the disk"):
            case.result("again")
    assert len(written) == 3
    with in_partitions():  # the disk works again
        found = case.result("again")
    assert found == case.result("alone")


# ---------------------------------------------------------------- records that fail

_SPOILED: dict[str, dict[int, bytes]] = {
    "no json": {300: b"no json", 500: b"neither"},
    "no json, late": {599: b'{"key": 1'},
    "no record": {3: b"[1]"},
    "a list to sort by, before": {200: b'{"key": [1]}', 400: b"no json"},
    "a list to sort by, after": {200: b"no json", 400: b'{"key": [1]}', 500: b'{"key": {}}'},
    "lists to sort by": {590: b'{"key": [2]}', 300: b'{"key": {}}', 20: b'{"key": [0]}'},
}


def _outcome(case: PartitionedCase, where: str, mode: str, **options: Any) -> list[Any]:
    """Return result, error rows and error of a run."""
    try:
        result, error = case.result(where, mode, **options), ""
    except (DatasetOperatorError, RecordError) as raised:
        result, error = b"", str(raised).replace(where, "")
    return [result, error, error_rows(node(case.folder / where))]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "ignored"), paired(["sort", "group", "merge"], [False, True]))
@each("how", _SPOILED)
def test_lines_that_fail_in_partitions_fail_as_in_one_thread(
    tmp_path: Path, name: str, ignored: bool, how: str
) -> None:
    folder = tmp_path / how
    folder.mkdir()
    case = PartitionedCase(folder, name)
    path = folder / "input.jsonl"
    lines = path.read_bytes().splitlines()
    for place, line in _SPOILED[how].items():
        lines[place] = line
    path.write_bytes(b"\n".join(lines))
    case.inputs[0] = JsonlDataset.of_file(path)
    expected = _outcome(case, "alone", "single", _ignore_errors=ignored)
    with in_partitions():
        assert _outcome(case, "parted", "single", _ignore_errors=ignored) == expected
        assert _outcome(case, "shared", "process", _ignore_errors=ignored) == expected


@pytest.mark.parametrize("memory", [50_000, 1 << 20])
def test_a_merge_names_the_first_key_that_is_there_twice(tmp_path: Path, memory: int) -> None:
    rows = [{"key": n, "value": n} for n in range(2_000)]
    left = write_input(tmp_path / "left.jsonl", rows[::-1])
    right = write_input(tmp_path / "right.jsonl", [*rows, *rows[1_900:300:-7]])

    def error(where: str) -> str:
        operator = data.join.Merge("key", max_memory_mb=1, _concurrency_mode="single")
        operator._max_bytes = memory
        with pytest.raises(DatasetOperatorError) as raised:
            run(operator, [left, right], node(tmp_path / where))
        return str(raised.value).partition("Traceback")[0]

    alone = error("alone")
    with in_partitions():
        assert error("parted") == alone
    assert "ValueError: 2 records of the other side have the key [1900]" in alone


@pytest.mark.slow
@pytest.mark.parametrize(("name", "stage"), paired(_SELECTIONS, ["split", "decide"]))
def test_parts_of_another_form_are_made_again(tmp_path: Path, name: str, stage: str) -> None:
    with in_partitions():
        case = PartitionedCase(tmp_path, name)
        expected = case.result("calm")
        with parts_in_form(1):
            case.kill_after(stage)
        for file in [*tmp_path.rglob("range-*"), *tmp_path.rglob("decided-*")]:
            write_parts(file, [b"of an earlier version"])
        assert case.result("killed") == expected
