"""Tests of dagster_dataops.library.review: people decide about records."""

import csv
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from dagster_dataops import chain, config, data
from dagster_dataops.errors import (
    AbsentColumnError,
    DefinitionError,
    NewerVersionError,
    OperatorOpenError,
    RunStoppedError,
    RunWaitingError,
)
from tests.each import each
from tests.library.review.reviewers import (
    Row,
    decide,
    faults_in,
    files_of_state,
    lines_of,
    questions,
    table_of,
    text_of_table,
)

RECORDS = [{"n": number, "text": f"text {number}"} for number in range(4)]
KEEP = {"decision": "keep"}


@pytest.fixture
def folder(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the review of a node, in runs that resume."""
    monkeypatch.setattr(config, "data_process_resume", True)
    return root / "Ask" / "review"


def asks(operator: Any, records: Any = RECORDS) -> str:
    with pytest.raises(RunWaitingError) as caught:
        operator(records)
    return str(caught.value)


def refusal(operator: Any) -> str:
    with pytest.raises(RunStoppedError) as caught:
        operator(RECORDS)
    assert not isinstance(caught.value, RunWaitingError)
    return str(caught.value)


def test_a_run_asks_waits_and_goes_on_with_the_decisions_in_the_order_of_the_records(folder: Path):
    operator = data.review.Ask("text", ["keep", "drop", "unsure"], edit="text")
    message = asks(operator)
    (file,) = questions(folder)
    assert f"undecided questions: 4 of 4; decide in {file}" in message
    assert [row["fields"] for row in lines_of(folder)] == [{"text": one["text"]} for one in RECORDS]

    decided = {
        "text 3": {"decision": "keep", "edited": {"text": "better"}, "reviewer": "ann"},
        "text 1": {"decision": "drop"},
        "text 0": {"decision": "unsure"},
    }
    decide(folder, lambda shown: decided.get(shown["text"], {}))
    assert "undecided questions: 1 of 4" in asks(operator)
    decide(folder, lambda shown: KEEP if shown["text"] == "text 2" else {}, "more.jsonl")

    result = operator(RECORDS)
    assert list(result) == [
        {"n": 0, "text": "text 0", "review": "unsure"},
        {"n": 2, "text": "text 2", "review": "keep"},
        {"n": 3, "text": "better", "review": "keep"},
    ]
    assert questions(folder) == [file]
    manifest = orjson.loads((folder.parent / "Ask_results.jsonl.json").read_bytes())
    assert manifest["drops"] == {"review": 1}
    assert manifest["counts"] == {"review/drop": 1, "review/keep": 2, "review/unsure": 1}


def test_only_what_a_person_sees_makes_another_question(folder: Path) -> None:
    asks(data.review.Ask("text"))
    decide(folder, lambda _: KEEP)
    same: list[Any] = [
        ({}, RECORDS[::-1]),
        ({}, [{**one, "added": 1} for one in RECORDS + RECORDS]),
        ({"output_key": "other"}, RECORDS),
        ({"format": "csv"}, RECORDS),
        ({"when": ["n", "<", 2]}, RECORDS),
        ({"when": 0.5, "seed": 3}, RECORDS),
    ]
    for options, records in same:
        assert len(list(data.review.Ask("text", **options)(records))) == len(records)
    assert len(questions(folder)) == 1
    others: list[Any] = [
        {"fields": ["text", "n"]},
        {"choices": ["keep", "good"]},
        {"instructions": "Is it good?"},
        {"edit": "text"},
    ]
    for number, options in enumerate(others, 2):
        assert "4 of 4" in asks(data.review.Ask(**{"fields": "text", **options}))
        assert len(questions(folder)) == number
    assert len(list(data.review.Ask("text")(RECORDS))) == 4


def test_records_without_a_question_fail_and_the_others_go_on(folder: Path) -> None:
    records: list[Any] = [{"n": 1, "text": "a"}, {"n": "x", "text": "b"}, {"n": 9, "text": "c"}]
    operator = data.review.Ask("text", when=["n", "<", 5])
    assert "undecided questions: 1 of 1" in asks(operator, records)
    decide(folder, lambda _: KEEP)
    assert [row["n"] for row in operator(records)] == [1, 9]


def test_equal_records_are_asked_about_once_and_new_ones_in_a_further_file(folder: Path) -> None:
    operator = data.review.Ask("text")
    asks(operator, [{"text": "a"}, {"text": "a"}])
    assert len(lines_of(folder)) == 1
    asks(operator, [{"text": "b"}, {"text": "a"}])
    assert [row["fields"]["text"] for row in lines_of(folder)] == ["a", "b"]
    decide(folder, lambda shown: {"decision": "keep" if shown["text"] == "a" else "drop"})
    assert [row["text"] for row in operator([{"text": one} for one in "abab"])] == ["a", "a"]


@each(
    "case",
    [
        (["n", ">=", 2], 2),
        ([["n", ">=", 1], ["text", "!=", "text 2"]], 2),
        (["text", "matches", "[01]$"], 2),
        (["missing", "exists", False], 4),
        (1, 4),
        (0.0, 0),
    ],
)
def test_records_are_chosen_by_conditions_and_others_pass(case, tmp_path: Path) -> None:
    when, number = case
    with config.temporary(data_process_path=tmp_path / str(number) / str(len(str(when)))):
        operator = data.review.Ask("text", when=when)
        if number:
            assert f"of {number};" in asks(operator)
        else:
            assert [row["review"] for row in operator(RECORDS)] == [None] * 4


def test_a_share_chooses_the_same_records_in_each_run(folder: Path) -> None:
    records = [{"text": str(number)} for number in range(400)]
    asks(data.review.Ask("text", when=0.25), records)
    chosen = {row["fields"]["text"] for row in lines_of(folder)}
    assert 60 < len(chosen) < 140
    asks(data.review.Ask("text", when=0.25), records[::-1])
    assert len(questions(folder)) == 1
    asks(data.review.Ask("text", when=0.25, seed=1), records)
    assert len(questions(folder)) == 2


def test_a_spreadsheet_can_be_filled_in_where_it_is(folder: Path) -> None:
    records = [{"text": text} for text in ("=1+1", "two\nlines; and, more", "\u00fcber", "- a", "")]
    operator = data.review.Ask("text", edit="text", format="csv", instructions="Well?")
    asks(operator, records)
    (file,) = questions(folder)
    assert file.read_bytes().startswith(b"\xef\xbb\xbfreview_id,text,")
    rows = table_of(file)
    assert [row["text"] for row in rows] == [
        "'=1+1",
        *(one["text"] for one in records[1:3]),
        "'- a",
        "",
    ]
    for row in rows:
        row["decision"] = "keep"
    rows[1]["edited:text"] = "new\nlines"
    content = text_of_table(rows, ";")
    for encoded in (content.encode("utf-8-sig"), content.encode("utf-16"), content.encode()):
        file.write_bytes(encoded)
        result = [row["text"] for row in operator(records)]
        assert result == ["=1+1", "new\nlines", "\u00fcber", "- a", ""]


def test_a_cell_may_be_longer_than_the_limit_of_csv_which_stays_as_it_is(folder: Path) -> None:
    before = csv.field_size_limit()
    records = [{"text": "a" * (before + 1)}]
    operator = data.review.Ask("text", format="csv")
    asks(operator, records)
    (file,) = questions(folder)
    file.write_text(file.read_text("utf-8").replace("keep | drop,", "keep | drop,keep"), "utf-8")
    assert operator(records)[0]["review"] == "keep"
    assert csv.field_size_limit() == before


def test_a_form_of_label_studio_and_its_exports_are_understood(folder: Path) -> None:
    records = [{"text": '<a> & "b"', "n": 1}, {"text": "b", "n": 2}, {"text": "c", "n": 3}]
    operator = data.review.Ask(["text", "n"], edit=["n"], format="label_studio")
    asks(operator, records)
    (file,) = questions(folder)
    form = file.with_suffix(".xml").read_text(encoding="utf-8")
    assert '<Choice value="drop"/>' in form
    assert 'name="edited_0"' in form
    tasks = orjson.loads(file.read_bytes())
    assert [task["data"]["shown_0"] for task in tasks] == [one["text"] for one in records]

    def choice(value: str, *more: dict[str, Any]) -> list[dict[str, Any]]:
        chosen = {"from_name": "decision", "type": "choices", "value": {"choices": [value]}}
        return [chosen, *more]

    edited = {"from_name": "edited_0", "type": "textarea", "value": {"text": ["7"]}}
    skipped = {"was_cancelled": True, "result": []}
    ends = [
        [skipped, {"completed_by": {"email": "a@b"}, "result": choice("keep", edited)}],
        [{"completed_by": 1, "result": choice("drop")}],
        [],
    ]
    predicted = [{"result": choice("drop")}]
    export = [
        {"id": 9, **task, "annotations": end, "predictions": predicted}
        for task, end in zip(tasks, ends, strict=True)
    ]
    (folder / "project-1.json").write_bytes(orjson.dumps(export))
    assert "1 of 3" in asks(operator, records)
    small = [{**tasks[2]["data"], "id": 3, "decision": "keep", "annotator": 1, "edited_0": "3"}]
    (folder / "min.json").write_bytes(orjson.dumps(small))

    assert [(row["n"], row["review"]) for row in operator(records)] == [(7, "keep"), (3, "keep")]

    again = data.review.Ask(["text", "n"], edit=["text"], format="label_studio")
    asks(again, records)
    ids = [task["data"]["review_id"] for task in orjson.loads(questions(folder)[1].read_bytes())]
    rows = [
        {"annotation_id": "1", "annotator": "5", "review_id": one, "decision": "keep"}
        for one in ids
    ]
    for row, text in zip(rows, ('<a> & "b" ', "new", ""), strict=True):
        row["edited_0"] = text
    (folder / "project.csv").write_text(text_of_table(rows), encoding="utf-8")
    assert [row["text"] for row in again(records)] == [records[0]["text"], "new", "c"]


def first_of(folder: Path) -> str:
    return str(lines_of(folder)[0]["review_id"])


KEPT = {"choices": ["keep"]}


def chosen(value: dict[str, Any]) -> dict[str, Any]:
    return {"from_name": "decision", "value": value}


def answered(**fields: Any) -> Callable[[str], bytes]:
    return lambda question: orjson.dumps({"review_id": question, **fields}) + b"\n"


def annotated(question: str, annotations: Any, name: str = "annotations") -> bytes:
    return orjson.dumps([{"data": {"review_id": question}, name: annotations}])


WRONG: list[tuple[str, Callable[[str], str | bytes], str]] = [
    ("a.jsonl", lambda _: '\n{"review_id": "q5", "decision": "keep"}', "line 2: no question has"),
    ("a.jsonl", answered(decision="keap"), "line 1: 'keap' is none"),
    ("a.jsonl", lambda q: f'{{"review_id": "{q}", "decis', "line 1: is not a line with one JSON"),
    ("a.jsonl", answered(), "line 1: lacks 'decision'"),
    ("a.jsonl", answered(decision=1), "line 1: the decision must be"),
    ("a.jsonl", lambda _: "[1]", "line 1: must be an object"),
    ("a.jsonl", lambda _: b"\n\n\xff", "line 3: is no UTF-8"),
    (
        "a.jsonl",
        answered(decision="keep", edited={"n": 1}),
        "line 1: changes 'n'; reviewers may change text",
    ),
    (
        "a.jsonl",
        answered(decision="keep", edited={"text": 1}),
        "line 1: the new value of 'text' must be a str; got 1",
    ),
    (
        "a.jsonl",
        answered(decision=None, edited={"text": "b"}),
        "line 1: changes text without a decision",
    ),
    ("a.csv", lambda q: f"id,decision\n{q},keep\n", "line 1: names no column 'review_id'"),
    ("a.csv", lambda q: f"review_id;verdict\n{q};keep\n", "line 1: names no column 'decision'"),
    ("a.csv", lambda q: f"review_id,decision,decision\n{q},keep,\n", "line 1: names the column"),
    ("a.csv", lambda q: f"sep=;\nreview_id;decision\n{q};kep\n", "line 3: 'kep' is none of"),
    ("a.csv", lambda q: f'review_id,decision,a\n{q},,"b\nc"\n{q},no,\n', "line 4: 'no' is none"),
    ("a.csv", lambda q: f'review_id,decision\n{q},"keep\n', "line 2: begins a row that cannot"),
    ("a.csv", lambda q: f"review_id,decision\n{q},keep,x\n", "line 2: has 3 cells"),
    ("a.csv", lambda _: "", "line 1: is empty"),
    ("a.csv", lambda q: f"review_id,decision,reviewer\n{q},keep", "line 2: has no line break"),
    ("a.csv", lambda q: f"review_id,decision,edited:text\n{q},keep,ne", "line 2: has no line br"),
    ("a.csv", lambda q: f"review_id,decision,edited:n\n{q},keep,5\n", "line 2: changes 'n'"),
    ("a.csv", lambda q: f"review_id,text,decision\n{q},other,keep\n", "line 2: the cell of 'text'"),
    (
        "a.csv",
        lambda q: f"review_id,decision\n{q},ke\u00e9p".encode("latin-1"),
        "line 2: is no UTF",
    ),
    ("a.json", lambda _: "{}", "the file: must be a list of tasks"),
    ("a.json", lambda _: "[", "the file: is not JSON"),
    ("a.json", lambda _: '[{"data": {}}]', "task 1: its data lacks 'review_id'"),
    ("a.json", lambda _: "[5]", "task 1: must be an object"),
    (
        "a.json",
        lambda q: f'[{{"data": {{"review_id": "{q}"}}, "annotations": [{{"result": []}}]}}]',
        "task 1, annotation 1: has no choice",
    ),
    (
        "a.jsonl",
        lambda q: f'{{"review_id": "{q}", "decision": "keep", "decision": "drop"}}',
        "line 1: has 'decision' twice in one object",
    ),
    (
        "a.jsonl",
        answered(decision="keep", fields={"text": "new"}),
        "line 1: the cell of 'text' was changed, which has no effect; write the new value into",
    ),
    ("a.jsonl", answered(decision="keep", text="new"), "line 1: the cell of 'text' was changed"),
    (
        "a.jsonl",
        answered(decision="keep", edit={"text": "new"}),
        "line 1: 'edit' has no effect; write 'edited:<column>'",
    ),
    (
        "a.jsonl",
        answered(decision="keep", Reviewer="ann"),
        "line 1: 'Reviewer' has no effect; write 'reviewer'",
    ),
    (
        "a.csv",
        lambda q: f"review_id,decision,Edited:text\n{q},keep,new\n",
        "line 2: 'Edited:text' has no effect; write 'edited:<column>'",
    ),
    (
        "a.csv",
        lambda q: f"review_id,decision,decision 2\n{q},keep,drop\n",
        "line 2: 'decision 2' has no effect",
    ),
    (
        "a.csv",
        lambda q: f"review_id,decision\n{q},drop\n{q},keep\n",
        "line 3: 'keep' differs from 'drop' in a.csv line 2, by the same reviewer; leave one",
    ),
    (
        "a.json",
        lambda q: f'[{{"review_id": "{q}", "verdict": "keep"}}]',
        "task 1: lacks 'decision'",
    ),
    (
        "a.json",
        lambda q: annotated(q, [{"result": [chosen({"rating": 4})]}]),
        "task 1, annotation 1: has no choice; decide",
    ),
    (
        "a.json",
        lambda q: annotated(q, [{"result": [chosen(KEPT), chosen({"choices": ["drop"]})]}]),
        "task 1, annotation 1: has 2 values of 'decision'; leave one",
    ),
    ("a.json", lambda q: annotated(q, 5), "task 1: its annotations must be a list; got 5"),
    (
        "a.json",
        lambda q: annotated(q, [{"result": [chosen({"choices": ["no"]})]}], "completions"),
        "task 1, annotation 1: 'no' is none of the choices",
    ),
    ("a.xlsx", lambda _: "PK", "is no file with decisions; save it as one of .csv"),
]


@each("case", WRONG)
@pytest.mark.slow
def test_a_wrong_file_is_refused_with_its_line_and_nothing_is_taken(case, tmp_path: Path) -> None:
    name, content, expected = case
    with config.temporary(data_process_path=tmp_path / str(abs(hash(expected)))):
        operator = data.review.Ask("text", edit="text")
        asks(operator)
        folder = config.results_root().path / "Ask" / "review"
        written = content(first_of(folder))
        encoded = written if isinstance(written, bytes) else written.encode()
        (folder / name).write_bytes(encoded)
        decide(folder, lambda _: KEEP)

        message = refusal(operator)
        assert f"{folder / name}" in message
        assert expected in message
        (folder / name).unlink()
        assert len(list(operator(RECORDS))) == 4


def test_several_faults_are_told_at_once(folder: Path) -> None:
    operator = data.review.Ask("text")
    asks(operator)
    decide(folder, lambda shown: {"decision": f"no {shown['text']}"})
    decide(folder, lambda _: {"decision": "x"}, "b.jsonl")
    (folder / "c.csv").write_text("review_id,decision\na,b\nc,d\ne,f\n")
    message = refusal(operator)
    assert "decided.jsonl line 3: 'no text 2' is none of the choices: keep, drop" in message
    assert "c.csv line 3" in message
    assert "and 1 more fault." in message


def test_files_of_the_system_and_copies_do_no_harm(folder: Path) -> None:
    operator = data.review.Ask("text")
    asks(operator)
    for name in (".DS_Store", "~$questions.csv", "Thumbs.db", ".~lock.a.csv#"):
        (folder / name).write_bytes(b"\0")
    for name in ("a.jsonl", "b.jsonl", "c.JSONL"):
        decide(folder, lambda _: KEEP, name)
    assert len(list(operator(RECORDS))) == 4


def test_the_first_decision_stands_and_later_ones_are_told(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    operator = data.review.Ask("text")
    asks(operator)
    decide(folder, lambda shown: KEEP if shown["text"] < "text 3" else {}, "z.jsonl")
    asks(operator)
    decide(folder, lambda _: {"decision": "drop"}, "a.jsonl")
    assert [row["n"] for row in operator(RECORDS)] == [0, 1, 2]
    assert "3 decisions differ from an earlier one" in caplog.text
    assert "a.jsonl line 1" in caplog.text
    for file in folder.glob("*.jsonl"):
        file.unlink()
    assert [row["n"] for row in data.review.Ask("text", output_key="b")(RECORDS)] == [0, 1, 2]


def test_different_decisions_of_one_person_that_were_not_taken_stop_the_run(folder: Path) -> None:
    operator = data.review.Ask("text")
    asks(operator)
    decide(folder, lambda _: KEEP, "z.jsonl")
    decide(folder, lambda shown: {"decision": "drop"} if shown["text"] == "text 0" else {}, "a")
    (folder / "a").rename(folder / "a.jsonl")
    message = refusal(operator)
    assert f"{folder}/z.jsonl line 1: 'keep' differs from 'drop' in a.jsonl line 1" in message
    assert not (folder / "state" / "decisions.jsonl").exists()
    (folder / "a.jsonl").unlink()
    assert len(list(operator(RECORDS))) == 4


def test_a_decision_that_another_reviewer_overrules_is_told(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    operator = data.review.Ask("text")
    asks(operator)
    decide(folder, lambda _: {**KEEP, "reviewer": "ann"}, "a.jsonl")
    decide(folder, lambda _: {"decision": "drop", "reviewer": "bob"}, "b.jsonl")
    assert len(list(operator(RECORDS))) == 4
    assert "4 decisions differ from the one of another reviewer, which counts" in caplog.text
    assert "b.jsonl line 1 (a.jsonl line 1 counts)" in caplog.text


def test_new_values_are_read_in_the_ways_that_people_write_them(folder: Path) -> None:
    records: list[Any] = [{"id": "a", "fine": True, "text": "b"}]
    operator = data.review.Ask(["id", "fine", "text"], edit=["fine", "text"])
    asks(operator, records)
    question = first_of(folder)
    table = f"review_id,decision,edited:fine,note\n{question},keep,FALSE,mine\n"
    line = {"review_id": question, "decision": "keep", "edited:fine": False, "note": "mine"}
    small = {
        "review_id": question,
        "decision": "keep",
        "id": 7,
        "annotator": 1,
        "edited_0": "false",
    }
    exported = f"annotation_id,id,review_id,decision,edited_0\n1,7,{question},keep,false\n"
    ways = {
        "a.csv": table.encode(),
        "a.jsonl": orjson.dumps(line),
        "a.json": orjson.dumps([small]),
        "b.csv": exported.encode(),
    }
    for name, content in ways.items():
        (folder / name).write_bytes(content)
        assert [(row["fine"], row["text"]) for row in operator(records)] == [(False, "b")]
        (folder / name).unlink()
        (folder / "state" / "decisions.jsonl").unlink()
        operator = data.review.Ask(
            ["id", "fine", "text"], edit=["fine", "text"], output_key=name.replace(".", "_")
        )


def test_a_cell_shows_a_number_as_spreadsheets_write_it_or_the_run_stops(folder: Path) -> None:
    record = {"a": 1234, "b": 0.1234, "c": 123456789012345678, "d": True, "e": None, "f": [1, "x"]}
    asks(data.review.Ask(list(record)), [record])
    shown = {**record, "d": "true", "e": "", "f": '[1,"x"]'}
    same = ["1,234", "1.234,0", "1 234.0", "1'234"]
    others = [
        {"b": "0,12"},
        {"b": "12%"},
        {"c": "1,23E+17"},
        {"c": "123456789012346000"},
        {"d": "TRUE"},
        {"d": "WAHR"},
    ]
    question, file = first_of(folder), folder / "a.csv"

    def read(cells: Row) -> list[str]:
        row = {"review_id": question, **shown, **cells, "decision": "keep"}
        file.write_text(text_of_table([row], ";"), encoding="utf-8")
        return faults_in(folder)

    for cells in [{}, *others, *({"a": cell} for cell in same)]:
        assert not read(cells), cells
    changed: list[Row] = [{"a": "1235"}, {"a": ""}, {"a": "many"}, {"a": "nan"}, {"b": "0.2"}]
    for cells in [*changed, {"d": "FALSE"}, {"d": ""}, {"e": "new"}, {"f": "[2]"}]:
        (fault,) = read(cells)
        assert f"a.csv line 2: the cell of {next(iter(cells))!r} was changed" in fault


def test_a_column_of_the_records_may_have_a_name_of_the_files(folder: Path) -> None:
    names = ["id", "annotator", "fields", "edited", "Comments", "edit"]
    records = [{name: f"{name} of the record" for name in names}]
    operator = data.review.Ask(names, edit=["edited", "fields"], format="csv")
    asks(operator, records)
    (file,) = questions(folder)
    (row,) = table_of(file)
    content = text_of_table([{**row, "decision": "keep", "edited:edited": "new"}])
    file.write_text(content.replace("id of the record", "other"), encoding="utf-8")
    (fault,) = faults_in(folder)
    assert "the cell of 'id' was changed" in fault
    file.write_text(content, encoding="utf-8")
    assert operator(records)[0]["edited"] == "new"
    (taken,) = (folder / "state" / "decisions.jsonl").read_bytes().splitlines()[1:]
    assert orjson.loads(taken)["reviewer"] == ""


def test_a_link_to_no_file_is_named_and_the_state_of_the_files_can_be_told(folder: Path) -> None:
    asks(data.review.Ask("text"))
    (folder / "gone.csv").symlink_to(folder / "nowhere.csv")
    assert files_of_state(folder) == [questions(folder)[0].name]
    assert "gone.csv: is no file with decisions" in refusal(data.review.Ask("text"))


def test_several_reviewers_must_agree(folder: Path) -> None:
    operator = data.review.Ask("text", agreement=2)
    asks(operator)
    decide(folder, lambda _: KEEP, "nobody.jsonl")
    assert "nobody.jsonl line 1: names no reviewer" in refusal(operator)
    (folder / "nobody.jsonl").unlink()

    spellings = ("Zo\u00eb B", "Zo\u00eb B", "zoe\u0308 b", " ZO\u00cb  B ")
    for number, name in enumerate(spellings):  # one person does not agree with herself
        decide(folder, lambda _, name=name: {**KEEP, "reviewer": name}, f"{number}.jsonl")
        assert "4 of 4" in asks(operator)
    differs = {"decision": "drop", "reviewer": "bob"}
    decide(
        folder,
        lambda shown: differs if shown["text"] == "text 0" else {**KEEP, "reviewer": "bob"},
        "b.jsonl",
    )
    assert "1 of 4" in asks(operator)
    decide(folder, lambda _: {"decision": "drop", "reviewer": "cy"}, "c.jsonl")
    assert [row["n"] for row in operator(RECORDS)] == [1, 2, 3]


@each(
    "options",
    [
        {"fields": []},
        {"choices": []},
        {"choices": ["a", "a"]},
        {"choices": ["a", " b"]},
        {"choices": ["a", ""]},
        {"fields": ["decision"]},
        {"fields": ["edited:a"]},
        {"fields": ["edited_0"]},
        {"edit": ["other"]},
        {"fields": ["a.b"], "edit": ["a.b"]},
        {"when": 1.5},
        {"when": -0.1},
        {"when": []},
        {"when": ["a", "~", 1]},
        {"when": ["a"]},
        {"when": [["a", "==", 1], 5]},
        {"format": "xlsx"},
        {"agreement": 0},
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises((DefinitionError, ValueError)):
        data.review.Ask(**{"fields": ["text"], **options})


def test_a_field_that_no_record_has_is_refused_before_anybody_is_asked(folder: Path) -> None:
    for options in ({"fields": ["n", "txet"]}, {"fields": "n", "when": [["txet", "<", 1]]}):
        with pytest.raises(AbsentColumnError, match="'txet'"):
            data.review.Ask(**options)(RECORDS)
    assert not questions(folder)


def test_each_node_has_a_folder_of_its_own_below_the_one_given(
    folder: Path, tmp_path: Path
) -> None:
    operator = data.review.Ask("text", to=str(tmp_path / "people"))
    assert str(tmp_path / "people" / "Ask") in asks(operator)
    assert not folder.exists()
    decide(tmp_path / "people" / "Ask", lambda _: KEEP)
    assert len(list(operator(RECORDS))) == 4


def test_a_part_of_a_chain_and_another_mode_are_refused(root: Path) -> None:
    for operator in (
        data.review.Ask("text", _concurrency_mode="single"),
        chain(data.review.Ask("text"), data.text.Normalize()),
    ):
        with pytest.raises(OperatorOpenError, match=r"review\.Ask needs"):
            operator(RECORDS)


@each("content", [b"", b"{", b"[]\n", b'{"format": 1}\n', b'{"format": 1, "written_as": "csv"}\n'])
def test_a_damaged_state_is_refused_and_kept(content: bytes, tmp_path: Path) -> None:
    with config.temporary(data_process_path=tmp_path / content.hex()):
        operator = data.review.Ask("text")
        asks(operator)
        (state,) = config.results_root().path.rglob("asked-*.jsonl")
        state.write_bytes(content)
        with pytest.raises(OperatorOpenError, match="it is damaged"):
            operator(RECORDS)
        assert state.read_bytes() == content


def test_a_state_of_a_newer_version_is_refused(folder: Path) -> None:
    operator = data.review.Ask("text")
    asks(operator)
    for name in ("decisions.jsonl", "waiting.json"):
        (folder / "state" / name).write_bytes(b'{"format": 2}\n')
        with pytest.raises(OperatorOpenError) as caught:
            operator(RECORDS)
        assert isinstance(caught.value.__cause__, NewerVersionError)
        (folder / "state" / name).unlink()


KILLED = """
import os, signal, sys
from pathlib import Path
from dagster_dataops import config, data
import dagster_dataops.library.review.asking, dagster_dataops.execution.executor
from dagster_dataops.datasets import durable_files
from dagster_dataops.errors import RunWaitingError

config.data_process_path, decides = Path(sys.argv[1]), sys.argv[2] == "decide"
config.data_process_resume, config.data_process_progress = True, False
records = [{"text": str(number)} for number in range(5)]
left = 0

def run():
    try:
        print(len(list(data.review.Ask("text")(records))), "records")
    except RunWaitingError:
        print("waits")

def killing(function):
    def call(*arguments, **options):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **options)
    return call

