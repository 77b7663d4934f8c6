"""Results in parts: in every mode their bytes joined are those of the single file."""

import os
import random
import shutil
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagster_dataops import data
from dagster_dataops.byte_ranges import PartedFile
from dagster_dataops.checkpoints.folder.manifest import NodeFolder, load_result, published
from dagster_dataops.checkpoints.resume.resume_policy import ResumePolicy
from dagster_dataops.concurrency.background import deleting
from dagster_dataops.data import data_register
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.parted_writer import version_at
from dagster_dataops.datasets.record_samples import spread_sample
from dagster_dataops.errors import InputError, OperatorOptionError, ResultMissingError
from dagster_dataops.exporters import arrow_types
from dagster_dataops.exporters.exporter import ExportRecords
from dagster_dataops.streams.factories import read_jsonl
from dagster_dataops.tracing.tracer import trace
from tests.examples import at_most
from tests.execution.helpers import (
    KINDS,
    MODES,
    SMALL,
    TINY,
    USUAL,
    Listener,
    SpanSizes,
    act,
    cut_by,
    error_rows,
    expected_failures,
    expected_results,
    node,
    operator_for,
    plan,
    run,
    write_input,
)

_MIXED = plan(random.Random(9).choices(KINDS, weights=(5, 5, 5, 3, 2, 1, 1, 1), k=150))
_GROUP = "data.parted"
_calls: list[int] = []


@data_register(_GROUP)
def noted(record):
    _calls.append(record["n"])
    if record.get("fails"):
        raise ValueError("no")
    record["noted"] = True


@data_register(_GROUP, rewrite_func="forward_batch_input")
def backwards(records):
    return list(reversed(records))


@data_register(_GROUP)
class EveryThird:
    def sketch(self, record):
        return record["n"]

    def keep(self, sketches):
        return (number % 3 == 0 for number in sketches)


@data_register(_GROUP)
class Mixed:
    def stream(self, records):
        return records.shuffle(8, seed=3)


@data_register(_GROUP)
class Built:
    def build(self, records, folder):
        (folder / "count").write_text(str(len(list(records))))


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    _calls.clear()


def whole(folder: NodeFolder) -> bytes:
    """Return the joined bytes of the parts of a result."""
    found = PartedFile.at(folder.result)
    return b"".join(path.read_bytes() for path in found.paths)


def rows_of_parts(folder: NodeFolder) -> list[int]:
    """Return the number of lines in each part, as the files and the listing have it."""
    found = PartedFile.at(folder.result)
    listing = found.folder.with_name(f"{found.folder.name}.jsonl")
    rows = [orjson.loads(line) for line in listing.read_bytes().splitlines()]
    assert [row["path"] for row in rows] == list(found.names)
    counts = [path.read_bytes().count(b"\n") for path in found.paths]
    assert [row["rows"] for row in rows] == counts
    assert [row["size_bytes"] for row in rows] == [path.stat().st_size for path in found.paths]
    return counts


def numbered(path: Path, count: int = 20) -> JsonlDataset:
    return write_input(path / "in.jsonl", [{"n": n} for n in range(count)])


def is_tidy(folder: NodeFolder, before: str = "") -> bool:
    """Whether the folder of the parts holds only the present ones, and those of one version."""
    found = {path.name for path in folder.parts.iterdir()} if folder.parts.exists() else set()
    versions = {version_at(folder.result), before} - {""}
    return found == versions | {f"{version}.jsonl" for version in versions}


@pytest.mark.parametrize("sizes", [TINY, SMALL, USUAL], ids=["tiny", "small", "usual"])
@pytest.mark.parametrize("mode", MODES)
def test_the_parts_joined_are_the_single_file_in_every_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, sizes: SpanSizes
) -> None:
    cut_by(monkeypatch, sizes)
    dataset = write_input(tmp_path / "in.jsonl", _MIXED)
    one, parts = node(tmp_path / "one"), node(tmp_path / "parts")
    single = run(operator_for(mode, 3), dataset, one)

    report = run(operator_for(mode, 3, _part_records=7), dataset, parts)

    assert whole(parts) == one.result.read_bytes() == expected_results(_MIXED)
    rows = report.dataset.rows or 0
    assert rows_of_parts(parts) == [7] * (rows // 7) + [rows % 7] * bool(rows % 7)
    assert report.dataset.fingerprint == single.dataset.fingerprint
    assert report.dataset.size_bytes == single.dataset.size_bytes
    assert [row["index"] for row in error_rows(parts)] == expected_failures(_MIXED)
    assert is_tidy(parts)
    assert load_result(parts) == report.dataset


@settings(max_examples=at_most(25), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from(KINDS), max_size=30), st.integers(1, 40))
def test_any_outcomes_are_split_at_the_same_lines(
    tmp_path_factory: pytest.TempPathFactory, kinds: list[str], part: int
) -> None:
    path = tmp_path_factory.mktemp("parted")
    records, folder = plan(kinds), node(path)
    run(operator_for("single", 1, _part_records=part), write_input(path / "i", records), folder)
    assert whole(folder) == expected_results(records)
    counts = rows_of_parts(folder)
    assert set(counts[:-1]) <= {part}
    assert counts == [0] or 0 < counts[-1] <= part


