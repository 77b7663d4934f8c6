"""Tests of pipelines in plain Python, and of the states of their nodes."""

import contextlib
import copy
import dataclasses
import json
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from dagster_dataops import JsonlDataset, config, data, data_register, pipeline
from dagster_dataops.errors import (
    FolderLockedError,
    InputError,
    OutageError,
    RecordError,
    RetryRefusedError,
)
from dagster_dataops.pipelines import local_run
from dagster_dataops.pipelines.node_state import node_states
from tests.faults.crashing import wait_until
from tests.nodes import NodeFolder, Root, deleting

GROUP = "calls_from_python"
MODES = ["single", "thread", "process"]


@data_register(f"data.{GROUP}")
def answer(data: dict, returned="None", change=True):
    """Change the record on request, and return the value that ``returned`` names."""
    if change:
        data["changed"] = True
    return eval(returned, {"data": data})  # noqa: S307 - the test's own text


@data_register(f"data.{GROUP}", _concurrency_mode="single")
def suffix(data: dict, mark="!"):
    data["text"] += mark
    return data


@data_register(f"data.{GROUP}", _concurrency_mode="thread")
def slow(data: dict, seconds=0.0):
    time.sleep(seconds)
    return data


@data_register(f"data.{GROUP}", rewrite_func="forward_batch_input")
def spoil(data: list[dict]):
    for record in data:
        record["list"].append("spoiled")
    data.pop()
    return data


def errors_of(root: Path, name: str) -> list[dict]:
    path = root / name / f"{name}_error.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def below(folder: Path) -> set[str]:
    assert deleting.finish(60)
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


CONTRACT = {
    "None": [{"n": 1, "changed": True}],
    "data": [{"n": 1, "changed": True}],
    "{'new': 1}": [{"new": 1}],
    "{}": [{}],
    "[]": [],
    "[data, {'n': 2}]": [{"n": 1, "changed": True}, {"n": 2}],
    "[data, data]": [{"n": 1, "changed": True}] * 2,
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("returned", "expected"), CONTRACT.items(), ids=CONTRACT)
def test_the_return_value_of_forward_determines_the_result_lines(root, mode, returned, expected):
    operator = answer(returned=returned, _concurrency_mode=mode, _max_workers=2)

    assert operator([{"n": 1}]) == expected
    assert errors_of(root, "answer") == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "returned",
    ["'text'", "1", "True", "({},)", "{1}", "[data, None]", "[[data]]", "['a']", "iter([])"],
)
def test_other_return_values_fail_only_that_record(root, mode, returned):
    returned = f"{returned} if data['n'] == 2 else data"
    operator = answer(returned=returned, change=False, _concurrency_mode=mode, _max_workers=2)

    assert operator([{"n": 1}, {"n": 2}, {"n": 3}]) == [{"n": 1}, {"n": 3}]
    [error] = errors_of(root, "answer")
    assert (error["index"], error["input"], error["exception"]) == (1, {"n": 2}, "InvalidResult")


def test_no_deletion_continues_after_a_call(root, monkeypatch):
    removed = threading.Event()
    rmtree = shutil.rmtree

    def slowly(*given, **named):
        removed.wait(0.2)
        rmtree(*given, **named)

    monkeypatch.setattr(shutil, "rmtree", slowly)
    assert suffix()([{"text": "a"}]) == [{"text": "a!"}]
    assert not list(root.rglob(".removed"))


@pytest.mark.parametrize("mode", MODES)
def test_an_error_row_holds_position_input_exception_and_traceback(root, mode):
    operator = answer(
        returned="data['missing']", change=True, _concurrency_mode=mode, _stop_after_failures=0
    )

    assert operator([{"n": 1}]) == []
    [error] = errors_of(root, "answer")
    assert error["index"] == 0
    assert error["input"] == {"n": 1}
    assert error["exception"] == "KeyError"
    assert "missing" in error["message"]
    assert "in answer" in error["traceback"]


@pytest.mark.parametrize("mode", MODES)
def test_the_first_error_fails_the_call_where_errors_are_not_ignored(mode):
    operator = answer(returned="1 / 0", _concurrency_mode=mode, _ignore_errors=False)

    with pytest.raises(RecordError) as caught:
        operator([{"n": 1}])

    assert caught.value.operator == f"{GROUP}.answer"
    assert (caught.value.index, caught.value.exception) == (0, "ZeroDivisionError")


