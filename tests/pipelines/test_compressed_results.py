"""Test compressed results: the same records, read by every reader, whatever the form before."""

import json
import os
import pickle
import re
import shutil
import subprocess
import threading
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
import zstandard

import dagster_dataops
from dagster_dataops import (
    JsonlDataset,
    LocalCluster,
    To,
    config,
    load_result,
    pipeline,
    read_jsonl,
    trace,
)
from dagster_dataops.errors import ConfigurationError, InputError, NewerVersionError
from tests.each import each
from tests.execution.helpers import node, run
from tests.nodes import Manifest, NodeFolder, published, result_by_range, text_of
from tests.object_stores import FakeStore, keep_at_most, machine
from tests.registries import OperatorRegistry

MODES = ("single", "thread", "async", "process")
FORMS = ("jsonl", "jsonl.zst")
LONG = 12_000  # records of a text of several frames


def rows(count: int) -> list[dict[str, Any]]:
    return [{"n": n, "text": f"record {n} of {count} " * (n % 16)} for n in range(count)]


def write(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records))
    return path


class Calls:
    """Counts calls of operators in all processes, by a byte in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def note(self) -> None:
        with self._path.open("ab", buffering=0) as file:
            file.write(b".")

    def taken(self) -> int:
        found = self._path.stat().st_size if self._path.exists() else 0
        self._path.unlink(missing_ok=True)
        return found


@pytest.fixture
def calls(tmp_path: Path) -> Calls:
    return Calls(tmp_path / "calls")


@pytest.fixture
def operators(registry: OperatorRegistry, calls: Calls) -> Any:
    """Return operators: two that note their calls, and one that returns each record as it is."""

    @registry("data.zst")
    def upper(record: dict) -> dict:
        calls.note()
        if record["n"] % 10 == 7 and record["text"]:
            raise ValueError("seven")
        return {**record, "text": record["text"].upper()}

    @registry("data.zst")
    def even(record: dict) -> Any:
        calls.note()
        return [] if record["n"] % 2 else record

    @registry("data.zst", _concurrency_mode="single")
    def same(record: dict) -> dict:
        return record

    @registry("data.zst")
    def length(record: dict) -> dict:
        return {"n": record["n"], "size": len(record["text"])}

    return SimpleNamespace(upper=upper, even=even, same=same, length=length)


def pair(operators: Any, mode: str = "single", **settings: Any) -> Any:
    with pipeline("docs") as ppl:
        ppl.upper = operators.upper(_concurrency_mode=mode, _max_workers=2, **settings)
        ppl.even = operators.even(_concurrency_mode=mode, _max_workers=2, **settings)
    return ppl


def result_files(root: Path) -> list[str]:
    return sorted(path.name for form in FORMS for path in root.rglob(f"[!.]*_results.{form}"))


@pytest.mark.parametrize("mode", ["single", "thread", "process"])
def test_every_mode_writes_the_same_text_and_the_digest_of_a_plain_result(
    operators: Any, tmp_path: Path, root: Path, mode: str
) -> None:
    source = write(tmp_path / "in.jsonl", rows(3000))
    found: dict[str, Any] = {}
    for form in FORMS:
        with config.temporary(result_format=form, data_process_path=root / form):
            records = pair(operators, mode)(source)
        datasets = [load_result(root / form / "docs" / name) for name in ("upper", "even")]
        texts = [text_of(one.path) for one in datasets]
        assert [one.path.name.partition(".")[2] for one in datasets] == [form, form]
        facts = [(one.size_bytes, one.rows, one.fingerprint) for one in datasets]
        found[form] = records, texts, facts, [one.read() for one in datasets]

    assert found["jsonl"] == found["jsonl.zst"]
    assert result_files(root / "jsonl.zst") == ["even_results.jsonl.zst", "upper_results.jsonl.zst"]


def test_a_change_of_the_form_calls_no_operator(
    operators: Any, calls: Calls, tmp_path: Path, root: Path
) -> None:
    source = write(tmp_path / "in.jsonl", rows(300))
    ppl = pair(operators, "process")
    config.data_process_resume = True
    first = ppl(source)
    assert calls.taken()
    before = load_result(root / "docs" / "even").fingerprint

    for form in ("jsonl.zst", "jsonl", "jsonl.zst"):
        config.result_format = form
        assert ppl(source) == first
        assert calls.taken() == 0
        assert result_files(root) == [f"even_results.{form}", f"upper_results.{form}"]
        assert load_result(root / "docs" / "even").fingerprint == before

    with pipeline("docs") as alone:  # another form of the first result alone
        alone.upper = operators.upper(_concurrency_mode="process", _max_workers=2)
    config.result_format = "jsonl"
    alone(source)
    assert result_files(root) == ["even_results.jsonl.zst", "upper_results.jsonl"]
    config.result_format = "jsonl.zst"
    assert ppl(source) == first
    assert calls.taken() == 0


@pytest.mark.parametrize("forms", [FORMS, FORMS[::-1], FORMS[1:] * 2])
def test_outcomes_and_failures_are_used_again_in_another_form(
    operators: Any, calls: Calls, tmp_path: Path, root: Path, forms: tuple[str, str]
) -> None:
    ppl = pair(operators, _reuse_outcomes=True)
    source = write(tmp_path / "in.jsonl", rows(100))
    config.data_process_resume, config.result_format = True, forms[0]
    ppl(source)
    calls.taken()
    write(source, [*rows(100), {"n": 1000, "text": ""}])
    config.result_format = forms[1]
    ppl(source)
    assert calls.taken() == 2 + 10  # new ones, and those that failed

    failed = published(NodeFolder.of(config.results_root() / "docs" / "upper"))
    assert failed is not None
    assert failed[1].failed == 10
    config.data_process_resume, config.result_format = "failed_records", forms[0]
    again = ppl(source)
    assert calls.taken() == 10
    assert [record["n"] for record in again] == [*range(0, 100, 2), 1000]


def test_a_run_that_was_stopped_goes_on_in_another_form(
    registry: OperatorRegistry, calls: Calls, tmp_path: Path
) -> None:
    marker = tmp_path / "go on"

    @registry("data.zst", _concurrency_mode="single", _ignore_errors=False)
    def stopping(record: dict) -> dict:
        if record["n"] == 50 and not marker.exists():
            raise ValueError("stop")
        calls.note()
        return record

    source = write(tmp_path / "in.jsonl", rows(100))
    config.data_process_resume, config.result_format = True, "jsonl"
    with pytest.raises(dagster_dataops.errors.DataOpsError):
        stopping()(source)
    assert calls.taken() == 50
    marker.touch()
    config.result_format = "jsonl.zst"
    assert stopping()(source) == rows(100)
    assert calls.taken() == 50


@pytest.mark.slow
def test_a_compressed_result_is_read_by_range_by_workers_and_agents(
    operators: Any, tmp_path: Path
) -> None:
    plain = JsonlDataset.of_file(write(tmp_path / "in.jsonl", rows(LONG)))
    packed = run(
        operators.same(_concurrency_mode="single"),
        plain,
        node(tmp_path / "packed"),
        result_format="jsonl.zst",
    ).dataset
    of_file = JsonlDataset.of_file(packed.path)
    assert packed.path.stat().st_size < packed.size_bytes // 3 < packed.size_bytes
    assert of_file.size_bytes == packed.size_bytes > 2 << 20
    cluster = {"cluster": LocalCluster(agents=2, cpus_per_agent=1)}
    operator = operators.length(_concurrency_mode="process", _max_workers=2)
    wanted = [{"n": row["n"], "size": len(row["text"])} for row in rows(LONG)]
    for name, dataset, context in (
        ("workers", packed, {}),
        ("given", of_file, {}),
        ("agents", packed, cluster),
    ):
        made = run(operator, dataset, node(tmp_path / name), **context)
        assert made.dataset.read() == wanted, name


def test_streams_and_loaders_read_a_compressed_result_and_resume_in_it(
    operators: Any, tmp_path: Path
) -> None:
    source = JsonlDataset.of_file(write(tmp_path / "in.jsonl", rows(LONG)))
    made = run(operators.same(), source, node(tmp_path / "packed"), result_format="jsonl.zst")
    dataset = made.dataset
    assert list(dataset.stream().and_return()) == rows(LONG)

    stream = dataset.stream().shuffle(0, seed=5).and_return()
    begun = [next(iterator) for iterator in [iter(stream)] for _ in range(300)]
    state = pickle.loads(pickle.dumps(stream.state_dict()))
    again = dataset.stream().shuffle(0, seed=5).and_return()
    again.load_state_dict(state)
    going_on = iter(again)
    begun += [next(going_on) for _ in range(300)]
    plain = iter(source.stream().shuffle(0, seed=5).and_return())
    assert begun == [next(plain) for _ in range(600)]


def test_traces_cross_a_change_of_the_form(operators: Any, tmp_path: Path, root: Path) -> None:
    source = write(tmp_path / "in.jsonl", rows(100))
    config.data_process_resume = True
    ppl = pair(operators)
    ppl(source)
    before = [trace(root / "docs" / "even", line=9), trace(root / "docs" / "upper", source_line=9)]
    config.result_format = "jsonl.zst"
    with pipeline("docs") as alone:
        alone.upper = operators.upper(_concurrency_mode="single", _max_workers=2)
    alone(source)
    assert result_files(root) == ["even_results.jsonl", "upper_results.jsonl.zst"]
    after = [trace(root / "docs" / "even", line=9), trace(root / "docs" / "upper", source_line=9)]
    assert list(map(str, before)) == list(map(str, after))


def test_outputs_streams_and_selections_are_compressed_and_lists_of_files_are_not(
    registry: OperatorRegistry, tmp_path: Path, root: Path
) -> None:
    @registry("data.zst", _concurrency_mode="single", outputs=("few", "many"))
    def send(record: dict) -> Any:
        return To("few" if record["n"] < 3 else "many", record)

    config.result_format = "jsonl.zst"
    source = write(tmp_path / "in.jsonl", rows(20))
    sent = send()(source)
    assert [len(sent[name]) for name in ("few", "many")] == [3, 17]
    assert result_files(root) == ["few_results.jsonl.zst", "many_results.jsonl.zst"]
    assert load_result(root / "send" / "few").read() == rows(20)[:3]
    shutil.rmtree(root)

    data = dagster_dataops.data
    assert len(data.dedup.Exact(input_key="text")(source)) == 19
    assert len(data.sample.Sort("n", reverse=True)(source)) == 20
    data.export.Jsonl(tmp_path / "out")(source)
    names = set(result_files(root))
    assert names >= {"Exact_results.jsonl.zst", "Sort_results.jsonl.zst", "Jsonl_results.jsonl"}


def _packed(operators: Any, folder: Path, records: list[dict[str, Any]]) -> Any:
    source = JsonlDataset.of_file(write(folder / "in.jsonl", records))
    return run(operators.same(), source, node(folder), result_format="jsonl.zst").dataset


def test_a_result_that_was_cut_anywhere_is_refused_by_name(operators: Any, tmp_path: Path) -> None:
    dataset = _packed(operators, tmp_path, rows(9))
    whole = dataset.path.read_bytes()
    for size in range(len(whole)):
        dataset.path.write_bytes(whole[:size])
        for read in (dataset.read, lambda: JsonlDataset.of_file(dataset.path).read()):
            with pytest.raises(InputError, match=r"_results\.jsonl\.zst"):
                read()


@pytest.mark.slow
def test_no_flipped_bit_gives_other_records(operators: Any, tmp_path: Path) -> None:
    records = [{"n": n, "text": f"{n * 7919 % 1000003:x} {n} " * 16} for n in range(LONG)]
    dataset = _packed(operators, tmp_path, records)
    lines, whole = text_of(dataset.path), dataset.path.read_bytes()
    assert whole.count(b"\x28\xb5\x2f\xfd") >= 3
    step = len(whole) // 50
    places = {*range(0, len(whole), step), *range(20), *range(len(whole) - 140, len(whole), 2)}
    texts: list[str] = []
    for number, place in enumerate(sorted(places)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << number % 8
        dataset.path.write_bytes(damaged)
        try:
            found = b"".join(orjson.dumps(one) + b"\n" for one in dataset)
        except InputError as error:
            texts.append(str(error))
        else:  # a bit without a meaning
            assert found == lines
    assert len(texts) > 0.9 * len(places)
    assert not [text for text in texts if "_results.jsonl.zst" not in text or "frame" not in text]


def _long(operators: Any, folder: Path) -> Any:
    """Return a result of twelve frames or more; each line has ten to eleven hundred bytes."""
    records = [{"n": n, "text": f"{n * 7919 % 1000003:x} {n} " * 80} for n in range(LONG)]
    return _packed(operators, folder, records)


class Decompressions:
    """Counts the frames that this process decompresses."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.frames = 0
        create = zstandard.ZstdDecompressor

        def decompressor() -> Any:
            return SimpleNamespace(decompress=partial(self._decompress, create()))

        monkeypatch.setattr(zstandard, "ZstdDecompressor", decompressor)

    def _decompress(self, decompressor: Any, frame: bytes, **options: Any) -> bytes:
        self.frames += 1
        return bytes(decompressor.decompress(frame, **options))


