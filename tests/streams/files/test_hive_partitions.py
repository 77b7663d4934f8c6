"""Tests of dagster_dataops.streams.files.locations."""

import gzip
import json

import pytest

from dagster_dataops import (
    errors,
    read_jsonl,
    readers,
)


@pytest.mark.parametrize(
    ("folders", "expected"),
    [
        (["year=2024/lang=de"], [{"year": 2024, "lang": "de"}]),
        (["year=2024", "year=x"], [{"year": "2024"}, {"year": "x"}]),
        (["n=01", "n=-2"], [{"n": 1}, {"n": -2}]),
        (["n=__HIVE_DEFAULT_PARTITION__", "n=3"], [{"n": None}, {"n": 3}]),
        (["a%20b=c%2Fd/=x/y", ""], [{"a b": "c/d"}, {}]),
        (["n=12345678901234567890"], [{"n": "12345678901234567890"}]),
        (["t=a=b", "t="], [{"t": "a=b"}, {"t": ""}]),
    ],
)
def test_columns_are_read_from_the_names_of_folders(folders, expected, tmp_path):
    for number, folder in enumerate(folders):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "x.jsonl").write_text(f'{{"at":{number}}}\n')
    rows = sorted(read_jsonl(tmp_path), key=lambda row: row["at"])
    assert rows == [{"at": number, **columns} for number, columns in enumerate(expected)]


@pytest.fixture
def logs(tmp_path):
    """Two folders with one file each."""
    for day, name in ((1, "a"), (2, "b")):
        (tmp_path / "logs" / f"day={day}").mkdir(parents=True)
        row = json.dumps({"name": name}).encode()
        (tmp_path / "logs" / f"day={day}" / "x.jsonl").write_bytes(row + b"\n")
    return tmp_path / "logs"


def test_json_lines_and_delimited_rows_have_them_too(logs):
    expected = [{"name": "a", "day": 1}, {"name": "b", "day": 2}]
    assert list(read_jsonl(logs)) == expected
    assert list(read_jsonl(str(logs / "day=*" / "*.jsonl"))) == expected
    assert list(read_jsonl(logs, hive=False)) == [{"name": "a"}, {"name": "b"}]
    assert list(read_jsonl(logs / "day=1" / "x.jsonl")) == [{"name": "a"}]
    for file in logs.glob("*/*"):
        file.with_suffix(".csv.gz").write_bytes(
            gzip.compress(b"name\n" + file.parent.name.encode())
        )
        file.unlink()
    assert list(readers.read_delimited(logs)) == [{"name": f"day={n}", "day": n} for n in (1, 2)]


def test_a_column_of_the_record_itself_stays(tmp_path):
    (tmp_path / "day=1").mkdir()
    (tmp_path / "day=1" / "x.jsonl").write_text('{"day":7,"n":0}\n')
    assert list(read_jsonl(tmp_path, line_key="line")) == [{"day": 7, "n": 0, "line": 1}]


def test_a_moved_file_is_other_content(logs):
    stream = read_jsonl(logs).and_return()
    next(iter(stream))
    state = stream.state_dict()
    (logs / "day=2").rename(logs / "day=3")
    with pytest.raises(errors.StreamStateError):
        read_jsonl(logs).and_return().load_state_dict(state)