def test_a_record_with_the_key_infer_error_is_a_record_like_any_other(root):
    records = [{"infer_error": "from elsewhere"}]

    assert answer(change=False, _concurrency_mode="single")(records) == records
    assert answer(returned="[data]", change=False, _concurrency_mode="single")(records) == records
    assert errors_of(root, "answer") == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("save", [True, False])
def test_the_data_of_the_caller_is_never_changed(mode, save):
    records = [{"text": "a", "list": [1]}, {"text": "b", "list": [{"deep": 2}]}]
    before = copy.deepcopy(records)

    result = answer(_concurrency_mode=mode, _save_data=save)(records)
    result[0]["list"].append("later")

    assert records == before


def test_a_dataset_operator_does_not_change_the_data_of_the_caller():
    records = [{"list": [1]}, {"list": [2]}]
    before = copy.deepcopy(records)

    assert spoil()(records) == [{"list": [1, "spoiled"]}]
    assert records == before


@pytest.mark.parametrize("mode", MODES)
def test_results_are_in_the_order_of_the_input(mode):
    records = [{"n": number} for number in range(200)]

    operator = answer(returned="data", change=False, _concurrency_mode=mode, _max_workers=4)
    assert operator(records) == records


def test_without_saving_nothing_is_written_below_the_root_and_the_result_is_the_same(root):
    records = [{"text": "a"}, {"text": "b"}]

    unsaved = suffix(_save_data=False)(records)

    assert not root.exists()
    assert unsaved == suffix()(records)


def test_without_saving_a_failure_that_is_not_ignored_leaves_nothing_either(root):
    operator = answer(returned="1/0", _save_data=False, _ignore_errors=False)

    with pytest.raises(RecordError):
        operator([{"n": 1}])
    assert not root.exists()


def test_a_call_stores_under_the_name_of_the_operator_and_replaces_the_last(root):
    operator = suffix()
    operator([{"no text": 1}, {"text": "a"}, {"text": "b"}])
    assert len(errors_of(root, "suffix")) == 1

    assert operator([{"text": "a"}]) == [{"text": "a!"}]

    folder = root / "suffix"
    assert (folder / "suffix_results.jsonl").read_text() == '{"text":"a!"}\n'
    manifest = json.loads((folder / "suffix_results.jsonl.json").read_text())
    assert (manifest["done"], manifest["rows_in"], manifest["rows_out"]) == (True, 1, 1)
    assert (manifest["dropped"], manifest["failed"]) == (0, 0)
    assert errors_of(root, "suffix") == []


def test_only_result_manifest_and_lock_stay(root):
    answer(_concurrency_mode="process")([{"n": 1}, {"n": 2}])

    assert below(root) == {
        "answer",
        "answer/.lock",
        "answer/answer_results.jsonl",
        "answer/answer_results.jsonl.json",
    }


def test_a_dict_a_tuple_a_generator_or_nothing_are_records(root):
    assert suffix()({"text": "a"}) == suffix()(({"text": "a"},)) == [{"text": "a!"}]
    assert suffix()({"text": text} for text in "ab") == [{"text": "a!"}, {"text": "b!"}]
    assert suffix()([]) == []
    assert (root / "suffix" / "suffix_results.jsonl").read_text() == ""


@pytest.mark.parametrize("make", [str, Path, JsonlDataset.of_file], ids=["str", "Path", "dataset"])
def test_a_file_is_read_in_place_and_not_changed(tmp_path, make):
    path = tmp_path / "in.jsonl"
    path.write_text('{"text":"a"}\r\n\n{"text":"b"}')

    assert suffix()(make(path)) == [{"text": "a!"}, {"text": "b!"}]
    assert path.read_bytes() == b'{"text":"a"}\r\n\n{"text":"b"}'


NOT_RECORDS = [*(3, None, b"bytes", 1.5, object()), [1], ["a"], [{"text": "a"}, None], [[{}]]]


@pytest.mark.parametrize("data", NOT_RECORDS)
def test_an_input_without_records_is_an_input_error(data):
    said = "not a dict" if isinstance(data, list) else "give a list of dicts, one dict"
    with pytest.raises(InputError, match=said):
        suffix()(data)


