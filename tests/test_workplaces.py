"""Workplaces that another package registers: the bytes of single mode, the errors of all modes."""

import asyncio
import os
import pickle
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest

from dagster_dataops import chain, config, data, data_register, register_workplace
from dagster_dataops.errors import (
    ConfigurationError,
    DataOpsError,
    OperatorOptionError,
    OutageError,
    RecordError,
    RunStoppedError,
    StorageError,
    UnprocessedError,
)
from dagster_dataops.workplaces import (
    Attempt,
    Interval,
    Sink,
    SpanFile,
    SpanReader,
    WorkList,
    range_worker,
)
from tests.each import each
from tests.execution.helpers import (
    KINDS,
    act,
    error_rows,
    expected_results,
    node,
    plan,
    run,
    write_input,
)
from tests.faults.crashing import in_child
from tests.nodes import ResumePolicy
from tests.registries import concurrency_modes

GROUP = "data.workplace_tests"


class InTheCaller:
    """Runs small ranges one after the other."""

    def run(self, attempt: Attempt, work: WorkList, sink: Sink) -> None:
        with range_worker(attempt, work, sink) as run_range:
            for interval in work.ranges(50):
                run_range(interval)


class InThreads:
    """Gives every thread a share of the ranges, the last range first."""

    def run(self, attempt: Attempt, work: WorkList, sink: Sink) -> None:
        ranges = list(work.ranges(50))[::-1]
        workers = attempt.settings.max_workers
        with ThreadPoolExecutor(workers) as pool:
            shares = [ranges[number::workers] for number in range(workers)]
            for ended in [pool.submit(self._share, attempt, work, sink, one) for one in shares]:
                while not ended.done():
                    wait([ended], 0.05)
                    sink.tick()
                ended.result()

    def _share(self, attempt: Attempt, work: WorkList, sink: Sink, ranges: list[Interval]) -> None:
        with range_worker(attempt, work, sink) as run_range:
            for interval in ranges:
                run_range(interval)


