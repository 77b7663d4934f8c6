"""Tests of traces of whole pipelines, against a reference interpreter."""

import os
import random
import signal
import subprocess
from pathlib import Path

import orjson
import pytest

from dagster_dataops import Trace, config, data_register, load_result, pipeline, trace
from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.errors import ConfigurationError, ResultMissingError, TraceError
from dagster_dataops.execution.executor import OperatorExecutor
from dagster_dataops.pipelines.local_run import plain_context
from dagster_dataops.pipelines.tracing.trail import Place
from tests.faults.crashing import HANG_SECONDS, alive_in_session, wait_until
from tests.faults.warm_starts import StartedProcess, warm_interpreter
from tests.pipelines.tracing.random_trails import (
    SOURCE,
    Entry,
    Plan,
    Ref,
    Trails,
    interpret,
    materialize,
)
from tests.subprocesses import killed_at_exit

ROOT = Path(__file__).parents[2]


def folder_of(home: Path, result: str) -> Path:
    return home.joinpath("results", "random", *result.split("."))


def name_of(home: Path, place: Place) -> str:
    path = Path(place.path)
    if path == home / "input.jsonl":
        return SOURCE
    return ".".join(path.parent.relative_to(home / "results" / "random").parts)


class Comparison:
    """Compares traces of one pipeline with those of the reference."""

    def __init__(self, home: Path, plan: Plan) -> None:
        self.home = home
        self.trails: Trails = interpret(plan)
        lines = plan.text.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        self.numbers = [at for at, line in enumerate(lines, 1) if line.strip()]

    def ref(self, place: Place) -> Ref:
        """Return a place of a trace as the reference has it; check the text."""
        name = name_of(self.home, place)
        index = self.numbers.index(place.line) if name == SOURCE else place.line - 1
        row = self.trails.rows[name][index]
        text = self.trails.plan.lines[index].decode() if name == SOURCE else None
        assert place.text == (text or orjson.dumps(row).decode())
        return name, index

    def entries(self, found: Trace) -> set[Entry]:
        entries = [
            Entry(
                step.node,
                tuple(map(self.ref, step.given)),
                tuple(map(self.ref, step.made)),
                step.outcome,
                tuple(sorted(step.reasons.items())),
            )
            for step in found.steps
        ]
        assert len(set(entries)) == len(entries)
        assert all((step.error is None) == (step.outcome != "failed") for step in found.steps)
        return set(entries)

    def check_back(self, result: str, index: int) -> None:
        found = trace(folder_of(self.home, result), index + 1)
        sources, entries, ends = self.trails.back((result, index))
        assert set(map(self.ref, found.sources)) == sources
        assert self.entries(found) == entries
        assert {end.node for end in found.ends} == ends
        assert [self.ref(one) for one in found.results] == [(result, index)]
        assert str(found)

    def check_forth(self, index: int, result: str) -> None:
        given = self.numbers[index]
        found = trace(folder_of(self.home, result), source_line=given)
        results, entries, ends = self.trails.forth((SOURCE, index), result)
        assert [self.ref(one) for one in found.sources] == [(SOURCE, index)]
        assert self.entries(found) == entries
        assert {self.ref(one) for one in found.results} == results
        assert {end.node for end in found.ends} == ends
        assert orjson.loads(orjson.dumps(found.to_json()))["steps"] is not None

    def check_some(self, seed: int, number: int) -> None:
        """Compare random lines of every result, and source lines followed to it."""
        chance = random.Random(seed)
        rows = self.trails.rows
        for result in [one for one in rows if one != SOURCE]:
            lines = range(len(rows[result]))
            for index in chance.sample(lines, min(number, len(lines))):
                self.check_back(result, index)
            sources = range(len(rows[SOURCE]))
            for index in chance.sample(sources, min(number, len(sources))):
                self.check_forth(index, result)


def run(home: Path, plan: Plan) -> None:
    home.mkdir(parents=True, exist_ok=True)
    (home / "input.jsonl").write_bytes(plan.text)
    with config.temporary():
        materialize(home, plan)


