"""Tests that what earlier versions have left on the disk is read, resumed and retried."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import DataLoader2, config, data, load_artefact, load_result
from tests.each import each
from tests.frozen.conftest import HERE

Thaw = Callable[..., Path]
FINISHED = (
    *("single", "thread", "async", "process", "counts", "outputs", "parts", "reuse", "batch"),
    *("dataset", "selection", "stream", "mapped", "chain", "library", "export"),
)
UNFINISHED = (
    *("killed_single", "killed_thread", "killed_async", "killed_process", "killed_counts"),
    *("killed_outputs", "killed_reuse", "killed_batch", "killed_stream", "killed_mapped"),
    *("killed_chain", "killed_publishing"),
)


def cases() -> Any:
    import frozen_cases

    return frozen_cases


def results(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*_results.jsonl"))
        if path.is_file()
    }


def anew(tmp_path: Path, make: Callable[[], Any]) -> dict[str, bytes]:
    """Return the results of a run of this version alone."""
    root = config.data_process_path
    config.data_process_path = tmp_path / "anew"
    make()(str(tmp_path / "input.jsonl"))
    config.data_process_path = root
    return results(tmp_path / "anew")


def manifest_in(root: Path) -> dict[str, Any]:
    (path,) = root.glob("*/node/node_results.jsonl.json")
    return dict(json.loads(path.read_bytes()))


def test_x(thaw: Thaw, tmp_path: Path, version: str) -> None:
    root = thaw(*FINISHED, *UNFINISHED)
    for case in FINISHED:
        before = (root / case / "node" / "node_results.jsonl.json").read_bytes()
        cases().FINISHED[case]("")(str(tmp_path / "input.jsonl"))
        after = (root / case / "node" / "node_results.jsonl.json").read_bytes()
        print(version, case, before == after)
    for case in UNFINISHED:
        cases().UNFINISHED[case]("", -1)(str(tmp_path / "input.jsonl"))
        after = json.loads((root / case / "node" / "node_results.jsonl.json").read_bytes())
        print(version, case, after["resumed"])
    states = json.loads((HERE / version / "streams.json").read_bytes())
    for name, make in cases().STREAMS.items():
        stream = make().and_return(seed=5)
        want = list(make().and_return(seed=5))[4:]
        try:
            stream.load_state_dict(states[name])
            print(version, name, list(stream) == want)
        except Exception as e:
            print(version, name, e)