@pytest.mark.slow
@each("mode", ["single", "thread", "iteration"])
def test_whoever_reads_a_whole_result_decompresses_each_frame_once(
    operators: Any, registry: OperatorRegistry, tmp_path: Path, mode: str
) -> None:
    dataset = _long(operators, tmp_path)
    frames = dataset.path.read_bytes().count(b"\x28\xb5\x2f\xfd")
    with pytest.MonkeyPatch.context() as patches:
        counted = Decompressions(patches)
        if mode == "iteration":
            assert sum(1 for _ in dataset) == LONG
        else:
            operator = operators.length(_concurrency_mode=mode, _max_workers=2)
            run(operator, dataset, node(tmp_path / mode))
        assert frames > 10
        assert frames <= counted.frames <= frames + 4


def test_records_before_a_damaged_frame_are_read(operators: Any, tmp_path: Path) -> None:
    dataset = _long(operators, tmp_path)
    whole = bytearray(dataset.path.read_bytes())
    starts = [match.start() for match in re.finditer(re.escape(b"\x28\xb5\x2f\xfd"), whole)]
    for number in (1, 2, 7, len(starts) - 1):
        damaged = bytearray(whole)
        damaged[starts[number] + 1000] ^= 4
        dataset.path.write_bytes(damaged)
        numbers: list[int] = []
        with pytest.raises(InputError, match=rf"frame {number + 1} of {len(starts)} "):
            numbers.extend(record["n"] for record in JsonlDataset.of_file(dataset.path))
        assert not [one for one in threading.enumerate() if "frame" in one.name]


