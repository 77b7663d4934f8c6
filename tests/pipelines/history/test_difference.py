"""Tests of dagster_dataops.pipelines.history: what differs between two versions, and why."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import orjson
import pytest

from dagster_dataops import (
    Drop,
    FileContent,
    JsonlDataset,
    ModelClient,
    To,
    chain,
    config,
    data,
    data_register,
    diff,
    load_result,
    pipeline,
    restore,
    versions,
)
from dagster_dataops.errors import NewerVersionError, TraceOutdatedError, VersionMissingError
from tests.command_line import main
from tests.nodes import NodeFolder, OperatorExecutor, RunContext
from tests.pipelines.history.answering_server import answering_server
from tests.pipelines.history.nodes_with_history import (
    edited_module,
    numbered,
    run,
    write_records,
)

_SINGLE: dict[str, Any] = {"_concurrency_mode": "single", "_stop_after_failures": 0}


@data_register("data.history", **_SINGLE)
def mark(record: dict[str, Any], sign: str = "!", divisor: int = 0, password: str = "") -> Any:
    """Mark a text; drop, fail and split some records by their number."""
    if divisor and record["n"] % divisor == 3:
        return Drop("three")
    if divisor and record["n"] % divisor == 4:
        raise ValueError(f"four in {record['n']}")
    if divisor and record["n"] % divisor == 5:
        return [record, {**record, "copy": True}]
    return {**record, "text": f"{record['text']}{sign}"}


@data_register("data.history", **_SINGLE)
def upper(record: dict[str, Any]) -> dict[str, Any]:
    return {**record, "text": record["text"].upper()}


@data_register("data.history", rewrite_func="forward_batch_input")
def turned(records: list[dict[str, Any]], times: int = 1) -> list[dict[str, Any]]:
    return records[::-1] * times


@data_register("data.history", **_SINGLE)
def counting(record: dict[str, Any]) -> dict[str, Any]:
    return {**record, "at": time.perf_counter_ns()}


@data_register("data.history", **_SINGLE)
def told(record: dict[str, Any], words: Annotated[Path | None, FileContent] = None) -> Any:
    return {**record, "words": words.read_text() if words else ""}


@data_register("data.history", **_SINGLE)
def applied(record: dict[str, Any], function: Callable[[str], str] = str.upper) -> Any:
    return {**record, "text": function(record["text"])}


@data_register("data.history", **_SINGLE)
def tried(record: dict[str, Any], flag: str = "") -> Any:
    if record["n"] == 4 and not Path(flag).exists():
        raise ValueError("not yet")
    return record


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_records(tmp_path / "in.jsonl", numbered(20))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


def _records(root: Path, name: str) -> list[dict[str, Any]]:
    return load_result(root / "docs" / name).read()


def _numbers(found: Any) -> tuple[int, int, int]:
    return found.new, found.gone, found.changed


def test_a_changed_option_is_the_cause_of_each_changed_record(root, source):
    run(root, source, marked=mark(sign=".", _keep_versions=1))
    run(root, source, marked=mark(sign="?", _keep_versions=1))

    found = diff(root / "docs/marked")

    assert _numbers(found) == (0, 0, 20)
    assert [(one.kind, one.name) for one in found.causes] == [("option", "sign")]
    assert str(found.causes[0]) == 'option sign: "." became "?"'
    (lines,) = found.results.values()
    assert dict(lines.causes) == {'option sign: "." became "?"': 20}
    first = lines.samples[0]
    assert (first.change, first.input_before, first.input_after) == ("changed", 1, 1)
    assert orjson.loads(first.before)["text"] == "text 0."
    assert orjson.loads(first.after)["text"] == "text 0?"


_CODE = """
from dagster_dataops import data_register

LIMIT = {limit}

def helper(text):
    return text[:LIMIT] + {end!r}

def unrelated():
    return {unrelated}

@data_register("data.edited_history", _concurrency_mode="single")
def shorten(record):
    return {{**record, "text": helper(record["text"]){more}}}
