"""Tests of dagster_dataops.assets.metadata.result_commands."""

import re
import shlex
from pathlib import Path

import dagster as dg
import pytest

from dagster_dataops import combine, data_register, pipeline
from tests.assets.helpers import definitions_of, execute, metadata_of, pipeline_of, write_jsonl
from tests.command_line import main

LETTERS = dg.StaticPartitionsDefinition(["a", "b"])


@data_register("data.traced_assets", _concurrency_mode="single")
def odd(record):
    return record if record["n"] % 2 else []


@data_register("data.traced_assets", rewrite_func="forward_batch_input")
def turned(records):
    return records[::-1]


def commands_in(text: str) -> list[list[str]]:
    """Return the arguments of the commands of a metadata text."""
    lines = re.findall(r"^python -m dagster_dataops (.*)$", text, re.MULTILINE)
    return [shlex.split(line) for line in lines]


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    for key in "ab":
        rows = [{"n": number, "key": key} for number in range(4)]
        write_jsonl(tmp_path / "in box" / f"{key}.jsonl", rows)
    return tmp_path / "in box"


def test_the_page_of_an_asset_has_commands_that_trace_its_records(
    inbox: Path, tmp_path: Path, instance: dg.DagsterInstance, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "my root"
    ppl = pipeline_of(odd=odd(), last=odd())
    result = execute(definitions_of(ppl, inbox / "a.jsonl", root), instance)
    back, forth = commands_in(metadata_of(result, "docs", "last")["trace"])
    assert main(back) == 0
    assert f"{inbox}/a.jsonl, line 2\n" in capsys.readouterr().out
    assert main(forth) == 0
    assert "odd (traced_assets.odd): line 1 -> dropped" in capsys.readouterr().out


def test_records_of_a_partition_are_traced_in_its_folder(
    inbox: Path, tmp_path: Path, instance: dg.DagsterInstance, capsys: pytest.CaptureFixture[str]
) -> None:
    source = inbox / "{partition}.jsonl"
    definitions = definitions_of(pipeline_of(odd=odd()), source, tmp_path, partitions_def=LETTERS)
    result = execute(definitions, instance, partition_key="b")
    back, _ = commands_in(metadata_of(result, "docs", "odd")["trace"])
    assert main(back) == 0
    shown = capsys.readouterr().out
    assert "b.jsonl, line 2" in shown
    assert '"key":"b"' in shown


def test_results_without_a_map_have_no_commands(
    inbox: Path, tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    with pipeline("docs") as ppl:
        ppl.odd = odd(_trace=False)
        ppl.turned = turned()
        ppl.both = combine.concat([ppl.odd, ppl.turned])
    result = execute(definitions_of(ppl, inbox / "a.jsonl", tmp_path), instance)
    assert "trace" not in metadata_of(result, "docs", "odd")
    assert "trace" not in metadata_of(result, "docs", "turned")
    assert "trace" in metadata_of(result, "docs", "both")


def test_a_record_of_all_partitions_is_traced_to_that_of_its_partition(
    inbox: Path, tmp_path: Path, instance: dg.DagsterInstance, capsys: pytest.CaptureFixture[str]
) -> None:
    ppl = pipeline_of(odd=odd(), all=odd())
    definitions = definitions_of(
        ppl,
        inbox / "{partition}.jsonl",
        tmp_path,
        partitions_def=LETTERS,
        unpartitioned=["all"],
        backfill_policy=dg.BackfillPolicy.single_run(),
    )
    for key in "ab":
        job = definitions.resolve_job_def("docs_pipeline")
        assert job.execute_in_process(instance=instance, partition_key=key).success
    job = definitions.resolve_job_def("docs_pipeline_unpartitioned")
    assert job.execute_in_process(instance=instance).success
    assert main(["trace", str(tmp_path / "docs" / "all"), "--line", "4"]) == 0
    shown = capsys.readouterr().out
    assert f"{inbox}/b.jsonl, line 4\n" in shown
    assert "all (traced_assets.odd): line 2 -> line 4" in shown
    arguments = ["trace", str(tmp_path / "docs" / "all"), "--source-line", "2", "--source"]
    assert main([*arguments, "b.jsonl"]) == 0
    assert "all (traced_assets.odd): line 1 -> line 3" in capsys.readouterr().out
