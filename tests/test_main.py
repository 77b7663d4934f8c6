"""Tests of the command line, python -m dagster_dataops."""

import os
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from dagster_dataops import config, data_register, pipeline
from tests.command_line import main

ROOT = Path(__file__).parents[1]


@data_register("data.command_line", _concurrency_mode="single")
def odd(record):
    return record if record["n"] % 2 else []


@pytest.fixture
def root(tmp_path):
    (tmp_path / "in.jsonl").write_text("".join(f'{{"n":{n}}}\n' for n in range(6)))
    with config.temporary(data_process_path=tmp_path / "root"):
        with pipeline("docs") as ppl:
            ppl.odd = odd()
        ppl.materialize(tmp_path / "in.jsonl")
        yield tmp_path / "root"


def test_a_line_is_traced_by_the_folder_or_below_the_root(root, capsys, tmp_path):
    for folder in ([str(root / "docs" / "odd")], ["docs/odd"], ["docs/odd", "--root", str(root)]):
        assert main(["trace", *folder, "--line", "2"]) == 0
        assert capsys.readouterr().out == (
            f'{tmp_path}/in.jsonl, line 4\n    {{"n":3}}\n'
            'odd (command_line.odd): line 4 -> line 2\n    2: {"n":3}\n'
        )


def test_a_source_line_is_followed_and_printed_as_json(root, capsys):
    assert main(["trace", "docs/odd", "--source-line", "1", "--source", "in.jsonl", "--json"]) == 0
    found = orjson.loads(capsys.readouterr().out)
    assert (found["steps"][0]["outcome"], found["results"]) == ("dropped", [])


def test_an_error_is_printed_and_is_the_exit_status(root, capsys):
    assert main(["trace", "docs/odd", "--line", "9"]) == 1
    assert "there is no record in line 9" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["trace", "docs/odd"])


@pytest.mark.slow
def test_the_package_can_be_run(root):
    done = subprocess.run(
        [sys.executable, "-m", "dagster_dataops", "trace", "docs/odd", "--line", "1"],
        cwd=ROOT,
        env=os.environ | {"DATAOPS_DATA_PROCESS_PATH": str(root), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=True,
    )
    assert b"line 2 -> line 1" in done.stdout


@pytest.mark.parametrize("arguments", [["versions", "x", "--keep"], ["diff", "x", "--samples"]])
def test_a_number_below_zero_is_refused_with_the_allowed_ones(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit):
        main([*arguments, "-1"])
    assert "'-1' is not a number of at least 0" in capsys.readouterr().err
