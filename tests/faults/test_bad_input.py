"""Tests of lines that are not records, invalid files, and results that JSON cannot hold."""

import asyncio
import datetime
import os
from pathlib import Path
from typing import Any

import orjson
import pytest

from dagster_dataops import JsonlDataset
from dagster_dataops.data import data_register
from dagster_dataops.errors import InputError, RecordError, StorageError
from tests.execution.helpers import MODES, error_rows, lines, node, run, run_over, write_input
from tests.faults.cases import cases

_GROUP = "data.bad_input"


@data_register(_GROUP, _stop_after_failures=0)
def keep(record):
    return record


@data_register(_GROUP, _stop_after_failures=0)
async def keep_async(record):
    await asyncio.sleep(0)
    return record


def _bad_result(name: str, record: dict[str, Any]) -> Any:
    values = {
        "set": {1},
        "bytes": b"x",
        "datetime": datetime.datetime(2024, 1, 1),  # noqa: DTZ001
        "surrogate": "a\ud800b",
        "surrogate key": {"\ud800": 1},
        "large": 2**70,
        "nan": float("nan"),
        "infinity": [1.0, float("-inf")],
        "object": object(),
    }
    if name == "key":
        return {**record, 3: "x"}
    if name == "in a list":
        return [record, {"deep": [{"value": {1}}]}]
    if name == "circle":
        record["self"] = record
        return record
    return {**record, "value": values[name]}


@data_register(_GROUP)
def spoil(record, what=""):
    return _bad_result(what, record) if record["n"] == 1 else record


@data_register(_GROUP)
async def spoil_async(record, what=""):
    return _bad_result(what, record) if record["n"] == 1 else record


@data_register(_GROUP, rewrite_func="forward_batch_input")
def turn(records):
    return records[::-1]


def _keeping(mode: str, **given: Any) -> Any:
    chosen = keep_async if mode == "async" else keep
    return chosen(_concurrency_mode=mode, _max_workers=2, **given)


def _file(path: Path, content: bytes) -> JsonlDataset:
    (path / "input.jsonl").write_bytes(content)
    return JsonlDataset.of_file(path / "input.jsonl")


_GOOD = b'{"n":0}\n'
_BAD_LINES = {
    "no JSON": (b"{broken", "not JSON"),
    "half a record": (b'{"a":1', "not JSON"),
    "two records": (b'{"a":1} {"b":2}', "not JSON"),
    "NaN": (b'{"a":NaN}', "not JSON"),
    "a lone surrogate": (rb'{"a":"\ud800"}', "not JSON"),
    "not UTF-8": (b'{"a":"\xff\xfe"}', "not JSON"),
    "a null byte": (b'{"a":1}\x00', "not JSON"),
    "a large integer": (b'{"a":[18446744073709551616]}', "an integer beyond 64 bits"),
    "a small integer": (b'{"a":-9223372036854775809}', "an integer beyond 64 bits"),
    "a list": (b"[1,2]", "a JSON list, not an object"),
    "a number": (b"17", "a JSON int, not an object"),
    "a text": (b'"text"', "a JSON str, not an object"),
    "null": (b"null", "a JSON NoneType, not an object"),
}


@pytest.mark.parametrize("name", _BAD_LINES)
@pytest.mark.parametrize("mode", MODES)
def test_a_bad_line_is_an_error_row_and_costs_no_other(
    tmp_path: Path, mode: str, name: str
) -> None:
    bad, message = _BAD_LINES[name]
    dataset = _file(tmp_path, _GOOD * 3 + b"\n" + bad + b"\n" + _GOOD * 2 + bad)
    report = run(_keeping(mode), dataset, node(tmp_path))
    assert node(tmp_path).result.read_bytes() == _GOOD * 5
    rows = error_rows(node(tmp_path))
    assert [(row["index"], row["line"]) for row in rows] == [(3, 5), (6, 8)]
    for row in rows:
        assert row["exception"] == "InvalidLine"
        assert message in row["message"]
        assert row["path"] == str(dataset.path)
        shown = row["input"].encode() if name != "not UTF-8" else bad
        assert shown == bad
    assert (report.manifest.rows_in, report.manifest.failed) == (7, 2)