@pytest.mark.parametrize("made", [backwards, EveryThird, Mixed], ids=["all", "selection", "stream"])
def test_every_kind_of_operator_can_write_parts(tmp_path: Path, made: Any) -> None:
    dataset = numbered(tmp_path)
    one, parts = node(tmp_path / "one"), node(tmp_path / "parts")
    run(made(), dataset, one)
    report = run(made(_part_records=3), dataset, parts)
    assert whole(parts) == one.result.read_bytes()
    assert max(rows_of_parts(parts)) == 3
    assert is_tidy(parts)
    assert report.dataset.read() == JsonlDataset.of_file(one.result).read()


def test_parts_are_refused_where_the_result_is_not_records() -> None:
    with pytest.raises(OperatorOptionError, match="result is records, and this one is an artefact"):
        Built(_part_records=3)


@pytest.mark.parametrize("mode", MODES)
def test_the_next_operator_reads_parts_like_one_file(tmp_path: Path, mode: str) -> None:
    """Index, line and bytes of all outcomes are those of one file."""
    made = {}
    for part in (0, 4):
        first, second = node(tmp_path / str(part), "first"), node(tmp_path / str(part), "second")
        source = write_input(tmp_path / str(part) / "in.jsonl", _MIXED)
        upstream = run(noted(_part_records=part), source, first).dataset
        report = run(operator_for(mode, 3), upstream, second)
        rows = [(row["index"], row["line"], row["input"]) for row in error_rows(second)]
        made[part] = second.result.read_bytes(), rows, report.manifest.made_from
    assert made[4] == made[0]


def test_several_inputs_in_parts_are_joined(tmp_path: Path) -> None:
    inputs = []
    for name in ("a", "b"):
        source = write_input(tmp_path / f"{name}.jsonl", [{"n": n, "of": name} for n in range(5)])
        inputs.append(run(noted(_part_records=2), source, node(tmp_path, name)).dataset)
    report = run(act(_stop_after_failures=0), inputs, node(tmp_path, "both"))
    read = [*inputs[0].read(), *inputs[1].read()]
    assert [row["input"] for row in error_rows(node(tmp_path, "both"))] == read
    assert report.manifest.failed == 10


def test_a_dataset_in_parts_reads_like_one_file(tmp_path: Path) -> None:
    folder = node(tmp_path)
    dataset = run(noted(_part_records=3), numbered(tmp_path), folder).dataset
    records = [{"n": n, "noted": True} for n in range(20)]
    assert dataset.read() == list(dataset) == records
    assert dataset.head(5) == records[:5]
    assert dataset.sample(5) == records[:5]
    assert spread_sample(dataset, 100).records == records
    assert JsonlDataset.of_file(folder.result).read() == records
    assert b"".join(ExportRecords(dataset).lines()) == whole(folder)
    assert list(read_jsonl(folder.result).and_return()) == records


def test_arrow_reads_a_dataset_in_parts_like_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = run(noted(_part_records=3), numbered(tmp_path), node(tmp_path)).dataset
    monkeypatch.setattr(arrow_types, "GuessError", ZeroDivisionError)  # no second, slow way
    made = arrow_types.write_batches(ExportRecords(dataset), {}, lambda _, batches: list(batches))
    rows = [row for batch in made for row in batch.to_pylist()]
    assert rows == [{"n": n, "noted": True} for n in range(20)]


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("Jsonl", "out.jsonl.gz"),
        ("Csv", "out.csv"),
        ("Parquet", "out.parquet"),
        ("HuggingFace", "out"),
        ("WebDataset", "out-%04d.tar"),
        ("Messages", "out.jsonl"),
    ],
)
def test_an_export_of_parts_has_the_bytes_of_one_of_a_single_file(
    tmp_path: Path, name: str, path: str
) -> None:
    made = []
    messages = [{"role": "user", "content": "é"}]
    rows = [{"__key__": f"{n:03}", "txt": f"{n}", "messages": messages} for n in range(20)]
    source = write_input(tmp_path / "in.jsonl", [{**row, "n": n} for n, row in enumerate(rows)])
    for part in (0, 3):
        place = tmp_path / str(part)
        place.mkdir()
        dataset = run(noted(_part_records=part), source, node(place, "first")).dataset
        exporter = getattr(data.export, name)(str(place / "export" / path))
        run(exporter, dataset, node(place, "second"))
        files = sorted(one for one in (place / "export").rglob("*") if one.is_file())
        made.append({one.relative_to(place): one.read_bytes() for one in files})
    assert made[1] == made[0]
    assert made[0]