def test_records_that_json_cannot_hold_are_an_input_error_that_names_the_place(root):
    suffix()([{"text": "before"}])

    with pytest.raises(InputError, match="record 1: key 'tags' holds a set"):
        suffix()([{"text": "a"}, {"text": "b", "tags": {1}}])
    assert (root / "suffix" / "suffix_results.jsonl").read_text() == '{"text":"before!"}\n'


@pytest.mark.parametrize(
    ("output", "file"),
    [("out", "out/suffix.jsonl"), ("deep/own.jsonl", "deep/own.jsonl"), ("~/a.jsonl", "a.jsonl")],
)
@pytest.mark.parametrize("save", [True, False])
@pytest.mark.parametrize("texts", ["a", ""])
def test_an_output_is_a_folder_or_a_file(tmp_path, root, monkeypatch, output, file, save, texts):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))

    operator = suffix(_save_data=save).set_output(output)

    assert operator([{"text": text} for text in texts]) == str(tmp_path / file)
    assert Path(file).read_text() == "".join(f'{{"text":"{text}!"}}\n' for text in texts)
    assert [path.name for path in Path(file).parent.iterdir() if path.is_file()] == [
        Path(file).name
    ]
    assert root.exists() is save


def test_the_root_is_read_when_called_not_when_constructed(tmp_path):
    operator = suffix()

    with config.temporary(data_process_path=tmp_path / "later"):
        operator([{"text": "a"}])

    assert (tmp_path / "later" / "suffix" / "suffix_results.jsonl").is_file()


def test_a_result_is_used_again_where_resume_is_on_unless_options_or_records_differ(root):
    result = root / "suffix" / "suffix_results.jsonl"
    with config.temporary(data_process_resume=True):
        suffix()([{"text": "a"}])
        before = result.stat().st_mtime_ns

        assert suffix()([{"text": "a"}]) == [{"text": "a!"}]
        assert result.stat().st_mtime_ns == before
        assert suffix(mark="?")([{"text": "a"}]) == [{"text": "a?"}]
        assert suffix(mark="?")([{"text": "b"}]) == [{"text": "b?"}]


@data_register(f"data.{GROUP}", _concurrency_mode="single")
def flaky(data: dict, switch="", mark=""):
    with Path(switch, "calls").open("a") as calls:
        calls.write(f"{mark}{data['n']} ")
    if Path(switch, f"fail-{mark}{data['n']}").exists():
        raise ConnectionError
    return {"n": data["n"], "marks": data.get("marks", "") + mark}


@data_register(f"data.{GROUP}", rewrite_func="forward_batch_input")
def backwards(data: list[dict]):
    return data[::-1]


@pytest.fixture
def switch(tmp_path):
    """A folder: fail-<mark><n> makes records fail; the returned function takes the calls."""
    folder = tmp_path / "switch"
    folder.mkdir()

    def calls() -> list[str]:
        made = (folder / "calls").read_text().split() if (folder / "calls").exists() else []
        (folder / "calls").write_text("")
        return made

    return folder, calls


def test_the_resume_setting_retries_only_failed_records(switch):
    folder, calls = switch
    (folder / "fail-1").touch()
    records = [{"n": n} for n in range(3)]
    operator = flaky(switch=str(folder))
    assert [record["n"] for record in operator(records)] == [0, 2]
    assert calls() == ["0", "1", "2"]

    (folder / "fail-1").unlink()
    with config.temporary(data_process_resume="failed_records"):
        assert [record["n"] for record in operator(records)] == [0, 1, 2]
        assert calls() == ["1"]
        assert [record["n"] for record in operator(records)] == [0, 1, 2]
        with pytest.raises(RetryRefusedError, match="the input is not that of run python-"):
            operator(records[:2])
    assert calls() == []