@pytest.mark.parametrize("seed", range(12))
def test_traces_of_random_pipelines_are_those_of_a_reference_interpreter(tmp_path, seed):
    plan = Plan.draw(seed)
    run(tmp_path, plan)
    Comparison(tmp_path, plan).check_some(seed, 4)


def test_200_records_of_a_pipeline_with_every_kind_are_traced_both_ways(tmp_path):
    plan = Plan.draw(1, every=True)
    run(tmp_path, plan)
    assert len({node.kind for node in plan.nodes}) >= 10
    results = sum(len(node.results) for node in plan.nodes)
    Comparison(tmp_path, plan).check_some(1, 200 // results + 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 112))
def test_traces_after_kills_are_those_of_a_reference_interpreter(tmp_path, seed):
    every = seed % 2 == 0
    plan = Plan.draw(seed, every=every)
    (tmp_path / "input.jsonl").write_bytes(plan.text)
    chance = random.Random(seed)
    longest = 1.5 if every else 0.3  # seconds, about those of a whole run on an idle machine
    for _ in range(3):
        with killed_at_exit(start(tmp_path, seed)) as process:
            try:
                process.wait(chance.uniform(0.05, longest))
            except subprocess.TimeoutExpired:
                chance.choice([os.killpg, os.kill])(process.pid, signal.SIGKILL)
                process.wait()
                wait_until(lambda p=process.pid: not alive_in_session(p), 10, "its end")
    with killed_at_exit(start(tmp_path, seed)) as process:
        assert process.wait(HANG_SECONDS) == 0, (tmp_path / "output.txt").read_text()
    Comparison(tmp_path, plan).check_some(seed, 5)


def start(home: Path, seed: int) -> StartedProcess:
    module = ["-m", "tests.pipelines.tracing.random_trails", str(home), str(seed)]
    with (home / "output.txt").open("ab") as output:
        return warm_interpreter().start(
            module + ["every"] * (seed % 2 == 0),
            output.fileno(),
            folder=ROOT,
            environment=os.environ | {"PYTHONPATH": str(ROOT)},
        )


# ---------------------------------------------------------------- retries, reuse, sources


class Flaky:
    """A record operator that fails for odd numbers until it is repaired."""

    repaired = False


@data_register("data.traced_again", _concurrency_mode="thread", _stop_after_failures=0)
def flaky(record):
    if record["n"] % 2 and not Flaky.repaired:
        raise ValueError("odd")
    return [record] * (record["n"] % 3)


@data_register("data.traced_again", _concurrency_mode="thread", _reuse_outcomes=True)
def reused(record):
    return [record] * (record["n"] % 3)


def write(path: Path, numbers: list[int]) -> Path:
    path.write_text("".join(f'{{"n":{n}}}\n' for n in numbers))
    return path


def lines_from(folder: Path, count: int) -> list[int]:
    """Return the source line of each line of a result."""
    return [trace(folder, line).sources[0].line for line in range(1, count + 1)]


def test_records_that_a_retry_repaired_are_traced_to_their_places(tmp_path, monkeypatch):
    source = write(tmp_path / "in.jsonl", list(range(9)))
    folder = tmp_path / "root" / "docs" / "flaky"
    with pipeline("docs") as ppl:
        ppl.flaky = flaky()
    with config.temporary(data_process_path=tmp_path / "root"):
        ppl.materialize(source)
        assert lines_from(folder, 5) == [3, 3, 5, 9, 9]
        assert trace(folder, source_line=2).steps[0].error["message"] == "odd"
        monkeypatch.setattr(Flaky, "repaired", True)
        with config.temporary(data_process_resume="failed_records"):
            ppl.materialize(source)
        assert lines_from(folder, 9) == [2, 3, 3, 5, 6, 6, 8, 9, 9]
        assert trace(folder, source_line=2).steps[0].outcome == "kept"


def test_reused_outcomes_are_traced_to_the_lines_of_the_new_input(tmp_path):
    folder = tmp_path / "root" / "docs" / "reused"
    with pipeline("docs") as ppl:
        ppl.reused = reused()
    with config.temporary(data_process_path=tmp_path / "root"):
        ppl.materialize(write(tmp_path / "in.jsonl", [0, 1, 2, 3]))
        ppl.materialize(write(tmp_path / "in.jsonl", [8, 2, 0, 1]))
        assert lines_from(folder, 5) == [1, 1, 2, 2, 4]
        assert trace(folder, source_line=3).steps[0].outcome == "dropped"


def test_one_of_several_sources_is_named(tmp_path):
    for name in ("a", "b"):
        write(tmp_path / f"{name}.jsonl", [1, 2])
    with config.temporary(data_process_path=tmp_path / "root"):
        for name in ("a", "b"):
            with pipeline(name) as ppl:
                ppl.reused = reused()
            ppl.materialize(tmp_path / f"{name}.jsonl")
        parts = [load_result(tmp_path / "root" / name / "reused") for name in ("a", "b")]
        folder = NodeFolder(tmp_path / "root" / "joined", "joined")
        OperatorExecutor(plain_context()).run(reused(), parts, folder)
    with pytest.raises(TraceError, match="give one of the sources as `source`: .*a.jsonl, .*b.j"):
        trace(folder.path, source_line=1)
    with pytest.raises(TraceError, match="'c.jsonl' is not one of them"):
        trace(folder.path, source_line=1, source="c.jsonl")
    assert len(trace(folder.path, source_line=2, source="b.jsonl").results) == 4
    middle = tmp_path / "root" / "b" / "reused"
    assert len(trace(folder.path, source_line=2, source=middle).results) == 2


def test_records_of_a_call_are_traced_although_their_file_is_gone(tmp_path):
    with config.temporary(data_process_path=tmp_path / "root"):
        with pipeline("docs") as ppl:
            ppl.reused = reused()
        ppl([{"n": 0}, {"n": 1}, {"n": 2}])
    found = trace(tmp_path / "root" / "docs" / "reused", 2)
    assert (found.sources[0].line, found.sources[0].text) == (3, None)
    assert "the file is gone" in found.ends[0].reason
    found = trace(tmp_path / "root" / "docs" / "reused", source_line=3)
    assert [place.line for place in found.results] == [2, 3]


@pytest.mark.parametrize("given", [{}, {"line": 1, "source_line": 1}])
def test_exactly_one_line_is_given(tmp_path, given):
    with pytest.raises(TraceError, match="either a line of the result, or source_line"):
        trace(tmp_path, **given)


def test_a_folder_without_a_result_is_an_error(tmp_path):
    with pytest.raises(ResultMissingError, match="no \\*_results.jsonl is there"):
        trace(tmp_path, 1)


def test_a_node_with_several_results_asks_for_one_of_them(tmp_path):
    plan = Plan.draw(1, every=True)
    run(tmp_path, plan)
    (split,) = [node.name for node in plan.nodes if node.kind == "split"]
    with pytest.raises(TraceError, match="give the folder of one of them: .*left, .*right"):
        trace(folder_of(tmp_path, split), 1)
    assert trace(folder_of(tmp_path, split), source_line=1).steps
    found = trace(folder_of(tmp_path, f"{split}.rest"), 1)
    (tmp_path / "link").symlink_to(folder_of(tmp_path, f"{split}.rest"))
    assert trace(tmp_path / "link", 1) == found
    assert trace(folder_of(tmp_path, split) / "left" / ".." / "rest", 1) == found
    result = folder_of(tmp_path, f"{split}.rest") / "rest_results.jsonl"
    assert trace(result, 1) == found
    with pytest.raises(ConfigurationError, match="Setting folder is 's3:"):
        trace("s3://bucket/docs", 1)
    for line in (0, -1, 10**9):
        with pytest.raises(TraceError, match=f"no record in line {line:,}"):
            trace(folder_of(tmp_path, split), source_line=line)