def test_a_stream_of_parts_is_shuffled_sharded_and_resumed(tmp_path: Path) -> None:
    dataset = run(noted(_part_records=3), numbered(tmp_path), node(tmp_path)).dataset
    builder = dataset.stream().shuffle(0, seed=1)
    shuffled = [record["n"] for record in builder.and_return()]
    assert sorted(shuffled) == list(range(20)) != shuffled
    assert [record["n"] for record in dataset.stream().workers(2).and_return()] == list(range(20))

    reading = dataset.stream().and_return()
    records = iter(reading)
    first = [next(records)["n"] for _ in range(8)]
    again = dataset.stream().and_return()
    again.load_state_dict(reading.state_dict())
    assert first + [record["n"] for record in again] == list(range(20))


def test_a_result_in_300_parts_is_shuffled_by_number_and_resumed(tmp_path: Path) -> None:
    source = numbered(tmp_path, 300)
    dataset = run(noted(_part_records=1), source, node(tmp_path)).dataset
    builder = dataset.stream().shuffle(0, seed=1)
    reading = builder.and_return()
    records = iter(reading)
    first = [next(records)["n"] for _ in range(100)]
    again = builder.and_return()
    again.load_state_dict(reading.state_dict())
    rest = [record["n"] for record in again]
    assert sorted(first + rest) == list(range(300)) != first + rest


def test_a_stream_state_is_refused_after_the_result_was_split_otherwise(tmp_path: Path) -> None:
    source, folder = numbered(tmp_path), node(tmp_path)
    reading = run(noted(_part_records=3), source, folder).dataset.stream().and_return()
    next(iter(reading))
    state = reading.state_dict()
    again = run(noted(_part_records=4), source, folder, run="again", reuse_finished=True)
    with pytest.raises(Exception, match="other|changed|different"):
        again.dataset.stream().and_return().load_state_dict(state)


@pytest.mark.parametrize(("before", "after"), [(0, 4), (4, 0), (4, 7)])
def test_another_size_splits_again_without_a_call(tmp_path: Path, before: int, after: int) -> None:
    source = write_input(tmp_path / "in.jsonl", [{"n": n, "fails": n % 5 == 0} for n in range(23)])
    folder, listener = node(tmp_path), Listener()
    first = run(noted(_part_records=before, _concurrency_mode="single"), source, folder)
    bytes_before = b"".join(ExportRecords(first.dataset).lines())
    version = version_at(folder.result)
    errors, called = folder.errors.read_bytes(), len(_calls)

    report = run(
        noted(_part_records=after, _concurrency_mode="single"),
        source,
        folder,
        run="again",
        reuse_finished=True,
        progress=listener,
    )

    assert len(_calls) == called
    assert b"".join(ExportRecords(report.dataset).lines()) == bytes_before
    assert report.dataset.identity == first.dataset.identity
    assert folder.errors.read_bytes() == errors
    assert any("published result is" in note for note in listener.notes)
    if after:
        assert rows_of_parts(folder)[0] == after
    else:
        assert folder.result.is_file()
    assert is_tidy(folder, version)
    same = run(noted(_part_records=after), source, folder, run="third", reuse_finished=True)
    assert same.reused
    assert same.manifest == report.manifest


def test_failed_records_of_parts_are_retried_alone(tmp_path: Path) -> None:
    records = [{"n": n, "fails": n % 5 == 0} for n in range(23)]
    folder = node(tmp_path)
    source = write_input(tmp_path / "in.jsonl", records)
    operator = noted(_part_records=4, _concurrency_mode="single")
    run(operator, source, folder)
    kept = whole(folder)
    called = len(_calls)
    run(operator, source, folder, run="again", resume=ResumePolicy.FAILED_RECORDS)
    assert _calls[called:] == [0, 5, 10, 15, 20]
    assert whole(folder) == kept
    assert is_tidy(folder)


def test_outcomes_in_parts_are_reused_for_a_grown_input(tmp_path: Path) -> None:
    folder = node(tmp_path)
    operator = noted(_part_records=4, _concurrency_mode="single", _reuse_outcomes=True)
    run(operator, numbered(tmp_path, 20), folder)
    called = len(_calls)
    run(operator, numbered(tmp_path, 30), folder, run="again", resume=ResumePolicy.AUTO)
    assert _calls[called:] == list(range(20, 30))
    assert rows_of_parts(folder) == [4] * 7 + [2]


