"""Tests of results on an object store whose lines stay in the objects in which they were sent."""

import math
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import orjson
import pytest

from dagster_dataops import JsonlDataset, RunReport, data_register, load_result
from dagster_dataops.checkpoints.places import sent_segments
from dagster_dataops.checkpoints.resume import known_outcomes
from dagster_dataops.errors import (
    NewerVersionError,
    ResultMissingError,
    RunStoppedError,
    StorageError,
)
from tests.command_line import main
from tests.each import each
from tests.execution.helpers import write_input
from tests.nodes import NodeFolder, OperatorExecutor, ResumePolicy, Root, RunContext
from tests.object_stores import FakeStore, keep_at_most, leave_short_parts, machine

RECORDS = [{"n": n, "text": "é" * (n % 50)} for n in range(400)]
RUNS = count()
MODES = ("single", "thread", "process")


@data_register("data.parts_tests")
def mixed(record: dict, seconds: float = 0) -> Any:
    time.sleep(seconds)
    if record["n"] % 11 == 3:
        raise ValueError(record["n"])
    if record["n"] % 5 == 0:
        return []
    return [record] * (record["n"] % 3 + 1)


@data_register("data.parts_tests", _concurrency_mode="process", _max_workers=2)
def numbered(record: dict) -> Any:
    return {"n": record["n"]}


@data_register("data.parts_tests", _concurrency_mode="single")
def kept(record: dict) -> Any:
    return record


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> FakeStore:
    """Return a store in which also short parts stay."""
    leave_short_parts(monkeypatch)
    return FakeStore()


@pytest.fixture
def go_on(tmp_path: Path, store: FakeStore) -> Callable[..., NodeFolder]:
    """Return a function that returns the folder of a node on another machine."""
    numbers = count()

    def folder(name: str = "made") -> NodeFolder:
        return NodeFolder.of(machine(tmp_path / f"machine{next(numbers)}", store) / name)

    return folder


@pytest.fixture
def source(tmp_path: Path) -> JsonlDataset:
    return write_input(tmp_path / "in.jsonl", RECORDS)


def run(operator: Any, folder: NodeFolder, inputs: list[JsonlDataset], **context: Any) -> RunReport:
    settings = {"resume": ResumePolicy.AUTO, "whole_result_mb": 0, "flush_seconds": 0}
    chosen = RunContext(**{"run": f"run{next(RUNS)}", **settings, **context})
    return OperatorExecutor(chosen).run(operator, inputs, folder)


def at_home(tmp_path: Path, operator: Any, source: JsonlDataset) -> tuple[bytes, bytes]:
    """Return result and error file of a run on a disk."""
    folder = NodeFolder.of(Root(tmp_path / "whole") / "made")
    run(operator, folder, [source])
    return folder.result.read_bytes(), folder.errors.read_bytes()


def there(folder: NodeFolder) -> tuple[bytes, bytes]:
    """Return result and error file, as another machine reads them."""
    content = load_result(folder).path.read_bytes()
    return content, folder.errors.read_bytes()


def lists(store: FakeStore) -> list[str]:
    return [key for key in store.objects if key.endswith(".parts")]


def whole(store: FakeStore) -> list[str]:
    return [key for key in store.objects if key.endswith("made_results.jsonl")]


def data(store: FakeStore) -> set[str]:
    return {key for key in store.objects if "/.journal/data/" in key}


def named_by(store: FakeStore, key: str) -> set[str]:
    """Return the keys of the objects that a list names."""
    folder = key.partition("/.versions/")[0]
    return {
        f"{folder}/.journal/data/{one}" for one in orjson.loads(store.objects[key][0])["objects"]
    }


def joined(store: FakeStore, key: str) -> bytes:
    """Return the text of a list of parts, read as its format says."""
    content = orjson.loads(store.objects[key][0])
    folder = key.partition("/.versions/")[0]
    objects = [store.objects[f"{folder}/.journal/data/{name}"][0] for name in content["objects"]]
    return b"".join(objects[number][at : at + size] for number, at, size in content["parts"])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("large", [False, True])
def test_lines_stay_where_they_were_sent(go_on, store, source, tmp_path, monkeypatch, mode, large):
    """A large result leaves no copy on the machine that made it."""
    keep_at_most(monkeypatch, outputs=0 if large else 1 << 30, result=100 if large else 1 << 30)
    operator = mixed(_concurrency_mode=mode, _max_workers=3)
    expected = at_home(tmp_path, operator, source)
    here = go_on()
    for _ in range(2):  # the second one has the same bytes
        report = run(operator, here, [source])

        (key,) = lists(store)
        assert joined(store, key) == expected[0]
        assert data(store) == named_by(store, key)
        assert not whole(store)
        assert here.result.exists() != large
        assert report.dataset.read() == [orjson.loads(one) for one in expected[0].splitlines()]
        assert there(go_on()) == expected
    assert run(operator, go_on(), [source], reuse_finished=True).reused


