"""Tests of traces: to the source, to later results, of crude data."""

import io
import json
import os
import pickle
import random
import signal
import subprocess
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from dagster_dataops import (
    DefaultTaskEncoder,
    FileStore,
    Pipeline,
    SkipSample,
    TextSample,
    To,
    Trace,
    basic_sample_keys,
    combine,
    config,
    crude,
    data_register,
    load_result,
    pipeline,
    trace,
)
from dagster_dataops.errors import (
    ResultMissingError,
    TraceError,
    TraceOutdatedError,
)
from dagster_dataops.pipelines.local_run import plain_context
from dagster_dataops.pipelines.tracing.crude_origins import CrudeFile, crude_files
from dagster_dataops.pipelines.tracing.trail import Place
from tests.command_line import main
from tests.faults.cases import cases
from tests.faults.crashing import HANG_SECONDS, alive_in_session, wait_until
from tests.faults.warm_starts import StartedProcess, warm_interpreter
from tests.nodes import NodeFolder, OperatorExecutor
from tests.object_stores import FakeStore, machine
from tests.pipelines.tracing.conftest import work, write_source
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


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_traces_of_random_pipelines_are_those_of_a_reference_interpreter(tmp_path, seed):
    plan = Plan.draw(seed)
    run(tmp_path, plan)
    Comparison(tmp_path, plan).check_some(seed, 4)