def test_an_edited_part_is_noticed_and_made_again(tmp_path: Path) -> None:
    source, folder = numbered(tmp_path), node(tmp_path)
    operator = noted(_part_records=4, _concurrency_mode="single")
    handle = run(operator, source, folder).dataset
    before, part = whole(folder), PartedFile.at(folder.result).paths[2]
    times = part.stat()
    part.write_bytes(part.read_bytes().replace(b"true", b"null"))
    os.utime(part, ns=(times.st_atime_ns, times.st_mtime_ns))

    assert published(folder) is None
    with pytest.raises(InputError, match="changed after its handle was made"):
        handle.check_content()
    run(operator, source, folder, run="again", reuse_finished=True)
    assert whole(folder) == before
    assert is_tidy(folder)


def test_a_missing_part_is_an_error_and_not_a_shorter_result(tmp_path: Path) -> None:
    folder = node(tmp_path)
    handle = run(noted(_part_records=4), numbered(tmp_path), folder).dataset
    PartedFile.at(folder.result).paths[-1].unlink()
    assert published(folder) is None
    with pytest.raises(InputError):
        handle.check_content()
    PartedFile.at(folder.result).paths[1].unlink()
    with pytest.raises(InputError):
        handle.read()


def test_a_reader_goes_on_with_the_parts_before_until_the_publication_after_the_next(
    tmp_path: Path,
) -> None:
    folder, operator = node(tmp_path), noted(_part_records=500, _concurrency_mode="single")
    handle = run(operator, numbered(tmp_path, 10_000), folder).dataset
    records, late_records = iter(handle), iter(handle)
    stream, late_stream = (iter(handle.stream().and_return()) for _ in range(2))
    for begun in (records, late_records, stream, late_stream):
        assert next(begun)["n"] == 0
    real = folder.result.resolve()
    run(operator, numbered(tmp_path, 11_000), folder, run="again")
    assert is_tidy(folder, real.name)
    assert [record["n"] for record in records] == list(range(1, 10_000))
    assert [record["n"] for record in stream] == list(range(1, 10_000))
    raw = [line for path in sorted(real.iterdir()) for line in path.read_bytes().splitlines()]
    assert [orjson.loads(line)["n"] for line in raw] == list(range(10_000))
    run(operator, numbered(tmp_path, 12_000), folder, run="third")
    with pytest.raises(InputError):
        list(late_records)
    with pytest.raises(Exception, match="cannot be read"):
        list(late_stream)


def test_the_parts_before_go_when_the_same_result_is_published_again(tmp_path: Path) -> None:
    folder = node(tmp_path)
    run(noted(_part_records=4), numbered(tmp_path), folder)
    before = version_at(folder.result)
    for name in ("second", "third"):
        run(noted(_part_records=5), numbered(tmp_path), folder, run=name)
        assert is_tidy(folder, before if name == "second" else "")
    run(noted(), numbered(tmp_path), folder, run="one file")
    run(noted(), numbered(tmp_path, 3), folder, run="one file again")
    deleting.finish()
    assert not folder.parts.exists()


def test_a_copied_folder_is_a_result(tmp_path: Path) -> None:
    folder = node(tmp_path)
    handle = run(noted(_part_records=4), numbered(tmp_path), folder).dataset
    shutil.copytree(folder.path, tmp_path / "copy", symlinks=True)
    moved = load_result(NodeFolder(tmp_path / "copy", folder.name))
    assert moved.path == tmp_path / "copy" / folder.result.name
    assert moved.read() == handle.read()
    assert moved.identity == handle.identity


def test_a_line_of_parts_is_traced_like_one_of_a_single_file(tmp_path: Path) -> None:
    source = write_input(tmp_path / "in.jsonl", _MIXED)
    found = []
    for part in (0, 7):
        first, second = node(tmp_path / str(part), "first"), node(tmp_path / str(part), "second")
        upstream = run(operator_for("single", 1, _part_records=part), source, first).dataset
        run(noted(_part_records=part), upstream, second)
        made = [trace(second.path, line=line) for line in (1, 30, 60)]
        forward = trace(second.path, source_line=40)
        found.append([(one.sources, [at.line for at in one.results]) for one in (*made, forward)])
    assert found[0] == found[1]


def test_without_the_result_the_parts_are_no_result(tmp_path: Path) -> None:
    folder = node(tmp_path)
    run(noted(_part_records=4), numbered(tmp_path), folder)
    folder.result.unlink()
    with pytest.raises(ResultMissingError):
        load_result(folder)