@pytest.mark.slow
def test_a_forked_copy_goes_on_reading_a_result(operators: Any, tmp_path: Path) -> None:
    records = iter(_long(operators, tmp_path))
    numbers = [next(records)["n"] for _ in range(LONG // 3)]
    for _ in range(20):  # at different moments of the thread that reads ahead
        child = os.fork()
        if not child:
            rest = [record["n"] for record in records]
            os._exit(0 if numbers + rest == list(range(LONG)) else 1)
        numbers.extend(next(records)["n"] for _ in range(LONG // 60))
        assert os.waitpid(child, 0)[1] == 0


def test_the_index_of_another_file_is_refused(operators: Any, tmp_path: Path) -> None:
    found = []
    for name, shift in (("one", 1), ("two", 2)):
        (tmp_path / name).mkdir()
        records = [{"n": n * shift, "text": "same length"} for n in range(100, 300)]
        found.append(_packed(operators, tmp_path / name, records))
    one, two = (dataset.path.read_bytes() for dataset in found)
    tail = 102  # note and index of one frame
    for head, index in ((one[:-tail], two[-tail:]), (two[:-tail], one[-tail:])):
        found[0].path.write_bytes(head + index)
        with pytest.raises(InputError, match="frame|index"):
            found[0].read()


@each("name", ["in.jsonl.zst", "in_results.jsonl.zst"])
def test_a_file_that_another_program_compressed_is_refused_with_its_reader(
    operators: Any, tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    lines = b"".join(orjson.dumps(record) + b"\n" for record in rows(5))
    foreign = b"\x5e\x2a\x4d\x18\x15\0\0\0" + bytes(12) + b"\x01\0\0\0\x80\xb1\xea\x92\x8f"
    for content in (zstandard.compress(lines), zstandard.compress(lines) + foreign):
        path.write_bytes(content)
        with pytest.raises(InputError, match="read_jsonl"):
            JsonlDataset.of_file(path)
        assert list(read_jsonl(path).and_return()) == rows(5)


def test_an_export_may_have_the_name_of_a_compressed_result(operators: Any, tmp_path: Path) -> None:
    target = tmp_path / "mine_results.jsonl.zst"
    for _ in range(2):
        operators.same().set_output(target)(rows(5))
        assert list(read_jsonl(target).and_return()) == rows(5)


def test_readers_see_whole_results_while_others_are_published(
    operators: Any, tmp_path: Path
) -> None:
    lengths = (100, 1000)
    dataset = _packed(operators, tmp_path, rows(lengths[0]))
    inputs = [JsonlDataset.of_file(write(tmp_path / f"{n}.jsonl", rows(n))) for n in lengths]
    ended, wrong = threading.Event(), []

    def read() -> None:
        while not ended.is_set():
            count = len(JsonlDataset.of_file(dataset.path).read())
            if count not in lengths:
                wrong.append(count)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        for number in range(12):
            same = operators.same()
            run(same, inputs[number % 2], node(tmp_path), result_format="jsonl.zst")
    finally:
        ended.set()
        for reader in readers:
            reader.join()
    assert not wrong


@pytest.mark.slow
@pytest.mark.parametrize("large", [1 << 30, 100])
def test_a_bucket_holds_compressed_results_which_are_read_by_range(
    operators: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: int
) -> None:
    keep_at_most(monkeypatch, outputs=large, result=large)
    dataset = JsonlDataset.of_file(write(tmp_path / "in.jsonl", rows(LONG)))
    store, digests = FakeStore(), []

    def folder(number: int) -> NodeFolder:
        return NodeFolder.of(machine(tmp_path / f"machine{number}", store) / "even")

    operator = operators.even(_concurrency_mode="process", _max_workers=2)
    wanted = rows(LONG)[::2]
    for number, form in enumerate(("jsonl.zst", "jsonl", "jsonl.zst")):
        made = run(operator, dataset, folder(number), result_format=form)
        digests.append(made.dataset.fingerprint)
        names = [key for key in store.objects if "/even_results" in key and key[-5:] != ".json"]
        assert [name.partition("_results.")[2] for name in names] == [form]
        there = result_by_range(folder(10 + number))
        assert (there.fingerprint, there.rows) == (digests[0], len(wanted))
        assert there.read() == wanted
        assert there.download().read() == wanted
        assert load_result(folder(20 + number)).read() == wanted
    assert len(set(digests)) == 1


def test_versions_that_know_no_compressed_results_refuse_them(
    operators: Any, tmp_path: Path
) -> None:
    _packed(operators, tmp_path, rows(9))
    folder = node(tmp_path)
    written = json.loads(folder.manifest.read_bytes())
    assert written["made_from"]["format"].endswith(" with jsonl.zst")
    manifest = Manifest.of(folder)
    assert manifest is not None
    assert " " not in manifest.made_from["format"]

    written["made_from"]["format"] = written["made_from"]["format"].replace("jsonl.zst", "later")
    folder.manifest.write_text(json.dumps(written))
    with pytest.raises(NewerVersionError):
        Manifest.of(folder)


@pytest.mark.skipif(shutil.which("zstd") is None, reason="the program zstd is not installed")
@each("count", [0, 1, 9, LONG])
def test_the_program_zstd_reads_and_checks_a_result(
    operators: Any, tmp_path: Path, count: int
) -> None:
    path = _packed(operators, tmp_path, rows(count)).path
    assert subprocess.run(["zstd", "-tq", path], check=False).returncode == 0
    shown = subprocess.run(["zstd", "-dcq", path], capture_output=True, check=True).stdout
    assert list(map(orjson.loads, shown.splitlines())) == rows(count)


@each("value", ["zst", "parquet", ".jsonl", "JSONL"])
def test_an_unknown_form_is_refused(value: str) -> None:
    config.result_format = value
    with pytest.raises(ConfigurationError, match="jsonl or jsonl.zst"):
        _ = config.result_format
