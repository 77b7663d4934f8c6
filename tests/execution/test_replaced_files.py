"""Tests of files that are replaced between two runs, or during one."""

import pytest

from dagster_dataops import config, data_register, pipeline
from dagster_dataops.files import FileChangedError, FileReference

CALLED: list[int] = []
DO: dict[int, object] = {}
IN_PROCESS = ["single", "thread", "async"]


def read(record):
    number = record["n"]
    CALLED.append(number)
    record["text"] = FileReference.of(record["file"]).read().decode()
    action = DO.pop(number, None)
    if action is not None:
        action()
    return record


@data_register("data.replaced_files", _max_workers=1)
def text_of(record: dict):
    return read(record)


@data_register("data.replaced_files", _max_workers=1)
async def text_of_async(record: dict):
    return read(record)


@data_register("data.replaced_files", rewrite_func="forward_batch_input")
def texts_of(records: list):
    CALLED.append(0)
    return [{"text": FileReference.of(row["file"]).read().decode()} for row in records]


@pytest.fixture(autouse=True)
def folder(tmp_path):
    CALLED.clear()
    DO.clear()
    for number in range(10):
        (tmp_path / f"{number}.txt").write_text(f"first {number}")
    with config.temporary(data_process_path=tmp_path / "root", data_process_resume=True):
        yield tmp_path


def run(folder, mode, *, known=False, **settings):
    """Return texts, and the records that were processed."""
    rows = [{"n": n, "file": f"{folder}/{n}.txt"} for n in range(10)]
    if known:
        rows = [{**r, "file": FileReference.of(r["file"]).with_facts().to_json()} for r in rows]
    CALLED.clear()
    with pipeline("p") as ppl:
        operator = text_of_async if mode == "async" else text_of
        ppl.node = texts_of() if mode == "all" else operator(_concurrency_mode=mode, **settings)
    return [row["text"] for row in ppl(rows)], sorted(CALLED)


@pytest.mark.parametrize("mode", [*IN_PROCESS, "process", "all"])
def test_a_file_that_was_replaced_between_two_runs_is_read_anew(folder, mode):
    assert run(folder, mode)[0][3] == "first 3"
    (folder / "3.txt").write_text("other 3")
    assert run(folder, mode)[0][3] == "other 3"


@pytest.mark.parametrize("mode", [*IN_PROCESS, "all"])
def test_a_result_is_used_again_if_records_identify_their_files(folder, mode):
    run(folder, mode, known=True)
    assert run(folder, mode, known=True)[1] == []
    (folder / "3.txt").write_text("other 3!")
    texts, called = run(folder, mode, known=True)
    assert texts[3] == "other 3!"
    assert called


def test_only_the_outcome_of_a_record_with_a_replaced_file_is_made_again(folder):
    run(folder, "single", known=True, _reuse_outcomes=True)
    (folder / "3.txt").write_text("other 3!")
    texts, called = run(folder, "single", known=True, _reuse_outcomes=True)
    assert (texts[3], called) == ("other 3!", [3])


def test_outcomes_of_files_that_no_record_identifies_are_not_used_again(folder):
    run(folder, "single", _reuse_outcomes=True)
    (folder / "3.txt").write_text("other 3!")
    texts, called = run(folder, "single", _reuse_outcomes=True)
    assert (texts[3], called) == ("other 3!", list(range(10)))


@pytest.mark.parametrize("mode", IN_PROCESS)
def test_a_file_that_is_replaced_during_a_run_is_its_error_and_is_read_anew_then(folder, mode):
    DO[6] = lambda: (folder / "2.txt").write_text("other 2")
    with pytest.raises(FileChangedError, match=r"2\.txt: was replaced since it was read"):
        run(folder, mode)
    texts, called = run(folder, mode)
    assert texts[2] == "other 2"
    assert called == list(range(10))


def test_a_file_that_is_replaced_before_a_run_goes_on_is_read_anew(folder):
    def stop():
        raise KeyboardInterrupt

    DO[6] = stop
    with pytest.raises(KeyboardInterrupt):
        run(folder, "single")
    texts, called = run(folder, "single")
    assert called == [6, 7, 8, 9]  # nothing was replaced
    assert texts[2] == "first 2"

    (folder / "in.txt").write_text("x")
    DO[6] = stop
    with pytest.raises(KeyboardInterrupt):
        run(folder, "single")
    (folder / "2.txt").write_text("other 2")
    texts, called = run(folder, "single")
    assert called == list(range(10))
    assert texts[2] == "other 2"


def test_a_kill_between_does_not_bring_back_what_was_made_of_the_old_file(folder):
    def stop():
        raise KeyboardInterrupt

    DO[7] = stop
    with pytest.raises(KeyboardInterrupt):
        run(folder, "single")
    (folder / "5.txt").write_text("other 5")
    DO[3] = stop
    with pytest.raises(KeyboardInterrupt):
        run(folder, "single")
    texts, called = run(folder, "single")
    assert texts[5] == "other 5"
    assert called == list(range(3, 10))


def test_a_retry_of_failed_records_keeps_the_others(folder):
    (folder / "4.txt").unlink()
    assert len(run(folder, "single")[0]) == 9
    (folder / "4.txt").write_text("again 4")
    with config.temporary(data_process_resume="failed_records"):
        texts, called = run(folder, "single")
    assert (texts[4], called) == ("again 4", [4])


def test_a_record_whose_file_is_another_one_than_it_names_fails(folder):
    rows = [{"n": n, "file": FileReference(f"{folder}/{n}.txt").with_facts()} for n in range(3)]
    (folder / "1.txt").write_text("another text")
    with pipeline("p") as ppl:
        ppl.node = text_of(_concurrency_mode="single")
    found = ppl([{**row, "file": row["file"].to_json()} for row in rows])
    assert [row["n"] for row in found] == [0, 2]
    assert "FileChangedError" in next((folder / "root/p/node").glob("*_error.jsonl")).read_text()