@pytest.mark.slow
def test_200_records_of_a_pipeline_with_every_kind_are_traced_both_ways(tmp_path):
    plan = Plan.draw(1, every=True)
    run(tmp_path, plan)
    assert len({node.kind for node in plan.nodes}) >= 10
    results = sum(len(node.results) for node in plan.nodes)
    Comparison(tmp_path, plan).check_some(1, 200 // results + 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, cases(108, campaign=140)))
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
    Comparison(tmp_path, plan).check_some(seed, cases(2, campaign=5))


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
    assert "the file is not there" in found.ends[0].reason
    found = trace(tmp_path / "root" / "docs" / "reused", source_line=3)
    assert [place.line for place in found.results] == [2, 3]


def test_exactly_one_line_of_a_folder_with_a_result_is_given(tmp_path):
    for given in ({}, {"line": 1, "source_line": 1}):
        with pytest.raises(TraceError, match="either a line of the result, or source_line"):
            trace(tmp_path, **given)
    with pytest.raises(ResultMissingError, match="no \\*_results.jsonl is there"):
        trace(tmp_path, 1)


@pytest.mark.slow
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
    with pytest.raises(ResultMissingError, match="bucket/docs"):
        trace("memory://bucket/docs", 1)
    for line in (0, -1, 10**9):
        with pytest.raises(TraceError, match=f"no record in line {line:,}"):
            trace(folder_of(tmp_path, split), source_line=line)


Made = Callable[..., Pipeline]


@data_register("data.traced", outputs=("left", "right"))
def sent(record: dict[str, Any]) -> Any:
    return To("right" if record["n"] % 2 else "left")


@data_register("data.traced")
def kept(record: dict[str, Any]) -> Any:
    return record


def test_a_node_without_a_map_says_that_it_was_switched_off(made: Made, root: Path) -> None:
    made(_trace=False)
    assert not (root / "docs" / "second" / ".second_results.kept").exists()
    for given in (1, None):
        with pytest.raises(TraceError, match="second .*_trace=False.*switched off.*run the node"):
            trace(root / "docs" / "second", given, source_line=None if given else 2)


def test_the_map_of_an_earlier_run_is_removed_when_it_is_switched_off(
    made: Made, root: Path
) -> None:
    kept = root / "docs" / "second" / ".second_results.kept"
    made()
    assert kept.exists()
    with config.temporary(data_process_resume=False):
        made(_trace=False)
    assert (root / "docs" / "second" / "second_error.jsonl").exists()
    assert not kept.exists()


def test_the_map_that_a_retry_needs_is_written_and_read_with_trace_off(
    made: Made, root: Path
) -> None:
    made(_trace=False)
    assert trace(root / "docs" / "first", 1).sources[0].line == 2


def test_results_of_named_outputs_are_mapped_with_trace_off(root: Path, source: Path) -> None:
    with pipeline("docs") as ppl:
        ppl.sent = sent(_trace=False)
    ppl.materialize(source)
    assert trace(root / "docs" / "sent" / "right", 3).sources[0].line == 6


def test_records_that_all_became_one_line_need_no_map(root: Path, source: Path) -> None:
    with pipeline("docs") as ppl:
        ppl.kept = kept()
    ppl.materialize(source)
    assert not (root / "docs" / "kept" / ".kept_results.kept").exists()
    assert trace(root / "docs" / "kept", 7).sources[0].line == 7


def test_a_dataset_operator_ends_the_trail_both_ways(made: Made, root: Path) -> None:
    made()
    (end,) = trace(root / "docs" / "third", 1).ends
    assert (end.node, end.place.line) == ("third", 1)
    assert "takes all records at once" in end.reason
    found = trace(root / "docs" / "third", source_line=2)
    assert [step.node for step in found.steps] == ["first", "second"]
    assert found.ends[0].place.path.endswith("second_results.jsonl")


def test_an_edited_or_deleted_result_or_another_source_is_not_traced(
    made: Made, root: Path, source: Path
) -> None:
    made()
    before, content = source.stat(), source.read_bytes()
    source.write_bytes(content[:-1] + b" ")  # of the same size and time
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(TraceOutdatedError, match="node first read another version of .*in.jsonl"):
        trace(root / "docs" / "first", 1)
    source.write_bytes(content)
    result = root / "docs" / "first" / "first_results.jsonl"
    result.write_bytes(result.read_bytes() + b"{}\n")
    with pytest.raises(TraceOutdatedError, match="first_results.jsonl: it was edited or replaced"):
        trace(root / "docs" / "first", 1)
    result.unlink()
    with pytest.raises(TraceOutdatedError, match="it was deleted after run .* published it"):
        trace(root / "docs" / "second", source_line=2)


@pytest.mark.parametrize("given", [{"line": 1}, {"source_line": 2}])
def test_a_result_that_was_made_again_since_is_not_traced(
    made: Made, root: Path, source: Path, given: dict[str, int]
) -> None:
    made()
    write_source(source, 11)
    with pipeline("docs") as first:
        first.first = work()
    first.materialize(source)
    with pytest.raises(TraceOutdatedError, match="node second read another version .*run the node"):
        trace(root / "docs" / "second", given.get("line"), source_line=given.get("source_line"))


def test_a_result_that_was_made_again_with_the_same_content_is_traced(
    made: Made, root: Path, source: Path
) -> None:
    made()
    with config.temporary(data_process_resume=False), pipeline("docs") as first:
        first.first = work()
    first.materialize(source)
    assert trace(root / "docs" / "second", 1).sources[0].line == 2


def test_an_error_of_a_trace_survives_pickling() -> None:
    error = TraceOutdatedError("a.jsonl", "it has changed")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (TraceOutdatedError, "Trace of a.jsonl: it has changed")


def test_records_of_several_inputs_are_told_apart(root: Path, tmp_path: Path) -> None:
    with pipeline("docs") as ppl:
        ppl.sent = sent()
        ppl.add("joined", kept(), inputs=[ppl.sent.right, ppl.source, ppl.sent.left])
    source = tmp_path / "in.jsonl"
    source.write_text('{"n": 0}\n\n{"n": 1}\n{"n": 2}')
    ppl.materialize(source)
    lines = [trace(root / "docs" / "joined", line).sources[0].line for line in range(1, 7)]
    assert lines == [3, 1, 3, 4, 1, 4]
    found = trace(root / "docs" / "joined", source_line=3)
    assert [place.line for place in found.results] == [1, 3]


def even(record: dict[str, Any]) -> dict[str, Any]:
    if record["n"] % 2:
        raise SkipSample
    return record


@pytest.mark.parametrize(
    ("stages", "said"),
    [
        (
            lambda records: records.filter(lambda record: record["n"] > 3),
            "do more than choose records by position",
        ),
        (lambda records: records.map(even), "a function left out"),
    ],
)
def test_a_stream_that_does_more_than_choose_by_position_ends_the_trail(
    root: Path, source: Path, stages: Callable[[Any], Any], said: str
) -> None:
    class Some(data_register.new_group("traced_streams")):  # type: ignore[misc]
        def stream(self, records: Any) -> Any:
            return stages(records)

    with pipeline("docs") as ppl:
        ppl.kept = kept()
        ppl.some = Some()
    ppl.materialize(source)
    found = trace(root / "docs" / "some", 1)
    assert said in found.ends[0].reason
    assert (len(found.ends), found.sources) == (1, ())


def test_a_stream_that_combines_results_is_traced(root: Path, source: Path) -> None:
    with pipeline("docs") as ppl:
        ppl.sent = sent()
        ppl.pairs = combine.zip([ppl.sent.left, ppl.sent.right], names=["left", "right"])
    ppl.materialize(source)
    found = trace(root / "docs" / "pairs", 2)
    assert [place.line for place in found.sources] == [3, 4]
    assert found.steps[-1].outcome == "merged"


def write_shard(path: Path, files: Mapping[str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for name, text in files.items():
            about = tarfile.TarInfo(name)
            about.size = len(text)
            tar.addfile(about, io.BytesIO(text.encode()))


def cook_both(sample: dict[str, Any], more: FileStore) -> TextSample:
    second = more.get(f"m{sample['__key__'][1:]}.txt", sample).decode()
    text = f"{sample['txt'].decode()} {second}"
    return TextSample(**basic_sample_keys(sample), text=text)


class Pairs(DefaultTaskEncoder[Any, Any, Any, Any]):
    """Packs the first record of a window with the last one, the second with the last but one."""

    cookers = (cook_both,)

    def select_samples_to_pack(self, samples: list[Any]) -> list[list[Any]]:
        return [[samples[at], samples[-1 - at]] for at in range(len(samples) // 2)]

    def pack_selected_samples(self, samples: list[Any]) -> TextSample:
        return TextSample.derive_from(samples[0], text="|".join(one["text"] for one in samples))


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """A dataset of eight samples in two shards, and a store with a text for each."""
    for shard in range(2):
        numbers = range(4 * shard, 4 * shard + 4)
        write_shard(tmp_path / f"a/a-{shard}.tar", {f"a{n}.txt": f"text {n}" for n in numbers})
    write_shard(tmp_path / "more/m.tar", {f"m{n}.txt": f"more {n}" for n in range(8)})
    return tmp_path


@pytest.fixture
def packed(shards: Path, root: Path) -> Path:
    """The folder of packs of the dataset."""
    source = crude(shards / "a", aux={"more": str(shards / "more")})
    Pairs().pipeline("pairs", packing_buffer_size=4).materialize(source)
    return root / "pairs" / "packed"


def bytes_of(file: CrudeFile) -> str:
    assert file.first is not None
    content = (Path(file.dataset) / file.shard).read_bytes()
    return content[file.first : file.end].decode()


def test_a_pack_is_traced_to_the_bytes_of_its_samples_and_of_their_auxiliary_files(
    packed: Path,
) -> None:
    for line, numbers in enumerate([(0, 3), (1, 2), (4, 7), (5, 6)], 1):
        found = trace(packed, line)
        assert [place.line - 1 for place in found.sources] == sorted(numbers)
        texts = {bytes_of(one) for one in found.files}
        assert texts == {f"{kind} {n}" for kind in ("text", "more") for n in numbers}
        assert [step.node for step in found.steps] == ["cooked", "cooked", "packed"]
        assert len(found.files) == 4


def test_a_sample_is_traced_to_the_pack_that_it_is_in(packed: Path) -> None:
    for number, line in enumerate([1, 2, 2, 1, 3, 4, 4, 3]):
        found = trace(packed, source_line=number + 1)
        assert [place.line for place in found.results] == [line]
        assert {bytes_of(one) for one in found.files} == {f"text {number}", f"more {number}"}


def test_records_of_a_stream_that_cooks_are_traced_to_bytes(shards: Path, root: Path) -> None:
    with pipeline("cooked") as ppl:
        ppl.kept = upper()
    source = crude(shards / "a", aux={"more": str(shards / "more")}).cook([cook_both])
    ppl.materialize(source)

    found = trace(root / "cooked" / "kept", 6)

    assert [bytes_of(one) for one in found.files] == ["text 5", "more 5"]


@data_register("data.traced_crude", _concurrency_mode="single")
def upper(record: dict[str, Any]) -> dict[str, Any]:
    return record | {"text": record["text"].upper()}


def test_the_command_prints_files_with_their_bytes(
    packed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", str(packed), "--line", "2"]) == 0
    printed = capsys.readouterr().out
    dataset = packed.parents[2]
    assert f"\nfiles\n    {dataset}/a  a-0.tar  a1.txt  bytes 1,536 to 1,542\n" in printed
    assert f"    {dataset}/more  m.tar  m2.txt  bytes 2,560 to 2,566\n" in printed

    assert main(["trace", str(packed), "--line", "2", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)["files"][0]
    assert first == {
        "dataset": f"{dataset}/a",
        "shard": "a-0.tar",
        "name": "a1.txt",
        "first": 1536,
        "end": 1542,
    }


def test_files_of_folders_and_of_stores_that_are_gone_have_no_bytes(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "x.txt").write_text("x")
    lines = [
        json.dumps(
            {"__sources__": [{"dataset_path": at, "shard_name": at, "file_names": ["x.txt"]}]}
        )
        for at in (str(tmp_path / "folder"), str(tmp_path / "gone"))
    ]

    found = crude_files(lines)

    assert [str(one) for one in found] == [f"{tmp_path}/{at}  x.txt" for at in ("folder", "gone")]
    assert [(one.first, one.end) for one in found] == [(None, None)] * 2


def test_lines_that_are_no_records_of_crude_samples_have_no_files() -> None:
    lines = [None, '{"parts": 1, "key": 2}', '["__sources__"]', '{"__sources__": 3}', '"parts"']
    assert crude_files(lines) == ()


@data_register("data.traced_elsewhere", _concurrency_mode="single", outputs=["low", "high"])
def split_at_five(record):
    return To("low" if record["n"] < 5 else "high", record)


@data_register("data.traced_elsewhere", _concurrency_mode="single")
def doubled(record):
    return {**record, "twice": 2 * record["n"]}


def test_a_trail_in_a_bucket_goes_on_where_the_working_copy_has_another_path(tmp_path):
    store = FakeStore()
    source = write_source(tmp_path / "in.jsonl", 9)
    with config.temporary(data_process_scratch=tmp_path / "one"):
        root = machine(tmp_path / "one", store)
        with pipeline("docs") as ppl:
            ppl.split = split_at_five()
            ppl.add("doubled", doubled(), inputs=["split.high"])
        with config.temporary(data_process_path=str(root)):
            ppl.materialize(str(source))
    (tmp_path / "one").rename(tmp_path / "gone")
    with config.temporary(data_process_scratch=tmp_path / "two"):
        machine(tmp_path / "two", store)
        found = trace("memory://bucket/root/docs/doubled", 2)
        assert [one.node for one in found.steps] == ["split", "doubled"]
        assert str(source) in str(found)
        assert trace("memory://bucket/root/docs/doubled", source_line=7) == found