@pytest.mark.slow
def test_a_run_that_is_resumed_elsewhere_uses_the_parts_of_both(go_on, store, source, tmp_path):
    operator = mixed(seconds=0.003, _concurrency_mode="single")
    expected = at_home(tmp_path, operator, source)

    def should_stop() -> str | None:
        return "enough" if data(store) else None

    with pytest.raises(RunStoppedError):
        run(operator, go_on(), [source], should_stop=should_stop)
    report = run(operator, go_on(), [source])

    assert 0 < report.manifest.resumed < len(RECORDS)
    (key,) = lists(store)
    assert joined(store, key) == expected[0]
    assert there(go_on()) == expected
    assert data(store) == named_by(store, key)


def test_a_large_result_in_parts_is_read_before_it_is_published(go_on, store, source, monkeypatch):
    """Whether an operator changed nothing is looked up in the draft."""
    keep_at_most(monkeypatch, outputs=0, result=100)
    report = run(kept(), go_on(), [source])
    assert report.notes == ("changed 0 of 400 records",)
    run(numbered(), go_on(), [source])
    assert len(lists(store)) == 1
    assert data(store) == named_by(store, lists(store)[0])


def test_one_object_replaces_parts_and_parts_replace_it(go_on, store, source):
    for records, in_parts in ((300, True), (200, False), (400, True), (100, True)):
        size = 0 if in_parts else math.inf
        one = write_input(source.path.with_name(f"{records}.jsonl"), RECORDS[:records])
        run(numbered(), go_on(), [one], whole_result_mb=size)

        assert load_result(go_on()).read() == [{"n": n} for n in range(records)]
        assert (len(lists(store)), len(whole(store))) == (in_parts, not in_parts)
        assert data(store) == (named_by(store, lists(store)[0]) if in_parts else set())


def test_the_next_operator_reads_parts_by_ranges(go_on, source):
    first = run(numbered(), go_on("first"), [source])
    folder = go_on("second")
    first_there = NodeFolder.of(folder.root.at(folder.path.parent) / "first")
    from dagster_dataops.checkpoints.folder.manifest import result_by_range

    dataset = result_by_range(first_there)
    assert str(dataset.location).endswith("/first/first_results.jsonl")
    second = run(numbered(), folder, [dataset])

    assert second.dataset.read() == first.dataset.read()
    assert not first_there.result.exists()


def test_failed_records_are_retried_and_outcomes_reused(go_on, source, tmp_path):
    operator = mixed(_concurrency_mode="single", _reuse_outcomes=True)
    expected = at_home(tmp_path, operator, source)
    run(operator, go_on(), [source])
    report = run(operator, go_on(), [source], resume=ResumePolicy.FAILED_RECORDS)
    assert report.manifest.resumed > 300
    assert there(go_on()) == expected

    grown = write_input(tmp_path / "grown.jsonl", [{"n": 1000, "text": ""}, *RECORDS])
    report = run(operator, go_on(), [grown])
    assert report.manifest.resumed >= 300
    assert load_result(go_on()).rows == expected[0].count(b"\n")


def test_short_outcomes_between_others_are_sent_again(go_on, store, tmp_path, monkeypatch):
    monkeypatch.setattr(known_outcomes, "LEAST_BYTES", 2 << 10)
    rows = [{"n": n} for n in range(300)]
    run(repeated(), go_on(), [write_input(tmp_path / "first.jsonl", rows)])
    store.written.clear()
    rows = [*rows[:200], {"n": 1001}, rows[250], rows[205], {"n": 1003}, *rows[100:]]
    run(repeated(), go_on(), [write_input(tmp_path / "second.jsonl", rows)])
    assert lines_sent(store) == emitted(rows[200:204])
    assert load_result(go_on()).rows == len(emitted(rows))


INTERRUPTED = set[int]()


@data_register("data.parts_tests", _concurrency_mode="single", _reuse_outcomes=True)
def repeated(record: dict) -> Any:
    if record["n"] in INTERRUPTED:
        raise KeyboardInterrupt
    return [{"n": record["n"], "text": "." * 40}] * (record["n"] % 3)


