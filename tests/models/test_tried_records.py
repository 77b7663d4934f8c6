"""Tests of trying the present code of a node on some records that it has processed before."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import (
    Drop,
    ModelClient,
    Price,
    chain,
    config,
    data,
    data_register,
    pipeline,
)
from dagster_dataops.errors import ConfigurationError, TryRefusedError
from tests.command_line import main

GROUP = "tried_records"
COUNT = 400
ANSWERS = """
from dagster_dataops import data_register, pipeline


@data_register("data.tried_definitions")
def answer(record, limit: int = 3):
    if record["n"] % 10 == 1:
        return []
    return record | {"text": f"the {WORD} fox {record['n']}"}


with pipeline("docs") as ppl:
    ppl.answer = answer()
"""


@pytest.fixture(autouse=True)
def root(tmp_path):
    (tmp_path / "in.jsonl").write_text("".join(f'{{"n":{n}}}\n' for n in range(COUNT)))
    with config.temporary(data_process_path=tmp_path / "root"):
        yield tmp_path / "root"


@data_register(f"data.{GROUP}", _concurrency_mode="single", _stop_after_failures=0)
def outcome(record, fail: int = -1, drop: int = -1, word: str = "old"):
    rest = record["n"] % 4
    if rest == fail:
        msg = f"no answer for {record['n']}"
        raise TimeoutError(msg)
    if rest == drop:
        return []
    return record | {"text": f"an {word} word"}


def pipeline_of(**options: Any) -> Any:
    with pipeline("docs") as ppl:
        ppl.answer = outcome(**options)
    return ppl


def files_below(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


def try_in(ppl: Any, root: Path, records: int = 100, **more: Any) -> Any:
    from dagster_dataops.models.tried_records import try_pipeline

    return try_pipeline(root / "docs" / "answer", ppl, records, **more)


def test_changed_new_gone_and_failing_records_are_counted_and_nothing_is_written(tmp_path, root):
    pipeline_of(drop=1, fail=2).materialize(tmp_path / "in.jsonl")
    before = files_below(root)

    tried = try_in(pipeline_of(fail=3, word="new"), root)

    assert files_below(root) == before
    assert (tried.tried, tried.records) == (100, COUNT)
    assert sum(tried.changes.values()) == len(tried.differing) == 100
    assert set(tried.changes) == {
        "changed",
        "new, was dropped",
        "new, was failed (TimeoutError)",
        "now failed (TimeoutError)",
    }
    text = str(tried)
    assert "text: an [-old-] word -> an {+new+} word" in text
    assert "no answer for" in text
    assert "resume: never" in text
    assert 'resume: {records: "CONDITION"}' in text
    assert str(try_in(pipeline_of(fail=3, word="new"), root)) == text


def test_equal_code_has_no_difference(tmp_path, root):
    ppl = pipeline_of(drop=1, fail=2)
    ppl.materialize(tmp_path / "in.jsonl")
    tried = try_in(ppl, root, COUNT)
    assert (tried.tried, tried.differing) == (COUNT, [])
    assert "all of them" in str(tried)


@pytest.mark.parametrize(
    ("before", "condition"),
    [({"drop": 1}, "dropped"), ({"fail": 1}, "error_type == 'TimeoutError'")],
)
def test_the_condition_of_the_differing_records_redoes_them(tmp_path, root, before, condition):
    pipeline_of(**before).materialize(tmp_path / "in.jsonl")
    ppl = pipeline_of()

    tried = try_in(ppl, root)

    assert tried.condition == condition
    with config.temporary(data_process_resume={"records": tried.condition}):
        report = ppl.materialize(tmp_path / "in.jsonl")["answer"]
    assert (report.manifest.failed, report.manifest.dropped) == (0, 0)
    assert "the outcomes of the other 300 are kept" in report.notes[0]


@data_register(f"data.{GROUP}", _concurrency_mode="single")
def repeated(record, times: int = 1):
    return [{"n": record["n"], "copy": copy} for copy in range(times)]


def test_the_number_of_lines_after_the_first_thousand_of_a_record_is_compared(tmp_path, root):
    def repeating(times: int) -> Any:
        with pipeline("docs") as ppl:
            ppl.answer = repeated(times=times)
        return ppl

    (tmp_path / "in.jsonl").write_text('{"n":1}\n')
    repeating(1001).materialize(tmp_path / "in.jsonl")
    assert try_in(repeating(1001), root).differing == []
    (record,) = try_in(repeating(1002), root).differing
    assert (record.before.further, record.after.further) == (1, 2)


def test_a_drop_reason_with_quotes_is_a_condition(tmp_path, root):
    def dropping(reason: str) -> Any:
        with pipeline("docs") as ppl:
            ppl.answer = dropped(reason=reason)
        return ppl

    reason = 'it\'s \\ "two"'
    dropping(reason).materialize(tmp_path / "in.jsonl")
    ppl = dropping("")
    with config.temporary(data_process_resume={"records": try_in(ppl, root).condition}):
        report = ppl.materialize(tmp_path / "in.jsonl")["answer"]
    assert report.manifest.dropped == 0


@data_register(f"data.{GROUP}", _concurrency_mode="single")
def dropped(record, reason: str = ""):
    return Drop(reason) if reason else record


def test_what_cannot_be_tried_is_refused(tmp_path, root):
    ppl = pipeline_of()
    ppl.materialize([{"n": 1}])
    with pytest.raises(TryRefusedError, match="is gone"):
        try_in(ppl, root)
    ppl.materialize(tmp_path / "in.jsonl")
    with pytest.raises(ConfigurationError, match="a node of the pipeline: answer"):
        try_in(ppl, root, node="answers")
    with pytest.raises(ConfigurationError, match="1 or more"):
        try_in(ppl, root, 0)
    with pipeline("docs") as whole:
        whole.answer = data.dedup.Exact(input_key="n")
    whole.materialize(tmp_path / "in.jsonl")
    with pytest.raises(TryRefusedError):
        try_in(whole, root)


def asking(prompt: str, **options: Any) -> Any:
    with pipeline("docs") as ppl:
        ppl.answer = data.llm.Generate(prompt=prompt, model="small", output_key="text", **options)
    return ppl


def test_a_model_is_called_only_for_requests_that_have_changed(tmp_path, root, server):
    client = ModelClient(base_url=server.address, prices={"small": Price(100.0, 0.0)})
    source = tmp_path / "few.jsonl"
    source.write_text("".join(f'{{"n":{n}}}\n' for n in range(60)))

    def tried_with(prompt: str, **options: Any) -> Any:
        return try_in(asking(prompt, **options), root, 20)

    with config.temporary(), pytest.MonkeyPatch.context() as patch:
        patch.setitem(config.clients, "default", client)
        asking("Number {{ n }}").materialize(source)
        assert server.stats()["requests"] == 60
        before = files_below(root)

        same = tried_with("Number {{ n }}", max_tokens=None)
        assert server.stats()["requests"] == 60
        assert not same.differing
        assert same.calls == "model calls: 0 made, 20 answered by stored replies"

        other = tried_with("The number {{ n }}")
        assert server.stats()["requests"] == 80
    assert other.calls.startswith("model calls: 20 made, 0 answered")
    assert "all 60 records would take about 60, for about" in other.calls
    assert files_below(root) == before


@pytest.mark.slow
def test_the_command_loads_the_present_code_and_calls_nothing_without_calls(tmp_path, root, capsys):
    file = tmp_path / "tried_definitions.py"
    file.write_text(ANSWERS.replace("{WORD}", "quick"))
    run = f"import tried_definitions as d; d.ppl.materialize({str(tmp_path / 'in.jsonl')!r})"
    environment = os.environ | {
        "DATAOPS_DATA_PROCESS_PATH": str(root),
        "PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[2]}",
    }
    subprocess.run([sys.executable, "-c", run], env=environment, check=True, cwd=tmp_path)
    command = ["try", "docs/answer", "--records", "50", "--pipeline", f"{file}:ppl"]
    assert main([*command, "--no-calls"]) == 0
    assert "outcomes that differ: 0 of 50" in capsys.readouterr().out
    assert main([*command, "--no-calls", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["would_call"]["records"] == 0

    file.write_text(ANSWERS.replace("{WORD}", "slow"))
    assert main(command) == 0
    text = capsys.readouterr().out
    assert "the present code was tried on 50 of 400 records" in text
    assert "text: the [-quick-] fox" in text
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["changes"] == {"changed": 44}
    assert main(["try", "docs/answer", "--pipeline", f"{file}:other"]) == 1
    assert "the name of a pipeline; it has ppl" in capsys.readouterr().err


class Forgiving(data_register.new_group("forgiving_calls"), data.llm.Generate):
    """Keeps a record whose call failed."""

    async def forward(self, record):
        try:
            return await super().forward(record)
        except Exception:  # noqa: BLE001 - the point of the test
            return record | {"text": "no answer"}


def forgiving(prompt: str, **options: Any) -> Any:
    with pipeline("docs") as ppl:
        ppl.answer = Forgiving(prompt=prompt, model="small", output_key="text", **options)
    return ppl


def chained(prompt: str, **options: Any) -> Any:
    with pipeline("docs") as ppl:
        ppl.answer = chain(
            data.shape.Rename({"n": "number"}),
            data.llm.Generate(
                prompt=prompt.replace(" n ", " number "),
                model="small",
                output_key="text",
                **options,
            ),
        )
    return ppl


@pytest.mark.slow
@pytest.mark.parametrize("made", [asking, forgiving, chained])
def test_without_calls_only_stored_replies_are_used(tmp_path, root, server, capsys, made):
    prices = {"small": Price(100.0, 1000.0)}
    client = ModelClient(base_url=server.address, prices=prices)
    source = tmp_path / "few.jsonl"
    source.write_text("".join(f'{{"n":{n}}}\n' for n in range(60)))
    even = "{% if n % 2 %}Number{% else %}The number{% endif %} {{ n }}"

    def tried_with(prompt: str, **options: Any) -> Any:
        return try_in(made(prompt, **options), root, 60, calls=False)

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(config.clients, "default", client)
        made("Number {{ n }}").materialize(source)
        before, asked = files_below(root), server.stats()
        assert asked["requests"] == 60

        same = tried_with("Number {{ n }}", max_tokens=None)
        assert (same.differing, same.compared, same.would_call.records) == ([], 60, 0)
        assert "60 answered by stored replies\nwould call a model: none of 60 records" in str(same)

        half = tried_with(even)
        other = tried_with("The number {{ n }}", max_tokens=20)
        patch.setitem(config.clients, "default", ModelClient(base_url=server.address))
        unpriced = tried_with("The number {{ n }}")
        assert server.stats() == asked
    assert files_below(root) == before
    assert (half.would_call.records, half.compared, half.differing) == (30, 30, [])
    assert other.would_call.records == other.would_call.requests == 60
    assert other.differing == []
    assert "outcomes that differ: 0 of 0" in str(other)
    assert 0 < other.would_call.cost <= other.would_call.highest
    assert "would call a model: 60 of 60 records" in str(other)
    assert "no price of small" in str(unpriced)
    assert other.to_json()["would_call"]["records"] == 60


def test_a_batch_that_would_be_asked_counts_once(tmp_path, root, server):
    def embedding(model: str) -> Any:
        with pipeline("docs") as ppl:
            client = ModelClient(base_url=server.address)
            ppl.answer = data.llm.Embed(model=model, input_key="text", client=client)
        return ppl

    source = tmp_path / "texts.jsonl"
    source.write_text("".join(f'{{"text":"text {n}"}}\n' for n in range(60)))
    embedding("small").materialize(source)
    asked = server.stats()

    assert try_in(embedding("small"), root, 60, calls=False).would_call.records == 0
    other = try_in(embedding("other"), root, 60, calls=False)
    assert (other.would_call.records, other.would_call.requests) == (60, asked["requests"])
    assert server.stats() == asked


@pytest.mark.slow
def test_without_calls_no_batch_is_submitted(tmp_path, root, server):
    client = ModelClient(base_url=server.address)
    asking("Number {{ n }}", client=client).materialize(tmp_path / "in.jsonl")
    asked = server.stats()
    batched = asking("The number {{ n }}", client=client, delivery="batch")
    assert try_in(batched, root, 20, calls=False).would_call.records == 20
    assert server.stats() == asked
