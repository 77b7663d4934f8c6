"""Tests of retries of a result in a bucket: what did not change stays where it is."""

import math
import posixpath
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import orjson
import pytest
from typing_extensions import override

from dagster_dataops import (
    JsonlDataset,
    RunReport,
    config,
    data_register,
    load_result,
    restore,
    versions,
)
from dagster_dataops.errors import LostError, NewerVersionError, ResultMissingError
from tests.command_line import main
from tests.execution.helpers import run as run_node
from tests.execution.helpers import write_input
from tests.faults.cases import cases
from tests.nodes import NodeFolder, ResumePolicy, Root
from tests.object_stores import (
    FakeStore,
    KilledError,
    keep_at_most,
    killed_at,
    leave_short_parts,
    machine,
)

RECORDS = [{"n": n, "text": "é" * (1000 + n % 50)} for n in range(120)]
FAILED = [n for n in range(120) if n % 11 == 3]
STILL = [n for n in FAILED if n % 2]  # the retry does not help these
BOUND = 80_000  # bytes that a retry may send: new lines, journal, list, manifest, error file
RETRY = ResumePolicy.FAILED_RECORDS
RUNS = count()

mended: set[int] = set()
called: list[int] = []
ends: set[int] = set()  # records at which the process ends
meanwhile: dict[int, Callable[[], object]] = {}  # what another machine does before a record


@data_register("data.bucket_retries", _concurrency_mode="single")
def work(record: dict[str, Any]) -> Any:
    if record["n"] in ends:
        raise KeyboardInterrupt
    if record["n"] in meanwhile:
        meanwhile.pop(record["n"])()
    called.append(record["n"])
    if record["n"] in FAILED and record["n"] not in mended:
        raise ValueError(record["n"])
    return [] if record["n"] % 10 == 9 else [record] * (1 + record["n"] % 2)


@data_register("data.bucket_retries", _concurrency_mode="single")
def plain(record: dict[str, Any]) -> Any:
    called.append(record["n"])
    return {**record, "text": record["text"] + "."}