def lines_sent(store: FakeStore) -> list[int]:
    """Return the numbers in the result lines that were sent since the last call."""
    lines = [line for content in store.written for line in content.split(b"\n")]
    store.written.clear()
    return sorted(orjson.loads(line)["n"] for line in lines if line.startswith(b'{"n":'))


def emitted(rows: list[dict[str, Any]]) -> list[int]:
    return sorted(row["n"] for row in rows for _ in range(row["n"] % 3))


def test_outcomes_that_are_used_again_are_not_sent_again(go_on, store, tmp_path):
    """Each night some records are new, gone, there twice, and at another place."""
    rows = [{"n": n} for n in range(300)]
    for night in range(3):
        source = write_input(tmp_path / f"{night}.jsonl", rows)
        report = run(repeated(), go_on(), [source])

        new = [row for row in rows if not night or row["n"] // 1000 == night]
        assert report.manifest.resumed == len(rows) - len(new)
        assert lines_sent(store) == emitted(new)
        result = load_result(go_on()).path.read_bytes()
        assert [orjson.loads(line)["n"] for line in result.splitlines()] == [
            row["n"] for row in rows for _ in range(row["n"] % 3)
        ]
        rows = [*rows[250:], {"n": 1001 * (night + 1)}, *rows[:240], rows[5]]
        del rows[7]


@pytest.mark.parametrize("form", ["jsonl", "jsonl.zst"])
def test_a_run_that_is_stopped_uses_outcomes_again_where_it_goes_on(go_on, store, tmp_path, form):
    run(repeated(), go_on(), [write_input(tmp_path / "first.jsonl", RECORDS)], result_format=form)
    rows = [*RECORDS, *({"n": 1000 + n} for n in range(50))]
    source = write_input(tmp_path / "second.jsonl", rows)
    store.written.clear()
    INTERRUPTED.add(1020)
    with pytest.raises(KeyboardInterrupt):
        run(repeated(), go_on(), [source], result_format=form)
    INTERRUPTED.clear()
    report = run(repeated(), go_on(), [source], result_format=form)

    assert len(RECORDS) < report.manifest.resumed < len(rows)
    sent, new = lines_sent(store), emitted(rows[len(RECORDS) :])
    assert sent == (new if form == "jsonl" else new[: len(sent)])
    assert sent
    assert load_result(go_on()).rows == len(emitted(rows))


def test_results_of_which_a_part_is_used_again_keep_few_objects(go_on, store, tmp_path):
    rows = [{"n": n} for n in range(300)]
    for night in range(12):
        run(repeated(), go_on(), [write_input(tmp_path / f"{night}.jsonl", rows)])
        kept = sum(len(store.objects[key][0]) for key in {*data(store), *whole(store)})
        assert load_result(go_on()).rows == len(emitted(rows))
        assert kept <= 2 * load_result(go_on()).path.stat().st_size
        rows = [*rows[60:], *({"n": 1000 * (night + 1) + n} for n in range(60))]


@pytest.mark.parametrize("forms", [("jsonl.zst",) * 3, ("jsonl", "jsonl.zst", "jsonl")])
@pytest.mark.parametrize("copy", [True, False])
def test_the_text_of_a_compressed_result_is_not_sent(go_on, store, source, tmp_path, forms, copy):
    """A retry of failed records, and a run that reuses outcomes, send what is new."""
    operator = mixed(_concurrency_mode="single", _reuse_outcomes=True)
    expected = at_home(tmp_path, operator, source)
    run(operator, here := go_on(), [source], result_format=forms[0])
    store.written.clear()
    folder = here if copy else go_on()
    retried = {"resume": ResumePolicy.FAILED_RECORDS, "result_format": forms[1]}
    report = run(operator, folder, [source], **retried)
    assert report.manifest.resumed > 300
    assert lines_sent(store) == []
    assert (load_result(go_on()).read(), folder.errors.read_bytes()) == (
        [orjson.loads(line) for line in expected[0].splitlines()],
        expected[1],
    )

    grown = write_input(tmp_path / "grown.jsonl", [{"n": 1001, "text": ""}, *RECORDS])
    report = run(operator, here if copy else go_on(), [grown], result_format=forms[2])
    assert report.manifest.resumed >= 300
    rows = load_result(go_on()).read()
    assert len(rows) == expected[0].count(b"\n") + 3
    plain = forms[2] == "jsonl"  # what was compressed is sent as the new result
    new = [1001] * 3 + [row["n"] for row in rows]
    assert lines_sent(store) == (sorted(new) if plain else [])


def test_small_results_and_short_parts_become_one_object(go_on, store, source, monkeypatch):
    run(numbered(), go_on(), [source], whole_result_mb=1)
    assert (len(lists(store)), len(whole(store))) == (0, 1)
    monkeypatch.setattr(sent_segments, "LEAST_OBJECT_BYTES", 1 << 20)
    run(numbered(), go_on(), [source], resume=ResumePolicy.NEVER)
    assert (len(lists(store)), len(whole(store))) == (0, 1)
    assert data(store) == set()


def test_versions_that_would_read_the_list_refuse_the_result(go_on, store, source):
    from dagster_dataops.checkpoints.journal.journal_reader import is_newer

    run(numbered(), here := go_on(), [source])
    (head,) = (key for key in store.objects if key.endswith("_results.jsonl.json"))
    noted = orjson.loads(store.objects[head][0])
    assert is_newer(noted["made_from"]["format"])
    load_result(other := go_on())
    assert other.manifest.read_bytes() == here.manifest.read_bytes()
    assert not is_newer(orjson.loads(here.manifest.read_bytes())["made_from"]["format"])


@each(
    "change",
    [
        {"objects": ["../../../secret"]},
        {"objects": ["a/b"]},
        {"objects": ["../../.versions/x"]},
        {"objects": ["../../.versions/../x"]},
        {"objects": ["../../.versions/x/../y"]},
        {"objects": ["../../.versions/x/y/z"]},
        {"objects": ["../../../.versions/x/y"]},
        {"objects": ["../../made_results.jsonl.json/x/y"]},
        {"parts": [[7, 0, 5]]},
        {"parts": [[0, -1, 5]]},
        {"parts": [[0, 1]]},
        {"parts": 5},
        {"format": 3},
        {"objects": None},
    ],
)
def test_a_list_that_is_damaged_or_leads_elsewhere_is_refused(go_on, store, source, change):
    if not store.objects:
        run(numbered(), go_on(), [source])
    (key,) = lists(store)
    right = store.objects[key][0]
    store.put(key, orjson.dumps(orjson.loads(right) | change))
    newer = change.get("format") == 3
    words = " has format 3, of a newer version" if newer else ": cannot read the list"
    error = NewerVersionError if newer else StorageError
    with pytest.raises(error, match=f"made_results.jsonl.parts{words}"):
        load_result(go_on())
    store.put(key, right)


def test_a_part_that_is_cut_or_missing_is_named(go_on, store, source):
    run(numbered(), go_on(), [source])
    key = min(data(store))
    content = store.objects[key][0]
    store.put(key, content[:-1])
    with pytest.raises(StorageError, match=r"/\.journal/data/.*: cannot read a part of the result"):
        load_result(go_on())
    store.remove([key])
    with pytest.raises(ResultMissingError, match="are missing in the store"):
        load_result(go_on())


def test_a_command_makes_one_object_of_parts(go_on, store, source, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("DATAOPS_DATA_PROCESS_SCRATCH", str(tmp_path / "machine0"))
    operator = mixed(_concurrency_mode="single")
    expected = at_home(tmp_path, operator, source)
    run(operator, here := go_on(), [source])

    assert main(["whole", "memory://bucket/root/made"]) == 0
    assert capsys.readouterr().out == f"made: {len(expected[0]):,} bytes\n"
    assert lists(store) == []
    assert [store.objects[key][0] for key in whole(store)] == [expected[0]]
    assert data(store) == set()
    assert there(go_on()) == expected
    assert main(["whole", "memory://bucket/root/made"]) == 0
    assert capsys.readouterr().out == "made: was not in parts\n"
    assert run(operator, here, [source], reuse_finished=True).reused
    assert main(["whole", str(tmp_path)]) == 1
    assert "the URL of a folder of an object store" in capsys.readouterr().err


def test_a_command_makes_no_object_of_other_bytes(
    go_on, store, source, capsys, monkeypatch, tmp_path
):
    monkeypatch.setenv("DATAOPS_DATA_PROCESS_SCRATCH", str(tmp_path / "machine0"))
    run(numbered(), go_on(), [source])
    key = min(data(store))
    right = store.objects[key][0]
    store.put(key, right.replace(b"1", b"2"))

    assert main(["whole", "memory://bucket/root/made"]) == 1
    assert "other bytes than were published" in capsys.readouterr().err
    store.put(key, right)
    assert load_result(go_on()).rows == len(RECORDS)
    assert whole(store) == []
