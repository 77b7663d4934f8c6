"""Tests of inputs that a later run recognizes in a copy, or through another mount."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dagster_dataops import JsonlDataset, load_result
from dagster_dataops.errors import InputError
from dagster_dataops.execution import input_facts
from dagster_dataops.foundation.places.bucket import CopiedFile, StoreBucket
from tests.execution.helpers import act, lines, node, plan, run, turn_around, write_input
from tests.execution.splitting import operator_for, splits
from tests.faults.crashing import DyingAfter, in_child
from tests.nodes import commit, state_at

_RECORDS = plan(["keep", "fail", "drop", "expand"] * 5)
_OPERATORS = [lambda: act(_concurrency_mode="single"), turn_around]


@pytest.mark.parametrize("operator", _OPERATORS, ids=["record", "dataset"])
def test_a_copy_with_the_same_bytes_is_the_same_input(tmp_path: Path, operator) -> None:
    dataset = write_input(tmp_path / "input.jsonl", _RECORDS)
    first = run(operator(), dataset, node(tmp_path), run="first", reuse_finished=True)
    dataset.path.rename(tmp_path / "moved")
    copy = JsonlDataset.of_file(shutil.copy(tmp_path / "moved", tmp_path / "copy.jsonl"))
    os.utime(copy.path, ns=(7, 7))

    again = run(operator(), copy, node(tmp_path), run="second", reuse_finished=True)

    assert again.reused
    assert again.manifest.run == first.manifest.run


@pytest.mark.parametrize("operator", _OPERATORS, ids=["record", "dataset"])
def test_other_bytes_with_the_same_size_and_time_are_another_input(
    tmp_path: Path, operator
) -> None:
    dataset = write_input(tmp_path / "input.jsonl", _RECORDS)
    run(operator(), dataset, node(tmp_path), run="first", reuse_finished=True)
    before = dataset.path.stat()
    text = dataset.path.read_bytes()
    dataset.path.write_bytes(text.replace(b'"n":0', b'"n":7', 1))
    os.utime(dataset.path, ns=(before.st_atime_ns, before.st_mtime_ns))

    again = run(operator(), dataset, node(tmp_path), run="second", reuse_finished=True)

    assert len(text) == dataset.path.stat().st_size
    assert not again.reused


@pytest.mark.parametrize("before", [True, False], ids=["with digest", "without digest"])
def test_an_unchanged_file_is_not_read_to_recognize_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    dataset = write_input(tmp_path / "input.jsonl", _RECORDS)
    operator = act(_concurrency_mode="single")
    run(operator, dataset, node(tmp_path), run="first", reuse_finished=before)
    monkeypatch.setattr(input_facts, "cached_digest", lambda *_: pytest.fail("was read"))

    assert run(operator, dataset, node(tmp_path), run="second", reuse_finished=True).reused


def test_a_file_has_the_same_state_through_another_mount(tmp_path: Path) -> None:
    """In a namespace of its own, since only there a test may mount."""
    for name in ("lower", "upper", "work", "mount"):
        (tmp_path / name).mkdir()
    path = tmp_path / "lower" / "input.jsonl"
    path.write_bytes(lines(_RECORDS))
    here = f"lowerdir={tmp_path}/lower,upperdir={tmp_path}/upper,workdir={tmp_path}/work"
    seen = "print(__import__('os').stat(sys.argv[1]).st_dev, *state_at(Path(sys.argv[1])))"
    code = f"import sys; from pathlib import Path; from {state_at.__module__} import *; {seen}"
    mount = f"mount -t overlay overlay -o {here} {tmp_path}/mount"
    command = f'{mount} || exit 77; exec "$0" -c "$1" {tmp_path}/mount/input.jsonl'

    made = subprocess.run(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", command, sys.executable, code],
        capture_output=True,
        text=True,
        check=False,
    )

    if made.returncode in {1, 77}:
        pytest.skip(f"this machine does not let a test mount: {made.stderr.strip()}")
    device, *state = map(int, made.stdout.split())
    assert device != path.stat().st_dev
    assert tuple(state) == state_at(path)


def test_results_of_two_runs_of_a_node_are_not_read_together(tmp_path: Path) -> None:
    folder = splits(tmp_path)
    operator = operator_for("single")
    run(operator, write_input(tmp_path / "old.jsonl", plan(["train", "test"])), folder, run="old")
    dataset = write_input(tmp_path / "new.jsonl", plan(["train", "test", "both"]))

    def killed() -> None:
        dying = DyingAfter(commit.write_durably, 1, before=False)
        pytest.MonkeyPatch().setattr(commit, "write_durably", dying)
        run(operator, dataset, folder, run="killed")

    assert in_child(killed) == DyingAfter.STATUS
    mixed = [load_result(place) for place in folder.outputs.values()]
    with pytest.raises(InputError, match="of run old, and .* of run killed"):
        run(act(_concurrency_mode="single"), mixed, node(tmp_path, "both"))
    input_facts.check_together(mixed[:1])
    bucket = StoreBucket("s3://docs", tmp_path, {})
    copies = [replace(one, location=CopiedFile(bucket, one.path)) for one in mixed]
    with pytest.raises(InputError, match="s3://docs/.* of run old, and s3://docs/.* of run killed"):
        input_facts.check_together(copies)

    run(operator, dataset, folder, run="next")
    input_facts.check_together([load_result(place) for place in folder.outputs.values()])


def test_files_without_a_manifest_are_read_together(tmp_path: Path) -> None:
    files = [write_input(tmp_path / name, plan(["keep"])) for name in ("a.jsonl", "b.jsonl")]
    input_facts.check_together(files)
