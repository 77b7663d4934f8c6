"""Tests of dagster_dataops.streams.files.file_sets and file_stages: several files as one stream."""

import gzip
import json

import pytest

from dagster_dataops import (
    errors,
    read_jsonl,
    readers,
)
from dagster_dataops.testing import assert_resumes_anywhere
from dagster_dataops.text import read_text


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "data"
    for name in ["part-2.jsonl", "part-10.jsonl", "sub/part-1.jsonl", "_SUCCESS", ".x/a.jsonl"]:
        path = made / name
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [{"in": name, "n": n} for n in range(4)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (made / "empty.jsonl").write_text("")
    return made


def names(stream):
    return list(dict.fromkeys(row["in"] for row in stream))


def test_a_folder_means_all_its_files_in_natural_order_except_markers(folder):
    expected = ["part-2.jsonl", "part-10.jsonl", "sub/part-1.jsonl"]
    assert names(read_jsonl(folder)) == expected
    assert names(read_jsonl(f"{folder}/")) == expected


def test_wildcards_mean_files_in_natural_order(folder):
    assert names(read_jsonl(folder / "part-*.jsonl")) == ["part-2.jsonl", "part-10.jsonl"]
    assert len(names(read_jsonl(f"{folder}/**/*.jsonl"))) == 3
    with pytest.raises(errors.StreamSourceError, match=r"\*\.csv: matches no file"):
        list(read_jsonl(folder / "*.csv"))


def test_a_list_is_read_unchanged(folder):
    given = [folder / "part-10.jsonl", str(folder / "part-2.jsonl"), folder / "part-10.jsonl"]
    rows = [row["in"] for row in read_jsonl(given)]
    assert rows == ["part-10.jsonl"] * 4 + ["part-2.jsonl"] * 4 + ["part-10.jsonl"] * 4


def test_a_file_whose_name_looks_like_wildcards_is_itself(tmp_path):
    path = tmp_path / "a[1]*.jsonl"
    path.write_text('{"a":1}\n')
    assert list(read_jsonl(path)) == [{"a": 1}]


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize("keys", [{}, {"file_key": "f", "line_key": "l"}])
def test_several_files_resume_anywhere(folder, on_error, keys):
    (folder / "part-3.jsonl").write_text('{"a":1}\n' if on_error == "raise" else 'bad\n{"a":1}\n')

    def made():
        return read_jsonl(folder, **keys).repeat(2).and_return(on_error=on_error)

    assert_resumes_anywhere(made)


def test_failures_in_several_files_are_counted_once_over_all_resumptions(folder):
    for name in ["part-3.jsonl", "part-4.jsonl"]:
        (folder / name).write_text('bad\n{"in":"x"}\nbad\n')
    stream = read_jsonl(folder).and_return(on_error="skip")
    while True:
        state = json.loads(json.dumps(stream.state_dict()))
        stream = read_jsonl(folder).and_return(on_error="skip")
        stream.load_state_dict(state)
        if next(iter(stream), None) is None:
            break
    assert stream.errors == 4


def test_records_contain_their_file_and_line(tmp_path):
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    first.write_text('{"n":1}\n\n{"n":2}\n')
    second.write_text('\n{"n":3}')
    rows = list(read_jsonl([first, second], file_key="file", line_key="line"))
    assert rows == [
        {"n": 1, "file": str(first), "line": 1},
        {"n": 2, "file": str(first), "line": 3},
        {"n": 3, "file": str(second), "line": 2},
    ]
    lines = read_text([first], key="t", line_key="l", skip_empty=True)
    assert list(lines) == [{"t": '{"n":1}', "l": 1}, {"t": '{"n":2}', "l": 3}]
    with pytest.raises(errors.StreamDefinitionError, match="need a key for the line"):
        read_text(first, line_key="l")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_line_numbers_are_right_in_every_block(tmp_path, encoding):
    path = tmp_path / "a.txt"
    texts = [f"{n}" * (n % 9) for n in range(3000)]
    path.write_bytes("\n".join(texts).encode(encoding))
    read = read_text(
        path, "t", encoding=encoding, line_key="l", skip_empty=True, block_size=1024
    ).and_return()
    numbered = [{"t": text, "l": n} for n, text in enumerate(texts, 1) if text]
    for _, row in zip(range(2000), read, strict=False):
        assert row == numbered[_]
    state = read.state_dict()
    again = read_text(
        path, "t", encoding=encoding, line_key="l", skip_empty=True, block_size=1024
    ).and_return()
    again.load_state_dict(state)
    assert list(again) == numbered[2000:]


def test_a_state_belongs_to_the_files_and_their_content(folder):
    stream = read_jsonl(folder).and_return()
    next(iter(stream))
    state = stream.state_dict()
    read_jsonl(folder).and_return().load_state_dict(state)
    (folder / "part-11.jsonl").write_text("{}\n")
    with pytest.raises(errors.StreamStateError, match="data"):
        read_jsonl(folder).and_return().load_state_dict(state)
    (folder / "part-11.jsonl").unlink()
    (folder / "part-10.jsonl").write_text('{"in":"other"}\n')
    with pytest.raises(errors.StreamStateError, match="data"):
        read_jsonl(folder).and_return().load_state_dict(state)


def test_files_that_moved_together_are_the_same(folder, tmp_path):
    stream = read_jsonl(folder).and_return()
    next(iter(stream))
    state = stream.state_dict()
    moved = folder.rename(tmp_path / "moved")
    again = read_jsonl(moved).and_return()
    again.load_state_dict(state)
    assert len(list(again)) == 11


@pytest.mark.parametrize("position", [["x", None], [0, ["x"]], [0, "ab"], 7, {"number": 0}])
def test_a_damaged_position_is_refused(folder, position):
    stream = read_jsonl(folder).and_return()
    state = stream.state_dict() | {"position": position}
    with pytest.raises(errors.StreamStateError, match="position is damaged"):
        stream.load_state_dict(state)
        list(stream)


def test_a_missing_path_and_a_non_path_are_refused():
    with pytest.raises(errors.StreamDefinitionError, match="no path was given"):
        read_jsonl([])
    with pytest.raises(errors.StreamArgumentError, match="a path is 3; it must be a text"):
        read_jsonl([3])


def test_an_empty_folder_is_reported(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(errors.StreamSourceError, match="is a folder without files"):
        list(read_jsonl(tmp_path / "empty"))


def test_several_files_are_shuffled_as_a_whole_like_one(folder, tmp_path):
    one = tmp_path / "one.jsonl"
    one.write_text("".join(json.dumps(row) + "\n" for row in read_jsonl(folder)))
    expected = sorted(map(str, read_jsonl(one)))
    for path in [folder, one, [one]]:
        rows = list(map(str, read_jsonl(path).shuffle(0, seed=1)))
        assert sorted(rows) == expected
        assert rows != expected
        stream = read_jsonl(path).shuffle(0, seed=1).and_return()
        next(iter(stream))
        position = stream.state_dict()["position"]  # by number: no record is held
        assert position == {"failed": 0, "seed": 1, "epoch": 0, "passed": 1}
        assert_resumes_anywhere(lambda path=path: read_jsonl(path).shuffle(0, seed=1).repeat(2))


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