def test_a_pipeline_retries_failed_records_and_reruns_later_nodes(switch, root):
    folder, calls = switch
    with pipeline("docs") as ppl:
        ppl.first = flaky(switch=str(folder), mark="a")
        ppl.turned = backwards()
        ppl.last = flaky(switch=str(folder), mark="b")
    for name in ("fail-a1", "fail-b0"):
        (folder / name).touch()
    records = [{"n": n} for n in range(3)]
    assert ppl(records) == [{"n": 2, "marks": "ab"}]
    calls()

    with config.temporary(data_process_resume="failed_records"):
        (folder / "fail-b0").unlink()
        reports = ppl.materialize(records)  # the first fails again: nothing after it has changed
        assert calls() == ["a1", "b0"]
        assert [reports[name].reused for name in ppl.graph.nodes] == [False, True, False]
        assert [record["n"] for record in reports["last"].dataset] == [2, 0]

        (folder / "fail-a1").unlink()
        assert [record["n"] for record in ppl(records)] == [2, 1, 0]
        assert calls() == ["a1", "b2", "b1", "b0"]
        ppl(records)
        assert calls() == []


def test_a_pipeline_retries_beyond_a_dataset_node(switch, tmp_path):
    folder, calls = switch
    source = tmp_path / "source.jsonl"
    source.write_text('{"n":0}\nno record\n{"n":1}\n')
    with pipeline("docs") as ppl:
        ppl.turned = backwards()
        ppl.flaky = flaky(switch=str(folder))
    (folder / "fail-1").touch()
    ppl(source)
    (folder / "fail-1").unlink()
    calls()

    with config.temporary(data_process_resume="failed_records"):
        assert [record["n"] for record in ppl(source)] == [1, 0]
        assert calls() == ["1"]
        backwards()([{"n": 1}])
    source.write_text('no record\n{"n":1}\n')
    backwards()(source)
    with (
        config.temporary(data_process_resume="failed_records"),
        pytest.raises(RetryRefusedError, match="a dataset operator takes all records at once"),
    ):
        backwards()(source)


def start(
    root: Path, results: list[object], seconds: float, records: list[dict]
) -> threading.Thread:
    def run() -> None:
        with contextlib.suppress(InputError):  # the other run may be faster than our reading
            results.append(slow(seconds=seconds)(records))

    thread = threading.Thread(target=run)
    thread.start()
    checkpoints = NodeFolder(root / "slow", "slow").checkpoints
    wait_until(lambda: checkpoints.exists() and any(checkpoints.iterdir()), 30, "its checkpoint")
    return thread


def test_a_second_run_in_the_same_folder_waits_for_the_first(root, tmp_path):
    results: list[object] = []
    first = start(root, results, 0.6, [{"n": 1}, {"n": 2}])

    assert slow().set_output(tmp_path)([{"n": 3}]) == str(tmp_path / "slow.jsonl")
    first.join()
    assert (tmp_path / "slow.jsonl").read_text() == '{"n":3}\n'


@pytest.mark.slow
def test_a_second_run_that_waited_too_long_is_refused_and_the_first_finishes(root, monkeypatch):
    impatient = dataclasses.replace(local_run.plain_context(), lock_seconds=0.2)
    results: list[object] = []
    first = start(root, results, 1, [{"n": 1}])
    monkeypatch.setattr(local_run, "plain_context", lambda: impatient)

    with pytest.raises(FolderLockedError, match="is in use by run python-"):
        slow()([{"n": 2}])
    first.join()
    assert results == [[{"n": 1}]]
    assert (root / "slow" / "slow_results.jsonl").read_text() == '{"n":1}\n'


def test_a_result_that_another_run_replaced_before_it_was_read_is_refused(monkeypatch):
    real = JsonlDataset.read

    def replaced(dataset: JsonlDataset) -> list[dict]:
        monkeypatch.setattr(JsonlDataset, "read", real)
        slow()([{"n": 2}])
        return real(dataset)

    monkeypatch.setattr(JsonlDataset, "read", replaced)

    with pytest.raises(InputError, match="another run replaced it before it was read"):
        slow()([{"n": 1}])


def test_failed_records_are_one_warning_with_the_first_of_them_and_the_error_file(root, caplog):
    with pipeline("docs") as ppl:
        ppl.first = suffix()
        ppl.second = suffix()

    assert ppl([{"text": "a"}, {"none": 1}, {"none": 2}]) == [{"text": "a!!"}]

    (warning,) = [record for record in caplog.records if record.levelname == "WARNING"]
    text = warning.getMessage()
    assert warning.name == "dagster_dataops"
    assert f"{GROUP}.suffix: 2 of 3 records failed. The first, record 1 (" in text
    assert "line 2): KeyError: 'text'." in text
    assert str(root / "docs" / "first" / "first_error.jsonl") in text