@pytest.mark.parametrize("name", _BAD_LINES)
def test_a_dataset_operator_gets_the_good_lines(tmp_path: Path, name: str) -> None:
    bad, message = _BAD_LINES[name]
    dataset = _file(tmp_path, b'{"n":1}\n' + bad + b'\n\n{"n":2}\n')
    run(turn(), dataset, node(tmp_path))
    assert node(tmp_path).result.read_bytes() == b'{"n":2}\n{"n":1}\n'
    (row,) = error_rows(node(tmp_path))
    assert (row["index"], row["line"], row["exception"]) == (1, 2, "InvalidLine")
    assert message in row["message"]


@pytest.mark.parametrize("mode", MODES)
def test_a_bad_line_fails_the_step_where_failures_are_not_ignored(
    tmp_path: Path, mode: str
) -> None:
    dataset = _file(tmp_path, _GOOD * 3 + b"\n{broken\n" + _GOOD)
    with pytest.raises(RecordError, match="InvalidLine: not JSON") as caught:
        run(_keeping(mode, _ignore_errors=False), dataset, node(tmp_path))
    assert (caught.value.index, caught.value.line) == (3, 5)
    assert str(dataset.path) in str(caught.value)
    assert not node(tmp_path).result.exists()


_SHAPES = {
    "a byte order mark": b'\xef\xbb\xbf{"n":0}\n{"n":1}\n',
    "carriage returns": b'{"n":0}\r\n{"n":1}\r\n',
    "no final newline": b'{"n":0}\n{"n":1}',
    "blank lines": b'\n\n{"n":0}\n  \n\t\r\n{"n":1}\n\n\n',
    "white space around": b'  {"n":0} \n\t{"n" : 1}\t\n',
    "everything at once": b'\xef\xbb\xbf\r\n{"n":0}\r\n \r\n\r\n{"n":1}',
}


@pytest.mark.parametrize("shape", _SHAPES)
@pytest.mark.parametrize("mode", MODES)
def test_every_way_to_end_a_line_is_read(tmp_path: Path, mode: str, shape: str) -> None:
    report = run(_keeping(mode), _file(tmp_path, _SHAPES[shape]), node(tmp_path))
    assert node(tmp_path).result.read_bytes() == b'{"n":0}\n{"n":1}\n'
    assert report.manifest.rows_in == 2


@pytest.mark.parametrize("content", [b"", b"\n", b" \n\r\n\n", b"\xef\xbb\xbf"], ids=repr)
@pytest.mark.parametrize("mode", MODES)
def test_an_input_without_records_makes_an_empty_result(
    tmp_path: Path, mode: str, content: bytes
) -> None:
    report = run(_keeping(mode), _file(tmp_path, content), node(tmp_path))
    assert node(tmp_path).result.read_bytes() == b""
    assert (report.manifest.rows_in, report.dataset.rows) == (0, 0)
    assert not node(tmp_path).errors.exists()


# Single and asynchronous runs treat their lines as threads do.
@pytest.mark.slow
@pytest.mark.parametrize("mode", cases(["thread", "process"], campaign=[*MODES]))
def test_a_line_of_a_hundred_megabytes_is_processed(tmp_path: Path, mode: str) -> None:
    content = _GOOD + b'{"long":"' + b"x" * (100 << 20) + b'"}\n' + _GOOD
    run(_keeping(mode), _file(tmp_path, content), node(tmp_path))
    assert node(tmp_path).result.read_bytes() == content


def test_a_long_bad_line_is_cut_in_the_error_file(tmp_path: Path) -> None:
    dataset = _file(tmp_path, _GOOD + b"x" * (5 << 20) + b"\n" + _GOOD)
    run(_keeping("single"), dataset, node(tmp_path))
    assert node(tmp_path).result.read_bytes() == _GOOD * 2
    (row,) = error_rows(node(tmp_path))
    assert row["input"] == "x" * (64 << 10)


@pytest.mark.parametrize("mode", MODES)
def test_an_input_that_vanished_is_named(tmp_path: Path, mode: str) -> None:
    dataset = _file(tmp_path, _GOOD)
    dataset.path.unlink()
    with pytest.raises(InputError, match=r"input\.jsonl"):
        run(_keeping(mode), dataset, node(tmp_path))


