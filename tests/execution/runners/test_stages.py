"""Operators that decide, sort, group and join in partitions have the results of one thread."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest

from dagster_dataops import JsonlDataset, LocalCluster, config, data, pipeline
from dagster_dataops.errors import DatasetOperatorError
from dagster_dataops.execution.runners import dataset_stages, part_files, selection_stages
from tests.each import each
from tests.execution.helpers import node, run
from tests.nodes import Manifest, text_of

_WORDS = ["one", "two", "three", "four", "five", "six"]
_SELECTIONS: dict[str, Any] = {
    "exact": lambda **how: data.dedup.Exact("text", **how),
    "exact of several": lambda **how: data.dedup.Exact(["group", "value"], **how),
    "lines": lambda **how: data.dedup.Lines("text", **how),
    "sentences": lambda **how: data.dedup.Sentences(
        "text", split_sentences=False, span_sentences=1, min_words=0, min_sentences=0, **how
    ),
    "substrings": lambda **how: data.dedup.Substring("text", min_tokens=3, **how),
    "urls": lambda **how: data.dedup.Url("url", **how),
    "near": lambda **how: data.dedup.NearDuplicate("text", ngram_size=1, **how),
    "near ones of the longest": lambda **how: data.dedup.NearDuplicate(
        "text", ngram_size=2, bands=5, rows=2, verify=True, keep="longest", **how
    ),
    "near ones of a column": lambda **how: data.dedup.NearDuplicate(
        "text", ngram_size=1, keep="value", linkage="component", **how
    ),
    "clusters": lambda **how: data.dedup.NearDuplicate(
        "text", bands=3, rows=2, verify=True, threshold=0.5, cluster_key="cluster", **how
    ),
    "simhash": lambda **how: data.dedup.SimHash("text", ngram_size=1, **how),
    "top of groups": lambda **how: data.sample.TopK("value", 3, group_key="group", **how),
    "share of groups": lambda **how: data.sample.TopK("value", ratio=0.2, group_key="group", **how),
    "reservoir of groups": lambda **how: data.sample.Reservoir(5, group_key="group", **how),
    "balance": lambda **how: data.sample.Balance("group", 7, **how),
}
_DATASETS: dict[str, Any] = {
    "sort": lambda **how: data.sample.Sort("value", **how),
    "sort down by several": lambda **how: data.sample.Sort(["group", "value"], reverse=True, **how),
    "sort of one value": lambda **how: data.sample.Sort("same", **how),
    "group": lambda **how: data.sample.GroupBy("group", **how),
    "first of groups": lambda **how: data.sample.GroupBy("value", max_per_group=2, **how),
}


def _records(count: int) -> Iterator[dict[str, Any]]:
    chance = Random(7)
    for _ in range(count):
        words = [chance.choice(_WORDS) for _ in range(chance.randrange(9))]
        yield {
            "text": chance.choice([" ", "\n"]).join(words),
            "group": chance.randrange(9),
            "value": chance.choice([chance.random(), chance.randrange(4), None, "x"]),
            "url": f"http://example.org/{chance.randrange(200)}",
            "same": 1,
        }


def _lines(count: int, *, whole: bool) -> bytes:
    """Return records as this and as another program write them; unless whole, with bad lines."""
    lines = []
    for number, record in enumerate(_records(count)):
        line = orjson.dumps(record)
        lines.append(line if number % 3 else line.replace(b":", b": "))
    if not whole:
        lines[5:5] = [b"no json", b"", b'{"text": 5, "group": 1, "value": 1, "url": 3}']
    return b"\n".join(lines)


@contextmanager
def _partitions(records: float, size: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection_stages, "LEAST_RECORDS", records)
        patch.setattr(dataset_stages, "LEAST_BYTES", records)
        for module in (selection_stages, dataset_stages):
            patch.setattr(module, "RANGE_BYTES", size)
        yield


_ALONE = float("inf"), 1
_FIELDS = ("text", "group", "value", "url", "same")


def _input(folder: Path, lines: bytes) -> Path:
    path = folder / "input.jsonl"
    path.write_bytes(lines)
    return path


def _run(folder: Path, make: Any, **how: Any) -> tuple[bytes, Manifest]:
    """Return result and manifest of a run over the input in a folder."""
    config.data_process_path = str(folder / "results")
    config.data_process_resume = False
    with pipeline("partitions") as ppl:
        ppl.node = make(**how)
    report = ppl.materialize(str(folder / "input.jsonl"))["node"]
    result = folder / "results" / "partitions" / "node" / "node_results.jsonl"
    assert not list(folder.rglob("range-*"))
    return result.read_bytes(), report.manifest


def _facts(manifest: Manifest) -> list[Any]:
    names = ("rows_in", "rows_out", "dropped", "failed", "drops", "drop_examples")
    return [getattr(manifest, name) for name in names]


def _check(folder: Path, make: Any, **how: Any) -> None:
    with _partitions(*_ALONE):
        expected, manifest = _run(folder, make, _concurrency_mode="single")
    with _partitions(0, 9_000):
        found, facts = _run(folder, make, **how)
    assert found == expected
    assert _facts(facts) == _facts(manifest)


@pytest.mark.slow
@pytest.mark.usefixtures("root")
@each("name", _SELECTIONS)
def test_selections_in_partitions_keep_the_same_records(tmp_path: Path, name: str) -> None:
    (tmp_path / "input.jsonl").write_bytes(_lines(500, whole=False))
    _check(tmp_path, _SELECTIONS[name], _concurrency_mode="single")


@pytest.mark.usefixtures("root")
@each("name", _DATASETS)
def test_datasets_in_partitions_have_the_same_result(tmp_path: Path, name: str) -> None:
    (tmp_path / "input.jsonl").write_bytes(_lines(500, whole=True))
    _check(tmp_path, _DATASETS[name], _concurrency_mode="single")


@pytest.mark.usefixtures("root")
def test_large_groups_stay_in_their_files_until_their_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    stored = dataset_stages._StoredText.read

    def noted(self: Any) -> bytes:
        text = stored(self)
        read.append(len(text))
        return text

    monkeypatch.setattr(dataset_stages._StoredText, "read", noted)
    monkeypatch.setattr(dataset_stages, "_BLOCK_BYTES", 1)
    (tmp_path / "input.jsonl").write_bytes(_lines(3000, whole=True))
    make: Any = lambda **how: data.sample.GroupBy("group", max_memory_mb=1, **how)  # noqa: E731
    _check(tmp_path, make, _concurrency_mode="single")
    assert len(read) == 9  # all groups, each once
    assert min(read) > 16 << 10


@pytest.mark.slow
@pytest.mark.usefixtures("root")
@each("name", ["exact", "lines", "sort", "group"])
def test_partitions_are_work_for_processes(tmp_path: Path, name: str) -> None:
    (tmp_path / "input.jsonl").write_bytes(_lines(500, whole=True))
    _check(tmp_path, {**_SELECTIONS, **_DATASETS}[name], _max_workers=2)


@pytest.mark.slow
@each("name", ["exact", "lines", "top of groups", "sort", "group"])
def test_partitions_read_and_write_compressed_results(tmp_path: Path, name: str) -> None:
    """Also the same input in another form is the same input: nothing is run again."""
    source = JsonlDataset.of_file(_input(tmp_path, _lines(500, whole=True)))
    copy = run(data.shape.Select(list(_FIELDS)), source, node(tmp_path, "copy"))
    packed = run(
        data.shape.Select(list(_FIELDS)),
        source,
        node(tmp_path, "packed"),
        result_format="jsonl.zst",
    ).dataset
    make = {**_SELECTIONS, **_DATASETS}[name]
    with _partitions(*_ALONE):
        expected = run(make(_concurrency_mode="single"), copy.dataset, node(tmp_path, "alone"))
    for number, workers in enumerate((1, 2)):
        mode = {"_max_workers": 2} if workers == 2 else {"_concurrency_mode": "single"}
        folder = node(tmp_path, f"made{number}")
        with _partitions(0, 9_000):
            report = run(make(**mode), packed, folder, result_format="jsonl.zst")
        assert report.dataset.path.name == f"made{number}_results.jsonl.zst"
        assert report.dataset.fingerprint == expected.dataset.fingerprint
        assert _facts(report.manifest) == _facts(expected.manifest)
        with _partitions(0, 9_000):
            again = run(make(**mode), copy.dataset, folder, reuse_finished=True)
        assert again.reused
        assert text_of(again.dataset.path) == text_of(expected.dataset.path)


@pytest.mark.usefixtures("root")
def test_inputs_with_bad_lines_are_sorted_in_one_thread(tmp_path: Path) -> None:
    (tmp_path / "input.jsonl").write_bytes(_lines(100, whole=False))
    _check(tmp_path, _DATASETS["sort"], _concurrency_mode="single")


@pytest.mark.usefixtures("root")
def test_an_operator_that_fails_in_a_partition_fails_by_name(tmp_path: Path) -> None:
    (tmp_path / "input.jsonl").write_bytes(b'{"value": [1]}\n' * 9)
    with (
        _partitions(0, 40),
        pytest.raises(DatasetOperatorError, match=r"sample\.Sort.*'value' has a list"),
    ):
        _run(tmp_path, _DATASETS["sort"], _concurrency_mode="single")


def test_a_damaged_part_is_found(tmp_path: Path) -> None:
    path = tmp_path / "parts"
    part_files.write_parts(path, [b"one", b"", b"three" * 9])
    parts = part_files.PartsFile(path)
    assert list(parts) == [b"one", b"", b"three" * 9]
    assert parts[-1] == b"three" * 9
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(part_files.DamagedPartError):
            list(part_files.PartsFile(path))
        path.write_bytes(whole[:place])
        with pytest.raises(part_files.DamagedPartError):
            list(part_files.PartsFile(path))


@pytest.mark.usefixtures("root")
def test_damaged_parts_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "input.jsonl").write_bytes(_lines(300, whole=True))
    with _partitions(*_ALONE):
        expected, _ = _run(tmp_path, _SELECTIONS["exact"], _concurrency_mode="single")
    damaged: list[Path] = []

    def write(path: Path, parts: Any) -> None:
        part_files.write_parts(path, parts)
        if path.name == "decided-000003" and not damaged:
            path.write_bytes(path.read_bytes()[:-1])
            damaged.append(path)

    monkeypatch.setattr(selection_stages, "write_parts", write)
    with _partitions(0, 9_000):
        found, _ = _run(tmp_path, _SELECTIONS["exact"], _concurrency_mode="single")
    assert damaged
    assert found == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", ["exact", "sort"])
def test_partitions_are_work_for_agents(tmp_path: Path, name: str) -> None:
    (tmp_path / "input.jsonl").write_bytes(_lines(300, whole=True))
    make = {**_SELECTIONS, **_DATASETS}[name]
    dataset = JsonlDataset.of_file(tmp_path / "input.jsonl")
    with _partitions(*_ALONE):
        run(make(_concurrency_mode="single"), dataset, node(tmp_path / "alone"))
    with _partitions(0, 9_000):
        cluster = LocalCluster(agents=2, cpus_per_agent=1)
        run(make(), dataset, node(tmp_path / "agents"), cluster=cluster)
    found, expected = (node(tmp_path / where).result.read_bytes() for where in ("agents", "alone"))
    assert found == expected