at = 1
while True:
    child = os.fork()
    if not child:
        left = at
        os.fsync = killing(os.fsync)
        os.unlink = killing(os.unlink)
        Path.replace = killing(Path.replace)
        run()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        break
    at += 1
print(at, "points")
"""


def killed(root: Path, what: str) -> int:
    """Run an operator that is killed at one point after another; return the number of points."""
    script = [sys.executable, "-c", KILLED, str(root), what]
    done = subprocess.run(script, capture_output=True, text=True, timeout=120, check=True)
    return int(done.stdout.split()[-2])


@pytest.mark.slow
def test_killed_anywhere_nothing_is_asked_twice_and_no_decision_is_lost(folder: Path, root: Path):
    assert killed(root, "ask") > 4
    assert sorted(row["fields"]["text"] for row in lines_of(folder)) == list("01234")
    assert len(questions(folder)) == 1

    decide(folder, lambda shown: KEEP if shown["text"] != "4" else {})
    assert killed(root, "decide") > 2
    (folder / "decided.jsonl").unlink()
    decide(folder, lambda shown: {"decision": "drop"} if shown["text"] == "4" else {})
    records = [{"text": str(number)} for number in range(5)]
    assert [row["text"] for row in data.review.Ask("text")(records)] == list("0123")
    assert len(questions(folder)) == 1