def test_a_missing_file_and_a_folder_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing\.jsonl: there is no such file"):
        JsonlDataset.of_file(tmp_path / "nothing.jsonl")
    with pytest.raises(InputError, match="this is a folder"):
        JsonlDataset.of_file(tmp_path)


def test_utf_16_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="convert it to UTF-8"):
        _file(tmp_path, '{"n":0}\n'.encode("utf-16"))


@pytest.mark.parametrize("mode", MODES)
def test_a_file_in_place_of_the_folder_is_a_storage_error(tmp_path: Path, mode: str) -> None:
    dataset = _file(tmp_path, _GOOD)
    (tmp_path / "node").write_bytes(b"")
    with pytest.raises(StorageError, match=str(tmp_path / "node")):
        run(_keeping(mode), dataset, node(tmp_path))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_unwritable_root_is_a_storage_error(tmp_path: Path) -> None:
    dataset = _file(tmp_path, _GOOD)
    (tmp_path / "root").mkdir(mode=0o500)
    with pytest.raises(StorageError, match="Permission denied"):
        run(_keeping("single"), dataset, node(tmp_path / "root"))


_BAD_RESULTS = {
    "set": "key 'value' holds a set",
    "bytes": "key 'value' holds a bytes",
    "datetime": "key 'value' holds a datetime",
    "key": "has the key 3 of type int; keys must be strings",
    "surrogate": "holds a lone surrogate at character 1",
    "surrogate key": "lone surrogate",
    "large": "an integer beyond 64 bits",
    "nan": "key 'value' holds nan",
    "infinity": "key 'value'[1] holds -inf",
    "object": "holds a object",
    "in a list": "key 'deep'[0].value holds a set",
    "circle": "nests deeper than",
}


@pytest.mark.parametrize("name", _BAD_RESULTS)
@pytest.mark.parametrize("mode", MODES)
def test_a_result_that_json_cannot_hold_is_an_error_row(
    tmp_path: Path, mode: str, name: str
) -> None:
    chosen = spoil_async if mode == "async" else spoil
    run_over(
        tmp_path,
        chosen(what=name, _concurrency_mode=mode, _max_workers=2),
        [{"n": n} for n in range(4)],
    )
    assert node(tmp_path).result.read_bytes() == lines({"n": n} for n in (0, 2, 3))
    (row,) = error_rows(node(tmp_path))
    assert (row["index"], row["line"], row["exception"]) == (1, 2, "InvalidResult")
    assert _BAD_RESULTS[name] in row["message"]
    assert row["input"] == {"n": 1}


@pytest.mark.parametrize("ignore", [True, False], ids=["ignored", "not ignored"])
@pytest.mark.parametrize("mode", ["single", "thread", "process"])
def test_exceptions_without_valid_text_are_reported(
    tmp_path: Path, mode: str, ignore: bool
) -> None:
    class OddError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    @data_register(_GROUP, _concurrency_mode=mode, _stop_after_failures=0)
    def odd(record):
        raise OddError if record["n"] else ValueError("lone \ud800 surrogate")

    dataset = write_input(tmp_path / "input.jsonl", [{"n": 0}, {"n": 1}])
    if ignore:
        run(odd(), dataset, node(tmp_path))
        first, second = error_rows(node(tmp_path))
        assert (first["exception"], second["exception"]) == ("ValueError", "OddError")
        assert "lone \\ud800 surrogate" in first["message"]
        assert "lone \\ud800 surrogate" in first["traceback"]
    else:
        with pytest.raises(RecordError, match="surrogate") as caught:
            run(odd(_ignore_errors=False, _max_workers=1), dataset, node(tmp_path))
        assert caught.value.exception == "ValueError"


@pytest.mark.parametrize("mode", MODES)
def test_error_rows_are_json_lines(tmp_path: Path, mode: str) -> None:
    content = b"".join(bad + b"\n" for bad, _ in _BAD_LINES.values())
    run(_keeping(mode), _file(tmp_path, content), node(tmp_path))
    written = node(tmp_path).errors.read_bytes()
    rows = [orjson.loads(line) for line in written.splitlines()]
    assert len(rows) == len(_BAD_LINES)
    names = "index path line operator exception message traceback attempts input"
    assert all(list(row) == names.split() for row in rows)