class CountingStore(FakeStore):
    """A bucket that counts the bytes that were sent to it."""

    sent = 0

    @override
    def _store(self, key: str, data: bytes) -> Any:
        self.sent += len(data)
        return super()._store(key, data)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let also short parts stay, and the operator fail for some records."""
    leave_short_parts(monkeypatch)
    mended.clear()
    called.clear()
    yield
    mended.clear()


@pytest.fixture
def store() -> CountingStore:
    return CountingStore()


@pytest.fixture
def go_on(tmp_path: Path, store: FakeStore) -> Callable[..., NodeFolder]:
    """Return a function that returns the folder of the node on another machine."""
    numbers = count()

    def folder(seen: FakeStore = store) -> NodeFolder:
        scratch = tmp_path / f"machine{next(numbers)}"
        return NodeFolder.of(machine(scratch, seen) / "made")

    return folder


@pytest.fixture
def source(tmp_path: Path) -> JsonlDataset:
    return write_input(tmp_path / "in.jsonl", RECORDS)


def run(folder: NodeFolder, source: JsonlDataset, **context: Any) -> RunReport:
    settings = {"resume": ResumePolicy.AUTO, "whole_result_mb": 0, "flush_seconds": 0}
    keeps = {"_keep_versions": context.pop("keep", 0)}
    operator = work(**keeps, _concurrency_mode=context.pop("mode", "single"))
    return run_node(operator, source, folder, run=f"run{next(RUNS)}", **{**settings, **context})


def mend(*, all_of_them: bool = False) -> None:
    """Let the operator return what it failed to return."""
    mended.update(FAILED if all_of_them else set(FAILED) - set(STILL))
    called.clear()


def files(folder: NodeFolder) -> tuple[bytes, ...]:
    """Return result and error file without tracebacks, and the facts about them."""
    content = load_result(folder).path.read_bytes()
    rows = [orjson.loads(line) for line in folder.errors.read_bytes().splitlines()]
    manifest = orjson.loads(folder.manifest.read_bytes())
    names = ("rows_in", "rows_out", "dropped", "failed", "fingerprint", "size_bytes", "mapped")
    facts = {name: manifest[name] for name in names}
    return (
        content,
        orjson.dumps([[row["index"], row["message"]] for row in rows]),
        orjson.dumps(facts),
    )


@pytest.fixture
def expected(tmp_path: Path, source: JsonlDataset) -> tuple[bytes, ...]:
    """Return the files after the same retry in a folder of a disk."""
    folder = NodeFolder.of(Root(tmp_path / "disk") / "made")
    run(folder, source)
    mend()
    run(folder, source, resume=RETRY)
    found = files(folder)
    mended.clear()
    called.clear()
    return found


def lists(store: FakeStore) -> list[str]:
    return [key for key in store.objects if key.endswith(".parts")]


def named_by(key: str, store: FakeStore) -> list[str]:
    """Return the keys of the objects that a list names, as its format says."""
    content = orjson.loads(store.objects[key][0])
    place = posixpath.join(posixpath.dirname(key), content["folder"])
    return [posixpath.normpath(posixpath.join(place, name)) for name in content["objects"]]


def joined(key: str, store: FakeStore) -> bytes:
    """Return the text of a list of parts, read as its format says."""
    texts = [store.objects[name][0] for name in named_by(key, store)]
    parts = orjson.loads(store.objects[key][0])["parts"]
    return b"".join(texts[number][at : at + size] for number, at, size in parts)


def left_over(store: FakeStore, node: str = "made") -> set[str]:
    """Return the keys of objects of results and outputs that nothing names."""
    (head,) = (key for key in store.objects if key.endswith(f"{node}_results.jsonl.json"))
    heads = [head, *(key for key in store.objects if "/.history/" in key)]
    contents = [orjson.loads(store.objects[one][0])["home"]["files"] for one in heads]
    used = {file["key"] for content in contents for file in content.values()}
    used |= {part for key in lists(store) if key in used for part in named_by(key, store)}
    folders = ("/.versions/", "/.journal/data/")
    there = {key for key in store.objects if any(folder in key for folder in folders)}
    assert used <= there
    return there - used


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("before", ["one object", "parts"])
def test_a_retry_sends_only_what_is_new(
    go_on, store, source, expected, monkeypatch, before, large, elsewhere
):
    """A large result is on none of the machines."""
    keep_at_most(monkeypatch, outputs=0, result=100 if large else 1 << 30)
    run(here := go_on(), source, whole_result_mb=0 if before == "parts" else math.inf)
    assert bool(lists(store)) == (before == "parts")
    old = {key for key in store.objects if "data/" in key or key.endswith("results.jsonl")}
    mend()
    store.sent = 0
    report = run(here := go_on() if elsewhere else here, source, resume=RETRY)

    assert store.sent < BOUND < len(expected[0]) / 3
    assert called == FAILED
    assert report.manifest.resumed == len(RECORDS) - len(FAILED)
    (key,) = lists(store)
    assert old < set(named_by(key, store))
    assert joined(key, store) == expected[0]
    assert left_over(store) == set()
    assert here.result.exists() != large
    assert not here.checkpoints.exists()
    assert files(go_on()) == expected


@pytest.mark.parametrize("mode", ["thread", "process"])
def test_every_mode_retries_without_the_bytes_of_the_result(go_on, store, source, expected, mode):
    run(go_on(), source, mode=mode)
    mend()
    store.sent = 0
    run(go_on(), source, resume=RETRY, mode=mode)
    assert store.sent < BOUND
    assert files(go_on()) == expected


def test_a_small_result_and_one_that_others_read_are_sent_once_as_one_object(
    go_on, store, source, expected
):
    for number, size in enumerate([16, math.inf]):
        mended.clear()
        run(go_on(), source, whole_result_mb=size, resume=ResumePolicy.NEVER)
        mend()
        store.sent = 0
        run(go_on(), source, whole_result_mb=size, resume=RETRY)
        assert lists(store) == [], number
        assert len(expected[0]) < store.sent < len(expected[0]) + BOUND
        assert left_over(store) == set()
        assert files(go_on()) == expected


def test_retry_after_retry_sends_only_what_is_new(go_on, store, source):
    run(go_on(), source)
    for failed in FAILED:
        mended.add(failed)
        store.sent = 0
        run(go_on(), source, resume=RETRY)
        assert store.sent < BOUND
        assert left_over(store) == set()
    mended.clear()
    whole = load_result(go_on()).read()
    assert {row["n"] for row in whole} == {n for n in range(120) if n % 10 != 9}
    assert [row["n"] for row in whole] == sorted(row["n"] for row in whole)
    assert run(go_on(), source, resume=RETRY).reused


def test_a_retry_that_mends_nothing_keeps_the_result(go_on, store, source):
    run(go_on(), source)
    before, old = load_result(go_on()).path.read_bytes(), lists(store)
    run(go_on(), source, resume=RETRY)
    assert lists(store) == old
    assert left_over(store) == set()
    assert load_result(go_on()).path.read_bytes() == before


def test_parts_that_would_be_tiny_become_one_object(go_on, store, source, expected, monkeypatch):
    run(go_on(), source)
    monkeypatch.undo()
    mend()
    run(go_on(), source, resume=RETRY)
    assert lists(store) == []
    assert left_over(store) == set()
    assert files(go_on()) == expected


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("before", ["one object", "parts"])
def test_a_retry_that_is_killed_at_any_request_is_finished_by_the_next(
    go_on, store, source, expected, monkeypatch, before, large
):
    keep_at_most(monkeypatch, outputs=0, result=100 if large else 1 << 30)
    run(go_on(), source, whole_result_mb=0 if before == "parts" else math.inf)
    old, seen = dict(store.objects), files(go_on())
    finished, became = 0, set()
    for number in range(0, 60, cases(7, campaign=1)):
        for answered in (False, True):
            store.objects.clear()
            store.objects.update(old)
            mend()
            with suppress(KilledError):
                run(go_on(killed_at(store, number, answered=answered)), source, resume=RETRY)
                finished += 1
            reader = files(go_on())
            assert reader in {seen, expected}
            became.add(reader)
            found = run(go_on(), source, resume=RETRY)
            assert files(go_on()) == expected, (number, answered)
            assert set(called) <= set(FAILED)
            assert found.dataset.fingerprint == orjson.loads(expected[2])["fingerprint"]
            run(go_on(), source, resume=RETRY)  # deletes what the killed one left
            assert left_over(store) == set(), (number, answered)
    assert finished
    assert became == {seen, expected}


def end_at(folder: NodeFolder, source: JsonlDataset, number: int) -> None:
    """Retry failed records; end at one of them."""
    ends.add(number)
    with pytest.raises(KeyboardInterrupt):
        run(folder, source, resume=RETRY)
    ends.clear()


def test_the_entry_of_a_retry_names_the_result_by_its_digest(go_on, store, source):
    """Versions that do not know a fifth value of a piece refuse the entry."""
    run(go_on(), source)
    size, digest = load_result(go_on()).size_bytes, load_result(go_on()).fingerprint
    mend()
    end_at(go_on(), source, FAILED[3])
    heads = [
        orjson.loads(content.partition(b"\n")[0])
        for key, (content, _) in store.objects.items()
        if "/.journal/0" in key
    ]
    pieces = [piece for head in heads for piece in head.get("pieces", ())]
    assert [piece for piece in pieces if piece[3:4] == ["published"]] == [
        ["segment-00001.jsonl", 0, size, "published", digest]
    ]


def test_a_retry_goes_on_after_its_result_became_one_object(
    go_on, store, source, expected, tmp_path, monkeypatch
):
    monkeypatch.setenv("DATAOPS_DATA_PROCESS_SCRATCH", str(tmp_path / "command"))
    run(go_on(), source)
    mend()
    end_at(go_on(), source, FAILED[3])
    machine(tmp_path / "command", store)
    assert main(["whole", "memory://bucket/root/made"]) == 0
    assert lists(store) == []
    called.clear()
    run(go_on(), source, resume=RETRY)

    assert called == FAILED[3:]
    assert files(go_on()) == expected
    assert left_over(store) == set()


@pytest.mark.parametrize("other", [RETRY, ResumePolicy.NEVER, "whole"])
@pytest.mark.parametrize("large", [False, True])
def test_of_two_runs_at_once_the_later_one_publishes(
    go_on, store, source, expected, monkeypatch, tmp_path, large, other
):
    """What it deletes may be what the first one reads."""
    monkeypatch.setenv("DATAOPS_DATA_PROCESS_SCRATCH", str(tmp_path / "command"))
    machine(tmp_path / "command", store)
    keep_at_most(monkeypatch, outputs=0, result=100 if large else 1 << 30)
    run(go_on(), source)
    before = files(go_on())
    mend()

    def other_machine() -> object:
        if other == "whole":
            return main(["whole", "memory://bucket/root/made"])
        return run(go_on(), source, resume=other)

    meanwhile[FAILED[3]] = other_machine
    with pytest.raises(LostError):
        run(go_on(), source, resume=RETRY)
    assert files(go_on()) == (before if other == "whole" else expected)
    run(go_on(), source, resume=RETRY)
    assert files(go_on()) == expected
    assert left_over(store) == set()


@pytest.mark.parametrize("before", ["one object", "parts"])
def test_a_retry_of_a_result_without_all_its_bytes_is_refused_before_a_record_is_processed(
    go_on, store, source, expected, monkeypatch, before
):
    keep_at_most(monkeypatch, outputs=0, result=100)
    run(go_on(), source, whole_result_mb=0 if before == "parts" else math.inf)
    mend()
    (gone,) = (key for key in store.objects if "data/" in key or key.endswith("results.jsonl"))
    store.remove([gone])
    with pytest.raises(ResultMissingError, match="files of the published result are missing"):
        run(go_on(), source, resume=RETRY)
    assert called == []
    run(go_on(), source, resume=ResumePolicy.NEVER)  # makes it anew
    assert files(go_on()) == expected
    assert left_over(store) == set()


def test_a_retry_whose_result_was_deleted_makes_all_records_again(go_on, store, source, expected):
    run(go_on(), source)
    mend()
    end_at(go_on(), source, FAILED[3])
    store.remove([key for key in store.objects if key.endswith("made_results.jsonl.json")])
    report = run(go_on(), source)
    assert any("settled spans are damaged" in note for note in report.notes)
    assert files(go_on()) == expected
    assert left_over(store) == set()


def test_versions_have_the_objects_of_the_result_before(go_on, store, source, expected, tmp_path):
    with config.temporary(data_process_scratch=tmp_path / "one"):
        here = NodeFolder.of(machine(tmp_path / "one", store) / "made")
        run(here, source, keep=1)
        first = files(here)
        mend()
        store.sent = 0
        run(here, source, keep=1, resume=RETRY)
        assert store.sent < BOUND
        assert len(lists(store)) == 2
        assert left_over(store) == set()

        restore(here.path, versions(here.path)[0].name)
        assert files(go_on()) == first
        store.sent = 0
        run(go_on(), source, keep=1, resume=RETRY)
        assert store.sent < BOUND
        assert files(go_on()) == expected
        mend(all_of_them=True)
        run(go_on(), source, keep=1, resume=RETRY)  # the first list is of no version any more
        assert len(lists(store)) == 2
        assert left_over(store) == set()


@pytest.mark.parametrize("traced", ["with failures", "each record became a line"])
@pytest.mark.parametrize("large", [False, True])
def test_chosen_records_are_processed_again_and_no_other_is_sent(
    store, source, tmp_path, monkeypatch, traced, large
):
    keep_at_most(monkeypatch, outputs=0, result=100 if large else 1 << 30)
    operator = work() if traced == "with failures" else plain()
    node = "work" if traced == "with failures" else "plain"
    scratch = tmp_path / "one"
    machine(scratch, store)
    place = {"data_process_path": "memory://bucket/root", "data_process_scratch": scratch}
    with config.temporary(**place, whole_result_mb=0):
        before = operator(str(source.path))
        for chosen in ([21, 60], [22, 25, 26], list(range(1, 120, 2))):
            called.clear()
            store.sent = 0
            names = " or ".join(f"n == {n}" for n in chosen)
            with config.temporary(data_process_resume={"records": names}):
                assert operator(str(source.path)) == before
            assert called == chosen
            assert left_over(store, node) == set()
            assert store.sent < BOUND + 4000 * len(chosen)


def test_a_list_that_names_a_result_is_refused_by_earlier_versions(go_on, store, source):
    run(go_on(), source, whole_result_mb=math.inf)
    mend()
    run(go_on(), source, resume=RETRY)
    (key,) = lists(store)
    content = orjson.loads(store.objects[key][0])
    assert content["format"] == 2
    assert content["objects"][0][:15] == "../../.versions"
    store.put(key, orjson.dumps({**content, "format": 3}))
    with pytest.raises(NewerVersionError):
        load_result(go_on())
