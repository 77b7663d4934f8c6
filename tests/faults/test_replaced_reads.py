"""Tests of files that are replaced while they are read: each read is of one version, and whole."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from dagster_dataops import JsonlDataset, config, data_register, pipeline, trace
from dagster_dataops.assets.checks.inspectors import RecordInspector, inspect
from dagster_dataops.datasets.exporters.exporter import ExportRecords
from dagster_dataops.datasets.exporters.quick_batches import quick_batches
from dagster_dataops.datasets.lines import opened_content
from dagster_dataops.datasets.record_samples import first_records, spread_sample
from dagster_dataops.datasets.writer import first_lines
from dagster_dataops.errors import InputError, TraceError, TraceOutdatedError
from dagster_dataops.pipelines.tracing.record_file import RecordFile
from tests.each import each
from tests.journals import iterate_lines

_ROWS: Final = {"old": 300, "new": 700}
_OPENINGS: Final = 3


def _content(version: str) -> bytes:
    return b"".join(orjson.dumps({"n": n, "v": version}) + b"\n" for n in range(_ROWS[version]))


@contextmanager
def _replaced_at(number: int, path: Path, replace: Callable[[], object]) -> Iterator[None]:
    """Replace a file after it was looked at ``number`` times, inside the block."""
    seen = 0

    def wrapped(name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(where: Any, *args: Any, **named: Any) -> Any:
            nonlocal seen
            ours = isinstance(where, str | Path) and Path(where) == path
            found = real(where, *args, **named)
            if ours:
                seen += 1
                if seen == number:
                    replace()
            return found

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in ("open", "stat"):
            patch.setattr(os, name, wrapped(name))
        yield


class _Seen(RecordInspector):
    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []

    def see(self, start: int, record: dict[str, Any]) -> None:
        self.records.append(record)

    def see_bad_line(self, start: int, problem: str) -> None:
        raise AssertionError(problem)

    def __call__(self, inspected: Any) -> Any:
        raise NotImplementedError


def _inspected(dataset: JsonlDataset) -> list[dict[str, Any]]:
    seen = _Seen()
    assert inspect(dataset, None, [seen]).rows == len(seen.records)
    return seen.records


def _first(dataset: JsonlDataset) -> list[dict[str, Any]]:
    return first_lines(dataset, dataset.path.with_name("first"), 9999).read()


def _found(dataset: JsonlDataset) -> list[dict[str, Any]]:
    found = RecordFile(dataset.path, ours=True).find(range(9999))
    return [orjson.loads(found[n].text) for n in sorted(found)]


def _counted(dataset: JsonlDataset) -> int:
    return RecordFile(dataset.path, ours=False).count()


def _made(dataset: JsonlDataset) -> JsonlDataset:
    return JsonlDataset.of_file(dataset.path)


def _arrow(dataset: JsonlDataset) -> list[dict[str, Any]]:
    import pyarrow as pa

    schema = pa.schema({"n": pa.int64(), "v": pa.string()})
    return [row for one in quick_batches(dataset.path, schema, 50) for row in one.to_pylist()]


READS: Final[dict[str, Callable[[JsonlDataset], Any]]] = {
    "read": lambda dataset: dataset.read(),
    "head": lambda dataset: dataset.head(9999),
    "sample": lambda dataset: dataset.sample(9999),
    "spread sample": lambda dataset: spread_sample(dataset, 9999).records,
    "first records": lambda dataset: first_records(dataset, 9999, 1 << 20),
    "check": _inspected,
    "first lines": _first,
    "found lines": _found,
    "counted": _counted,
    "size": lambda dataset: _made(dataset).size_bytes,
    "export": lambda dataset: [
        row for line in ExportRecords(dataset).lines() for row in map(orjson.loads, line.split())
    ],
    "arrow": _arrow,
}


def _rows(version: str) -> list[dict[str, Any]]:
    return [{"n": n, "v": version} for n in range(_ROWS[version])]


def _whole(found: Any) -> bool:
    if isinstance(found, int):
        return found in {*_ROWS.values(), *(len(_content(one)) for one in _ROWS)}
    return found in [_rows(one) for one in _ROWS]


@each("read", READS)
def test_a_file_that_is_replaced_while_it_is_opened_is_read_whole(
    tmp_path: Path, read: str
) -> None:
    for number in range(1, 1 + _OPENINGS):
        for before, after in (("old", "new"), ("new", "old")):
            path, other = tmp_path / "a.jsonl", tmp_path / "other"
            path.write_bytes(_content(before))
            other.write_bytes(_content(after))
            dataset = JsonlDataset.of_file(path)
            with _replaced_at(number, path, lambda: other.replace(path)):  # noqa: B023
                found = READS[read](dataset)
            assert _whole(found), (number, before, len(found))


def test_a_file_replaced_by_a_pipe_is_refused_and_does_not_block(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(_content("old"))
    dataset = JsonlDataset.of_file(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(InputError, match="is a pipe or a device"):
        dataset.read()


def test_lines_and_their_range_are_of_one_opening(tmp_path: Path) -> None:
    path, other = tmp_path / "a.jsonl", tmp_path / "other"
    path.write_bytes(_content("old"))
    other.write_bytes(_content("new"))
    with opened_content(path) as (source, interval):
        other.replace(path)
        assert interval.end == len(_content("old"))
        assert len(list(iterate_lines(source, [interval]))) == _ROWS["old"]


@data_register("data.replaced_reads", _concurrency_mode="single")
def thinned(row: dict) -> Any:
    return [] if row["n"] % 5 == (1 if row["v"] == "old" else 3) else row


def _trace_pipeline() -> Any:
    with pipeline("traced") as made:
        made.one = thinned()
        made.two = thinned()
    return made


@pytest.mark.parametrize("watched", ["one/one_results.jsonl", "two/two_results.jsonl.json"])
def test_a_trace_that_meets_a_publication_is_of_one_version_or_refused(
    tmp_path: Path, watched: str
) -> None:
    made, path = _trace_pipeline(), tmp_path / "traced" / watched
    inputs = {name: tmp_path / f"{name}.jsonl" for name in _ROWS}
    for name, place in inputs.items():
        place.write_bytes(_content(name))
    outcomes = set()
    with config.temporary(data_process_path=tmp_path, data_process_progress=False):
        for number in range(1, 12):
            made.materialize(inputs["old"])
            with _replaced_at(number, path, lambda: made.materialize(inputs["new"])):
                try:
                    found = str(trace(tmp_path / "traced" / "two", line=100))
                except (TraceOutdatedError, TraceError) as error:
                    outcomes.add(type(error))
                else:
                    versions = {one for one in _ROWS if f'"v":"{one}"' in found}
                    assert len(versions) == 1, (number, found)
                    outcomes.add(*versions)
    assert outcomes <= {"old", "new", TraceOutdatedError}