class ByFiles:
    """Runs each range as another machine would, and reads its file."""

    def run(self, attempt: Attempt, work: WorkList, sink: Sink) -> None:
        for interval in work.ranges(2000):
            reader = SpanReader(sink.folder / "spans", interval)
            reader.path.unlink(missing_ok=True)
            reader.read(sink)  # there is no file yet
            there = WorkList(attempt.operator, work.dataset)
            there.open = [interval]
            here = partial(self._look, reader, sink)
            same = Attempt(operator=attempt.operator)
            with SpanFile(reader.path, here) as away, range_worker(same, there, away) as run_range:
                run_range(interval)
            reader.read(sink)
            assert reader.done
            assert (reader.start, reader.end) == (interval.end, interval.end)

    def _look(self, reader: SpanReader, sink: Sink) -> None:
        reader.read(sink)
        sink.tick()


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Register the workplaces for one test."""
    modes = dict(concurrency_modes._MODES)
    register_workplace("caller", InTheCaller(), default_workers=1)
    register_workplace("threads", InThreads(), default_workers=3)
    register_workplace("files", ByFiles(), default_workers=1)
    yield
    concurrency_modes._MODES.clear()
    concurrency_modes._MODES.update(modes)


@data_register(GROUP)
async def waits(record):
    await asyncio.sleep(0)
    if record["do"] == "fail":
        raise ValueError(record["n"])
    return {"n": record["n"]}


@data_register(GROUP, rewrite_func="forward_batch")
def in_batches(records):
    if any(record["do"] == "exit" for record in records):
        raise ValueError("one of these")
    return [
        KeyError(record["n"]) if record["do"] == "fail" else {"all": [one["n"] for one in records]}
        for record in records
    ]


@data_register(GROUP)
def numbered(record):
    return [{"n": record["n"], "twice": 2 * record["n"]}] * (record["n"] % 3)


class Opened(data_register.new_group("workplace_tests")):
    """Counts, and shows that it was opened."""

    def open(self, context):
        self.context = context
        self.offset = 1000

    def forward(self, record):
        self.context.count(seen=1, odd=record["n"] % 2)
        return {"n": record["n"] + self.offset}

    def close(self):
        self.offset = 0


class Best(data_register.new_group("workplace_tests")):
    """Keeps every third record."""

    def sketch(self, record):
        return record["n"]

    def keep(self, sketches):
        return (number % 3 == 0 for number in sketches)


def _joined(**settings: Any) -> Any:
    return chain(act(), numbered(), **settings)


OPERATORS = {
    "record": act,
    "async": waits,
    "batch": in_batches,
    "chain": _joined,
    "opened": Opened,
    "selection": Best,
    "outcomes kept": lambda **settings: act(_reuse_outcomes=True, **settings),
    "not traced": lambda **settings: act(_trace=False, **settings),
}


def _published(home: Path, operator: Any, mode: str, **settings: Any) -> tuple[Any, ...]:
    """Return the bytes of result and error file, and the counts, of a run in a mode."""
    home.mkdir()
    dataset = write_input(home / "input.jsonl", plan(KINDS * 30))
    settings = {"_stop_after_failures": 0, "_concurrency_mode": mode, **settings}
    report = run(operator(**settings), dataset, node(home))
    manifest, folder = report.manifest, node(home)
    rows = [{**row, "path": ""} for row in error_rows(folder)]
    counts = {
        name: getattr(manifest, name) for name in ("rows_in", "rows_out", "dropped", "failed")
    }
    return folder.result.read_bytes(), rows, counts, dict(manifest.counts), manifest.drops


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["caller", "threads", "files"])
@each("kind", OPERATORS)
def test_operators_of_all_kinds_publish_the_same_bytes_as_in_single_mode(
    tmp_path: Path, mode: str, kind: str
) -> None:
    home = tmp_path / kind.replace(" ", "_")
    home.mkdir()
    operator = OPERATORS[kind]
    expected = _published(home / "single", operator, "single")
    assert _published(home / mode, operator, mode) == expected
    assert expected[0]


class _LoginError(Exception):
    """Does not survive pickling."""

    def __init__(self, user: str, *, server: str) -> None:
        super().__init__(f"{user} at {server}")


def test_an_error_elsewhere_that_does_not_survive_pickling_is_raised_as_its_text(
    tmp_path: Path,
) -> None:
    def refuse() -> None:
        raise _LoginError("ann", server="node7")

    with SpanFile(tmp_path / "spans", refuse) as away:
        away.tick()
    with pytest.raises(RuntimeError, match="_LoginError: ann at node7"):
        SpanReader(tmp_path / "spans", Interval(0, 10)).read(away)


def test_a_file_of_spans_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "spans"
    path.touch()
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    with pytest.raises(StorageError, match=f"spans: .*it belongs to user {user}"):
        SpanReader(path, Interval(0, 10)).read(None)


def test_an_entry_that_is_not_yet_whole_is_read_later(tmp_path: Path) -> None:
    with SpanFile(tmp_path / "spans", bool):
        pass
    whole = (tmp_path / "spans").read_bytes()
    reader = SpanReader(tmp_path / "part", Interval(0, 10))
    for size in range(len(whole)):
        reader.path.write_bytes(whole[:size])
        reader.read(SpanFile(tmp_path / "unused", bool))
        assert not reader.done
    reader.path.write_bytes(whole)
    reader.read(SpanFile(tmp_path / "unused", bool))
    assert reader.done


def test_the_number_of_workers_is_that_of_the_workplace_or_of_the_settings() -> None:
    workers = [
        act(_concurrency_mode="threads", **given).__dataops__.resolved.max_workers
        for given in ({}, {"_max_workers": 7})
    ]
    assert workers == [3, 7]


@pytest.mark.parametrize("mode", ["caller", "threads", "files"])
def test_failed_records_are_tried_again(tmp_path: Path, mode: str) -> None:
    tries: dict[int, int] = {}

    @data_register(GROUP, _retries=2, _backoff=0.0)
    def third_time(record):
        tries[record["n"]] = tries.get(record["n"], 0) + 1
        if tries[record["n"]] < 3 or record["n"] == 5:
            raise TimeoutError(record["n"])

    dataset = write_input(tmp_path / "input.jsonl", plan(["keep"] * 10))
    run(third_time(_concurrency_mode=mode), dataset, node(tmp_path))
    assert set(tries.values()) == {3}
    assert [(row["index"], row["attempts"]) for row in error_rows(node(tmp_path))] == [(5, 3)]


@pytest.mark.timeout(method="thread")  # pytest-timeout's SIGALRM would prevent the product's
@pytest.mark.parametrize("mode", ["caller", "threads"])
def test_calls_over_their_time_limit_fail(tmp_path: Path, mode: str) -> None:
    @data_register(GROUP, _timeout=0.1)
    def spins(record):
        until = time.monotonic() + (2 if record["n"] == 3 else 0)
        while time.monotonic() < until:
            sum(range(1000))

    dataset = write_input(tmp_path / "input.jsonl", plan(["keep"] * 6))
    run(spins(_concurrency_mode=mode), dataset, node(tmp_path))
    assert [row["exception"] for row in error_rows(node(tmp_path))] == ["RecordTimeout"]


@pytest.mark.parametrize("mode", ["caller", "threads", "files"])
def test_the_first_failure_ends_the_run_if_failures_are_not_ignored(
    tmp_path: Path, mode: str
) -> None:
    dataset = write_input(tmp_path / "input.jsonl", plan([*["keep"] * 3, "fail", "keep"]))
    with pytest.raises(RecordError, match="on record 3 .*line 4.*ValueError") as caught:
        run(act(_concurrency_mode=mode, _ignore_errors=False), dataset, node(tmp_path))
    assert mode == "files" or isinstance(caught.value.__cause__, ValueError)
    assert not node(tmp_path).result.exists()


@pytest.mark.parametrize("mode", ["caller", "threads", "files"])
def test_a_stop_request_keeps_finished_records(tmp_path: Path, mode: str) -> None:
    calls: list[int] = []

    @data_register(GROUP)
    def called(record):
        calls.append(record["n"])

    dataset = write_input(tmp_path / "input.jsonl", plan(["keep"] * 200))
    operator = called(_concurrency_mode=mode, _max_workers=1)
    with pytest.raises(RunStoppedError, match="told to"):
        run(operator, dataset, node(tmp_path), should_stop=lambda: "told to")
    run(operator, dataset, node(tmp_path), resume=ResumePolicy.AUTO)
    assert sorted(calls) == list(range(200))


@pytest.mark.parametrize("mode", ["caller", "threads", "files"])
def test_an_outage_stops_the_run(tmp_path: Path, mode: str) -> None:
    calls: list[int] = []

    @data_register(GROUP, _stop_after_failures=10)
    def down(record):
        calls.append(record["n"])
        raise ConnectionError("down")

    dataset = write_input(tmp_path / "input.jsonl", plan(["keep"] * 200))
    with pytest.raises(OutageError, match="10 calls failed with ConnectionError"):
        run(down(_concurrency_mode=mode, _max_workers=1), dataset, node(tmp_path))
    assert len(calls) == 10


_SCRIPT = """
import os, sys
from pathlib import Path
from dagster_dataops import config, data_register, pipeline, register_workplace
from tests.test_workplaces import InTheCaller

