"""Tests of the lengths of texts before and after a node."""

from pathlib import Path

import orjson

from dagster_dataops.pipelines.reporting.text_lengths import compared_lengths


def write(path: Path, texts: list[object]) -> Path:
    path.write_bytes(b"".join(orjson.dumps({"text": text, "n": 1}) + b"\n" for text in texts))
    return path


def test_only_texts_are_measured(tmp_path: Path):
    (row,) = compared_lengths([write(tmp_path / "a", ["", "a", "abc", 5, None])], [])
    assert row == {
        "column": "text",
        "before": {
            "texts": 3,
            "mean": 1.3,
            "median": 1,
            "p95": 3,
            "most": 3,
            "histogram": [1, 1, 1],
        },
        "after": None,
    }


def test_a_large_file_is_sampled(tmp_path: Path):
    path = write(tmp_path / "a", ["x" * (number % 100) for number in range(50_000)])
    (row,) = compared_lengths([path], [path])
    assert row["before"] == row["after"]
    assert 900 < row["before"]["texts"] <= 1100
    assert 45 < row["before"]["mean"] < 54


def test_missing_files_have_no_lengths(tmp_path: Path):
    assert compared_lengths([tmp_path / "gone"], []) == []


def test_several_files_are_measured_together(tmp_path: Path):
    paths = [write(tmp_path / name, ["abc"]) for name in "abc"]
    assert compared_lengths([], paths)[0]["after"]["texts"] == 3