@pytest.mark.parametrize("content", [b"", b"null\n", b"{\n", b"\xff\n", b'{"message": 3}\n'])
def test_an_error_file_that_was_edited_is_still_named(root, caplog, content):
    with pipeline("docs") as ppl:
        ppl.only = suffix()
    config.data_process_resume = True
    ppl([{"text": "a"}, {"none": 1}])
    errors = root / "docs" / "only" / "only_error.jsonl"
    errors.write_bytes(content)
    caplog.clear()
    assert ppl([{"text": "a"}, {"none": 1}]) == [{"text": "a!"}]
    assert "1 of 2 records failed. The first, record unknown" in caplog.text
    assert str(errors) in caplog.text


def test_a_warning_has_one_full_stop_and_says_that_the_error_file_is_not_kept(caplog):
    def refuse(record: dict):
        if "none" in record:
            raise ValueError("I cannot help with that.")
        return record

    refusing = data_register(f"data.{GROUP}", _concurrency_mode="single")(refuse)
    refusing()([{"text": "a"}, {"none": 1}])
    assert "ValueError: I cannot help with that. All are in " in caplog.text

    refusing(_save_data=False)([{"text": "a"}, {"none": 1}])
    assert "not kept, since _save_data is False" in caplog.text


def test_a_plain_script_shows_the_warning_without_any_logging_set_up(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from dagster_dataops import data_register\n"
        "@data_register('data.demo', _concurrency_mode='single')\n"
        "def shout(data): data['text'] = data['text'].upper()\n"
        "print(shout()([{'text': 'a'}, {'none': 1}]))\n"
    )
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert done.stdout == "[{'text': 'A'}]\n"
    assert done.stderr.count("1 of 2 records failed") == 1


def test_a_call_in_which_every_record_fails_raises_instead_of_returning_nothing():
    with pytest.raises(OutageError, match=r"all records failed \(5\)"):
        suffix()([{"nope": 1}] * 5)


def test_a_file_that_is_not_json_lines_is_refused_before_a_run(root, tmp_path):
    path = tmp_path / "docs.csv"
    path.write_text("id,text\n1,a\n")

    with pytest.raises(InputError, match="looks like CSV.* read_delimited"):
        suffix()(path)

    assert not (root / "suffix").exists()


ROWS = [{"n": number} for number in range(5)]


@data_register("data.node_state_tests", _concurrency_mode="single", _ignore_errors=False)
def keep(record: dict, stop_at: int = -1) -> dict:
    if record["n"] == stop_at:
        raise ValueError(record["n"])
    return record


@data_register("data.node_state_tests", _concurrency_mode="single")
def no_threes(record: dict) -> dict:
    if record["n"] == 3:
        raise ValueError(3)
    return record


@pytest.fixture
def docs_root(tmp_path):
    with config.temporary(data_process_path=tmp_path, data_process_resume=True):
        yield tmp_path / "docs"


def test_a_node_is_not_run_done_or_unfinished(docs_root):
    with pipeline("docs") as ppl:
        ppl.first = data.node_state_tests.no_threes()
        ppl.second = data.node_state_tests.keep(stop_at=2)
        ppl.third = data.node_state_tests.keep()
        ppl.fourth = data.node_state_tests.keep(_save_data=False)
    assert set(node_states(ppl.graph, Root(docs_root)).values()) == {"not run", "not saved"}

    with pytest.raises(RecordError):
        ppl(ROWS)

    assert node_states(ppl.graph, Root(docs_root)) == {
        "first": "done, 4 rows, 1 failed",
        "second": "unfinished, 2 of 4 records",
        "third": "not run",
        "fourth": "not saved",
    }


def test_an_unreadable_folder_is_reported(docs_root):
    with pipeline("docs") as ppl:
        ppl.first = data.node_state_tests.keep()
    ppl(ROWS)
    (docs_root / "first" / "checkpoints" / "1" / "journal").mkdir(parents=True)

    assert node_states(ppl.graph, Root(docs_root))["first"].startswith("unreadable: ")