register_workplace("caller", InTheCaller(), default_workers=1)
config.data_process_path = sys.argv[1]
config.data_process_resume = True


@data_register("data.killed", _concurrency_mode="caller")
def called(record):
    with Path(sys.argv[1], "calls").open("a") as file:
        file.write(f"{record['n']}\\n")
    if record["n"] == int(sys.argv[2]):
        os._exit(9)
    return {"n": record["n"]}


with pipeline("docs") as ppl:
    ppl.node = called()
ppl.materialize(Path(sys.argv[1], "input.jsonl"))
"""


@pytest.mark.slow
def test_a_killed_run_goes_on_with_what_is_open(tmp_path: Path) -> None:
    records = [{"n": n} for n in range(300)]
    write_input(tmp_path / "input.jsonl", records)
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(_SCRIPT))

    def attempt(killer: int) -> int:
        command = [sys.executable, str(script), str(tmp_path), str(killer)]
        return subprocess.run(command, check=False).returncode

    assert [attempt(250), attempt(-1)] == [9, 0]
    calls = [int(line) for line in (tmp_path / "calls").read_text().split()]
    assert sorted(set(calls)) == list(range(300))
    assert len(calls) < 350  # of the first attempt, only those since its last span are repeated
    (result,) = tmp_path.rglob("*_results.jsonl")
    assert [orjson.loads(line) for line in result.read_bytes().splitlines()] == records


class Faulty:
    """A workplace with one fault."""

    def __init__(self, fault: str) -> None:
        self.fault = fault

    def run(self, attempt: Attempt, work: WorkList, sink: Sink) -> None:
        ranges = list(work.ranges(1))
        with range_worker(attempt, work, sink) as run_range:
            match self.fault:
                case "forgets one":
                    ranges = ranges[1:]
                case "repeats one":
                    ranges = [*ranges, ranges[3]]
                case "cuts a line":
                    ranges = [Interval(0, 5)]
                case "goes beyond":
                    ranges = [Interval(0, work.content.end + 10)]
            for interval in ranges:
                run_range(interval)


FAULTS = {
    "forgets one": "not processed: 1 record; run again",
    "repeats one": "mode 'faulty' wrote the outcomes of some records twice; nothing is published",
    "cuts a line": "bytes 0 to 5 of its input are no open range between two lines or batches",
    "goes beyond": "of its input are no open range",
}


@each("fault", FAULTS)
def test_a_faulty_workplace_publishes_nothing(tmp_path: Path, fault: str) -> None:
    register_workplace("faulty", Faulty(fault), default_workers=1)
    home = tmp_path / fault.replace(" ", "_")
    dataset = write_input(home / "input.jsonl", plan(["keep"] * 6))
    with pytest.raises(UnprocessedError, match=FAULTS[fault]):
        run(act(_concurrency_mode="faulty"), dataset, node(home))
    assert not node(home).result.exists()


def _shares_a_worker(run_range: Any, ranges: list[Interval]) -> Any:
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(run_range, ranges))


MISUSES: dict[str, tuple[Any, str]] = {
    "no range": (lambda run_range, ranges: run_range(tuple(ranges[0])), "is no range of its input"),
    "fractions": (
        lambda run_range, ranges: run_range(Interval(0.0, float(ranges[0].end))),  # type: ignore[arg-type]
        "is no range of its input; take ranges from work.ranges",
    ),
    "other threads": (_shares_a_worker, "in another thread than its range_worker"),
    "later": (lambda run_range, _: run_range, "after the block of its range_worker"),
}


@each("misuse", MISUSES)
def test_a_worker_is_used_for_ranges_in_its_thread_and_block_alone(
    tmp_path: Path, misuse: str
) -> None:
    use, text = MISUSES[misuse]

    class Misuses:
        def run(self, attempt: Attempt, work: WorkList, sink: Sink) -> None:
            ranges = list(work.ranges(1))
            with range_worker(attempt, work, sink) as run_range:
                later = use(run_range, ranges)
            later(ranges[0])

    register_workplace("misuses", Misuses(), default_workers=2)
    home = tmp_path / misuse.replace(" ", "_")
    dataset = write_input(home / "input.jsonl", plan(["keep"] * 6))
    with pytest.raises(UnprocessedError, match=text):
        run(act(_concurrency_mode="misuses", _ignore_errors=False), dataset, node(home))
    assert not node(home).result.exists()
    concurrency_modes._MODES.pop("misuses")


def test_a_workplace_cannot_change_what_needs_an_outcome(tmp_path: Path) -> None:
    class Forgets:
        def run(self, attempt: Attempt, work: WorkList, sink: Sink) -> None:
            work.content = Interval(0, 0)  # type: ignore[misc]

    register_workplace("forgets", Forgets(), default_workers=1)
    dataset = write_input(tmp_path / "input.jsonl", plan(["keep"] * 6))
    with pytest.raises(AttributeError, match="content"):
        run(act(_concurrency_mode="forgets"), dataset, node(tmp_path))
    assert not node(tmp_path).result.exists()


def test_a_range_inside_a_batch_is_refused(tmp_path: Path) -> None:
    class Cuts:
        def run(self, attempt: Attempt, work: WorkList, sink: Sink) -> None:
            (whole,) = work.open
            with range_worker(attempt, work, sink) as run_range:
                end = next(iter(WorkList.ranges(_of_single_records(work), 1))).end
                run_range(Interval(whole.start, end))

    def _of_single_records(work: WorkList) -> WorkList:
        single = WorkList(act(), work.dataset)
        single.open = work.open
        return single

    register_workplace("cuts", Cuts(), default_workers=1)
    dataset = write_input(tmp_path / "input.jsonl", plan(["keep"] * 40))
    with pytest.raises(UnprocessedError, match="between two lines or batches"):
        run(in_batches(_concurrency_mode="cuts"), dataset, node(tmp_path))


def test_a_span_that_comes_after_the_workplace_has_returned_is_refused(tmp_path: Path) -> None:
    late: list[Any] = []

    class Leaves(InTheCaller):
        def run(self, attempt: Attempt, work: WorkList, sink: Sink) -> None:
            super().run(attempt, work, sink)
            late.append((attempt, work, sink))

    register_workplace("leaves", Leaves(), default_workers=1)
    dataset = write_input(tmp_path / "input.jsonl", plan(["keep"] * 4))
    run(act(_concurrency_mode="leaves"), dataset, node(tmp_path))
    attempt, work, sink = late[0]
    with (
        range_worker(attempt, work, sink) as run_range,
        pytest.raises(DataOpsError, match="the workplace that hands it over has returned"),
    ):
        run_range(work.open[0])


def test_a_span_of_a_forked_process_is_refused(tmp_path: Path) -> None:
    class Forks:
        def run(self, attempt: Attempt, work: WorkList, sink: Sink) -> None:
            def child() -> None:
                with range_worker(attempt, work, sink) as run_range:
                    run_range(work.open[0])

            statuses.append(in_child(child))

    statuses: list[int] = []
    register_workplace("forks", Forks(), default_workers=1)
    dataset = write_input(tmp_path / "input.jsonl", plan(["keep"] * 4))
    with pytest.raises(UnprocessedError, match="not processed: 4 records"):
        run(act(_concurrency_mode="forks"), dataset, node(tmp_path))
    assert statuses != [0]


class AsCoroutine:
    async def run(self, attempt: Any, work: Any, sink: Any) -> None: ...


class AsGenerator:
    def run(self, attempt: Any, work: Any, sink: Any) -> Iterator[None]:
        yield


class OfTwo:
    def run(self, attempt: Any, work: Any) -> None: ...


REFUSED = {
    "a coroutine": (("other", AsCoroutine()), {}, "which is no `async def`"),
    "a generator": (("other", AsGenerator()), {}, "an object with a method run"),
    "too few arguments": (("other", OfTwo()), {}, r"run\(attempt, work, sink\)"),
    "a flag": (("other", InTheCaller()), {"only_coroutines": "no"}, "True or False"),
    "no name": (("", InTheCaller()), {}, "name of a workplace is ''"),
    "capitals": (("Caller", InTheCaller()), {}, "lower-case letters"),
    "a mode of the package": (("thread", InTheCaller()), {}, "none of process, thread"),
    "no method": (("other", object()), {}, "an object with a method run"),
    "a class": (("other", InTheCaller), {}, "an object with a method run"),
    "taken": (("caller", InThreads()), {}, "another one: .*InTheCaller"),
    "no workers": (("other", InTheCaller()), {"default_workers": 0}, "at least 1"),
    "a bool": (("other", InTheCaller()), {"default_workers": True}, "at least 1"),
    "a float": (("other", InTheCaller()), {"default_workers": 2.0}, "at least 1"),
}


@each("case", REFUSED)
def test_a_workplace_that_cannot_be_registered_is_refused(case: str) -> None:
    given, options, text = REFUSED[case]
    before = list(concurrency_modes.MODES)
    with pytest.raises(ConfigurationError, match=text) as caught:
        register_workplace(*given, **{"default_workers": 1, **options})
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert list(concurrency_modes.MODES) == before


def test_an_unknown_mode_is_refused_with_all_that_are_known() -> None:
    known = "process, thread, async, single, caller, threads, files"
    with pytest.raises(OperatorOptionError, match=f"must be one of {known}; got 'callers'"):
        act(_concurrency_mode="callers")


def test_a_mode_that_only_another_process_knows_is_named() -> None:
    operator = act(_concurrency_mode="caller")
    concurrency_modes._MODES.pop("caller")
    with pytest.raises(ConfigurationError, match=r"'caller'; .*import the module that registers"):
        _ = operator.__dataops__.resolved


def test_a_workplace_for_coroutines_refuses_other_operators() -> None:
    register_workplace("loop", InTheCaller(), default_workers=1, only_coroutines=True)
    with pytest.raises(OperatorOptionError, match="is 'loop', which needs an `async def` operator"):
        act(_concurrency_mode="loop")
    assert waits(_concurrency_mode="loop").__dataops__.resolved.concurrency_mode == "loop"


def test_agents_refuse_it_as_they_refuse_other_modes() -> None:
    with pytest.raises(OperatorOptionError, match="needs _concurrency_mode='process'"):
        act(_concurrency_mode="caller", _agents={"num_gpus": 1})


def test_an_operator_that_is_called_runs_there(tmp_path: Path) -> None:
    with config.temporary(data_process_path=str(tmp_path)):
        operator = data.workplace_tests.numbered(_concurrency_mode="caller")
        assert operator([{"n": 4}]) == [{"n": 4, "twice": 8}]


def test_several_results_are_published_from_it(tmp_path: Path) -> None:
    records = plan(KINDS * 3)
    dataset = write_input(tmp_path / "input.jsonl", records)
    run(act(_concurrency_mode="caller", _stop_after_failures=0), dataset, node(tmp_path))
    assert node(tmp_path).result.read_bytes() == expected_results(records)