"""


@pytest.mark.parametrize(
    ("edit", "kind", "name"),
    [
        ({"end": "x"}, "code", "history_of_code.helper"),
        ({"limit": 3}, "code", "history_of_code.LIMIT"),
        ({"more": " + 'y'"}, "code", "history_of_code.shorten"),
    ],
)
def test_an_edited_function_helper_or_constant_is_named(
    root, source, tmp_path, monkeypatch, edit, kind, name
):
    monkeypatch.syspath_prepend(str(tmp_path))
    usual = {"limit": 4, "end": ".", "unrelated": 1, "more": ""}
    for values in (usual, usual | edit):
        module = edited_module(tmp_path, "history_of_code", _CODE.format(**values))
        run(root, source, short=module.shorten(_keep_versions=1))

    found = diff(root / "docs/short")

    assert _numbers(found) == (0, 0, 20)
    assert [(one.kind, one.name) for one in found.causes] == [(kind, name)]
    sys.modules.pop("history_of_code")


def test_changed_new_gone_and_moved_input_records_are_told_apart(root, source):
    run(root, source, marked=mark(_keep_versions=1))
    rows = numbered(20)
    rows[4]["text"] = "text 4 in other words"
    rows.insert(9, {"n": 100, "text": "something new"})
    del rows[15]
    rows.append(rows.pop(0))
    rows.append(dict(rows[2]))  # a duplicate
    write_records(source, rows)
    run(root, source, marked=mark(_keep_versions=1))

    found = diff(root / "docs/marked")

    assert _numbers(found) == (2, 1, 1)
    assert [one.kind for one in found.causes] == ["input"]
    (lines,) = found.results.values()
    assert (lines.same, lines.moved) == (17, 1)
    assert dict(lines.causes) == {
        "its input record is new": 2,
        "its input record is gone": 1,
        "its input record has changed": 1,
    }
    changed = next(one for one in lines.samples if one.change == "changed")
    assert (changed.input_before, changed.input_after) == (5, 4)
    assert "in other words" in changed.after


@pytest.mark.slow
def test_the_reply_of_a_model_is_the_cause_if_nothing_else_differs(root, source):
    with answering_server() as server:
        client = ModelClient(base_url=server.address, api_key="k")
        for marks in ({}, {"text 7": " (another answer)"}):
            server.marks = marks
            asking = data.llm.Generate(
                "small",
                prompt="{{ text }}",
                client=client,
                keep_replies=False,
                _keep_versions=1,
            )
            run(root, source, asked=asking)
        assert server.asked == 40

    found = diff(root / "docs/asked")

    assert _numbers(found) == (0, 0, 1)
    assert [(one.kind, str(one)) for one in found.causes] == [("reply", "the reply of the model")]
    (sample,) = found.results[""].samples
    assert (sample.input_before, sample.cause) == (8, "the reply of the model")


def test_a_changed_input_record_and_a_changed_option_have_their_own_counts(root, source):
    run(root, source, marked=mark(sign=".", _keep_versions=1))
    rows = numbered(20)
    rows[3]["text"] = "text three"
    write_records(source, rows)
    run(root, source, marked=mark(sign="?", _keep_versions=1))

    lines = diff(root / "docs/marked").results[""]

    option = 'option sign: "." became "?"'
    assert dict(lines.causes) == {option: 19, "its input record has changed": 1}


def test_drops_failures_and_splits_are_the_reasons_of_new_and_gone_lines(root, source):
    run(root, source, marked=mark(divisor=10, _keep_versions=1))
    run(root, source, marked=mark(divisor=0, _keep_versions=2))

    found = diff(root / "docs/marked", samples=9)

    # 3 and 13 were dropped, 4 and 14 failed, 5 and 15 became two lines and are marked now.
    assert _numbers(found) == (4, 2, 2)
    causes = {one.cause for one in found.results[""].samples}
    text = "option divisor: 10 became 0"
    assert causes == {
        text,
        f"{text}; before it is dropped: three",
        f"{text}; before it fails: ValueError: four in 4",
        f"{text}; before it fails: ValueError: four in 14",
    }

    run(root, source, marked=mark(divisor=10, _keep_versions=2))
    back = diff(root / "docs/marked", 2, "current")
    assert _numbers(back) == (2, 4, 2)
    assert _numbers(diff(root / "docs/marked", 1, "current")) == (0, 0, 0)


def test_records_are_followed_through_the_versions_of_the_node_before(root, source):
    """The option of the node before changes each record of the input and drops some."""
    run(root, source, marked=mark(sign="!", _keep_versions=1), big=upper(_keep_versions=1))
    run(
        root,
        source,
        marked=mark(sign="?", divisor=10, _keep_versions=1),
        big=upper(_keep_versions=1),
    )

    found = diff(root / "docs/big")

    assert [one.kind for one in found.causes] == ["input"]
    assert _numbers(found) == (2, 4, 16)
    lines = found.results[""]
    assert all("input record" in cause for cause in lines.causes)
    pairs = [one for one in lines.samples if one.change == "changed"]
    assert all(orjson.loads(one.before)["n"] == orjson.loads(one.after)["n"] for one in pairs)


@pytest.mark.parametrize("forms", [("jsonl", "jsonl.zst"), ("jsonl.zst", "jsonl")])
def test_versions_of_different_forms_are_compared_and_restored(root, source, forms):
    """Also through the node before, whose result has changed its form, and by content."""
    for form, sign in zip(forms, "!?", strict=True):
        with config.temporary(result_format=form):
            run(
                root,
                source,
                marked=mark(sign=sign, divisor=10, _keep_versions=2),
                big=upper(_keep_versions=2),
                turned=turned(times=1 + (sign == "?"), _keep_versions=2),
                split=routed(sign=sign, _keep_versions=2),
            )
    found = {name: diff(root / "docs" / name) for name in ("marked", "big", "turned", "split")}
    assert _numbers(found["marked"]) == (0, 0, 14)
    assert _numbers(found["big"]) == (0, 0, 14)
    assert not found["big"].results[""].by_content
    assert found["turned"].results[""].by_content
    kept = [one.results[""].path.name for one in versions(root / "docs/big")]
    assert kept == [f"big_results.{form}" for form in forms]
    texts = {name: _records(root, name) for name in ("marked", "split/odd")}

    for name in ("marked", "split"):
        restored = restore(root / "docs" / name, 1)
        assert [one.current for one in restored.readers] == [False] * len(restored.readers)
        assert [one.name for one in restored.readers] == {"marked": ["big"]}.get(name, [])
        assert restored.kept_as == "2"
    files = {one.name for one in root.glob("docs/[ms]*/*_results.jsonl*") if one.is_file()}
    assert files == {
        f"marked_results.{forms[0]}",
        "marked_results.jsonl.json",
        "split_results.jsonl.json",
    }
    restored_path = root / f"docs/marked/marked_results.{forms[0]}"
    assert diff(restored_path, 2).changed == 14
    assert restore(root / "docs/marked", 2).readers[0].current
    restore(root / "docs/split", 2)
    assert texts == {name: _records(root, name) for name in ("marked", "split/odd")}


def test_nothing_is_restored_beside_a_node_of_a_newer_version(root, source):
    """It may read the result; whether it does is not known."""
    for sign in "!?":
        run(root, source, marked=mark(sign=sign, _keep_versions=2), big=upper())
    records = _records(root, "marked")
    manifest = root / "docs/big/big_results.jsonl.json"
    manifest.write_bytes(manifest.read_bytes().replace(b'"6-little"', b'"7-little"'))
    with pytest.raises(NewerVersionError, match=f"{manifest} has format 7-little"):
        restore(root / "docs/marked", 1)
    assert (_records(root, "marked"), len(versions(root / "docs/marked"))) == (records, 2)


def test_a_change_of_the_form_alone_makes_no_version(root, source):
    operator = mark(divisor=10, _keep_versions=2)
    for form in ("jsonl", "jsonl.zst", "jsonl"):
        for resume in (True, False):
            with config.temporary(data_process_path=root, result_format=form):
                config.data_process_resume = resume
                with pipeline("docs") as ppl:
                    ppl.marked = operator
                ppl.materialize(source)
    assert [one.name for one in versions(root / "docs/marked")] == ["current"]


def test_a_hidden_option_is_named_and_not_shown(root, source):
    for password in ("first-secret", "second-secret"):
        run(root, source, marked=mark(password=password, sign=password[0], _keep_versions=1))

    found = diff(root / "docs/marked")

    assert {one.name for one in found.causes} == {"sign", "password"}
    shown = f"{found}{found.to_json()}"
    files = [path for path in (root / "docs/marked").rglob("*.json") if path.is_file()]
    assert len(files) == 2
    for text in (shown, *(path.read_text() for path in files)):
        assert "-secret" not in text


def test_a_result_that_is_made_as_a_whole_is_matched_by_content(root, source):
    run(root, source, turned=turned(_keep_versions=1))
    run(root, source, turned=turned(times=2, _keep_versions=1))

    found = diff(root / "docs/turned")

    assert _numbers(found) == (20, 0, 0)
    assert found.results[""].by_content == "a dataset operator takes all records at once"
    assert "option times: 1 became 2" in str(found)


def test_results_of_earlier_versions_of_the_package_tell_what_cannot_be_known(root, source):
    run(root, source, marked=mark(sign=".", _keep_versions=1))
    manifest = root / "docs/marked/marked_results.jsonl.json"
    content = orjson.loads(manifest.read_bytes())
    del content["identity_parts"], content["options"]
    content["made_from"]["code"] = "0" * 32
    manifest.write_bytes(orjson.dumps(content))
    run(root, source, marked=mark(sign="?", _keep_versions=1))

    found = diff(root / "docs/marked")

    assert _numbers(found) == (0, 0, 20)
    assert [one.kind for one in found.causes] == ["option", "code"]
    assert "cannot be known" in str(found.causes[1])


def test_a_chance_result_has_no_known_cause(root, source):
    run(root, source, counted=counting(_keep_versions=1))
    run(root, source, counted=counting(_keep_versions=1))

    (cause,) = diff(root / "docs/counted").causes

    assert cause.kind == "chance"


@data_register("data.history", outputs=("even", "odd"), **_SINGLE)
def routed(record: dict[str, Any], sign: str = "") -> Any:
    return To("odd" if record["n"] % 2 else "even", {**record, "text": record["text"] + sign})


def test_each_named_result_has_its_own_numbers(root, source):
    run(root, source, split=routed(_keep_versions=1))
    rows = numbered(20)
    rows[3]["text"] = "changed"
    write_records(source, rows)
    run(root, source, split=routed(_keep_versions=1))

    found = diff(root / "docs/split")

    numbers = {name: _numbers(one) for name, one in found.results.items()}
    assert numbers == {"even": (0, 0, 0), "odd": (0, 0, 1)}
    assert diff(root / "docs/split/odd").changed == 1


def test_the_command_line_shows_versions_and_differences(root, source, capsys):
    for sign in "!?.":
        run(root, source, marked=mark(sign=sign, _keep_versions=2))

    assert main(["versions", "docs/marked", "--root", str(root)]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        "1",
        "2",
        "current",
    ]
    assert main(["diff", "docs/marked", "1", "2", "--root", str(root), "--json"]) == 0
    found = orjson.loads(capsys.readouterr().out)
    assert (found["changed"], found["causes"][0]["name"]) == (20, "sign")
    assert main(["diff", str(root / "docs/marked"), "--samples", "1"]) == 0
    assert 'option sign: "?" became "."' in capsys.readouterr().out
    assert main(["diff", str(root / "docs/marked"), "7"]) == 1
    assert "there is no version '7'; its versions: 1, 2, and current" in capsys.readouterr().err


def test_without_an_earlier_version_the_error_names_the_setting(root, source):
    run(root, source, marked=mark())
    with pytest.raises(VersionMissingError, match="_keep_versions=1"):
        diff(root / "docs/marked")
    assert not (root / "docs/marked/.history").exists()


def test_the_option_of_a_part_of_a_chain_is_named(root, source):
    for letter in ".?":
        parts = chain(mark(sign=letter), upper(), _keep_versions=1)
        run(root, source, chained_up=parts)

    found = diff(root / "docs/chained_up")

    assert [one.name for one in found.causes] == ["mark.sign"]
    assert str(found.causes[0]) == 'option mark.sign: "." became "?"'


def test_another_file_of_an_option_is_the_cause(root, source, tmp_path):
    words = tmp_path / "words.txt"
    for text in ("one", "two"):
        words.write_text(text)
        run(root, source, told=told(words=words, _keep_versions=1))

    found = diff(root / "docs/told")

    assert _numbers(found) == (0, 0, 20)
    assert [str(one) for one in found.causes] == ["the content of the file of option words"]


def test_a_function_that_is_an_option_is_named(root, source):
    for function in (str.upper, str.title):
        run(root, source, applied=applied(function=function, _keep_versions=1))

    found = diff(root / "docs/applied")

    assert [str(one) for one in found.causes] == [
        'option function: "builtins.str.upper" became "builtins.str.title"'
    ]


def test_failed_records_that_are_retried_are_new(root, source, tmp_path):
    flag = tmp_path / "flag"
    run(root, source, tried=tried(flag=str(flag), _keep_versions=1))
    flag.touch()
    with config.temporary(data_process_path=root, data_process_resume="failed_records"):
        with pipeline("docs") as ppl:
            ppl.tried = tried(flag=str(flag), _keep_versions=1)
        ppl.materialize(source)

    found = diff(root / "docs/tried")

    assert _numbers(found) == (1, 0, 0)
    (sample,) = found.results[""].samples
    assert sample.cause.endswith("before it fails: ValueError: not yet")


def test_inputs_in_another_order_have_moved(root, source):
    run(root, source, marked=mark(_keep_versions=1))
    write_records(source, numbered(20)[::-1])
    run(root, source, marked=mark(_keep_versions=1))

    found = diff(root / "docs/marked")

    assert _numbers(found) == (0, 0, 0)
    lines = found.results[""]
    assert lines.same + lines.moved == 20


def test_a_changed_record_beside_a_new_one_is_not_taken_for_it(root, source):
    run(root, source, marked=mark(_keep_versions=1))
    rows = numbered(20)
    rows[7]["text"] = "text 7 in a longer form"
    rows.insert(7, {"n": 900, "text": "nothing of that"})
    write_records(source, rows)
    run(root, source, marked=mark(_keep_versions=1))

    samples = {one.change: one for one in diff(root / "docs/marked").results[""].samples}

    assert orjson.loads(samples["new"].after)["n"] == 900
    assert orjson.loads(samples["changed"].after)["n"] == 7


def test_without_digests_of_the_input_lines_are_matched_by_content(root, source):
    run(root, source, marked=mark())
    write_records(source, numbered(21))
    run(root, source, marked=mark(_keep_versions=1))

    found = diff(root / "docs/marked")

    assert _numbers(found) == (1, 0, 0)
    assert "digests of its records were not written" in found.results[""].by_content


def test_an_empty_result_is_compared(root, source):
    run(root, source, marked=mark(_keep_versions=1))
    write_records(source, [])
    run(root, source, marked=mark(_keep_versions=1))
    assert _numbers(diff(root / "docs/marked")) == (0, 20, 0)


def test_a_result_that_was_edited_is_not_compared(root, source):
    for sign in ".?":
        run(root, source, marked=mark(sign=sign, _keep_versions=1))
    path = root / "docs/marked/marked_results.jsonl"
    path.write_bytes(path.read_bytes().replace(b"text 3", b"text 33"))
    with pytest.raises(TraceOutdatedError, match="it was edited or deleted"):
        diff(root / "docs/marked")


def test_a_partition_has_versions_of_its_own(root, source):
    folders = [NodeFolder(root / "docs/marked/partitions" / day, "marked") for day in ("1", "2")]
    for folder in folders:
        for sign in ".?":
            operator = mark(sign=sign, _keep_versions=1)
            dataset = JsonlDataset.of_file(source)
            OperatorExecutor(RunContext(run=sign)).run(operator, [dataset], folder)

    restore(folders[0].path, 1)

    assert [diff(one.path, 1, "current").changed for one in folders] == [0, 20]


def test_the_restoration_of_a_partition_names_the_partition_that_reads_it(root, source):
    days = ("1", "2")
    for sign in ".?":
        for day in days:
            read = [JsonlDataset.of_file(source)]
            for name in ("marked", "again"):
                folder = NodeFolder(root / "docs" / name / "partitions" / day, name)
                operator = mark(sign=sign, _keep_versions=1)
                read = [OperatorExecutor(RunContext(run=sign)).run(operator, read, folder).dataset]

    restored = restore(root / "docs/marked/partitions/1", 1)

    assert [(each.name, each.current) for each in restored.readers] == [("again, 1", False)]
    assert restored.searched == str(root / "docs")
    assert f"no node below {root / 'docs'} reads it" in str(
        restore(root / "docs/again/partitions/2", 1)
    )
