"""Tests of dagster_dataops.pipelines.tracing.trail: the texts of traces."""

from dagster_dataops.pipelines.tracing.trail import (
    Place,
    Step,
    Trace,
    TrailEnd,
    outcome_of,
    reasons_of,
)

SOURCE = Place("/in.jsonl", 3, '{"n":2}')
MADE = tuple(Place("/a/a_results.jsonl", line, f'{{"n":{line}}}') for line in range(4, 7))


def test_the_text_of_a_trace_has_the_source_every_step_and_the_end() -> None:
    split = Step("a", "demo.cut", (SOURCE,), MADE, "split", {"short": 2}, entered=(("x", 1),))
    end = TrailEnd("b", "demo.turn", MADE[1], "it takes all at once")
    assert str(Trace((SOURCE,), (split,), (), (end,))).splitlines() == [
        "/in.jsonl, line 3",
        '    {"n":2}',
        "a (demo.cut): line 3 -> lines 4 to 6, dropped on the way: short (2 records)",
        "    records that entered the parts: x 1",
        '    4: {"n":4}',
        '    5: {"n":5}',
        '    6: {"n":6}',
        "b (demo.turn): the trail of /a/a_results.jsonl, line 5 ends here: it takes all at once",
        "The record is not known from there on.",
    ]


def test_only_lines_that_are_followed_are_shown_in_full() -> None:
    split = Step("a", "demo.cut", (SOURCE,), MADE, "split")
    text = str(Trace((SOURCE,), (split,), (MADE[1],)))
    assert '5: {"n":5}' in text
    assert "4:" not in text


def test_the_texts_of_records_that_ended() -> None:
    error = {"exception": "ValueError", "message": "no"}
    failed = Step("a", "demo.cut", (SOURCE,), (), "failed", part="strip", error=error)
    assert str(failed) == "a (demo.cut): line 3 -> failed in the part strip\n    ValueError: no"
    dropped = Step("a", "demo.cut", (SOURCE,), (), "dropped", {"short": 1})
    assert str(dropped) == "a (demo.cut): line 3 -> dropped: short"
    text = str(Trace((SOURCE,), (dropped,), ()))
    assert text.endswith("The record has no line in the result.")


def test_lines_of_several_files_and_outputs_are_named() -> None:
    other = Place("/b/b_results.jsonl", 9, "{}")
    outputs = (Place("/s/x/x_results.jsonl", 1, "{}", "x"), Place("/s/y/y.jsonl", 2, "{}", "y"))
    merged = Step("a", "demo.zip", (MADE[0], other), outputs, "merged", left_out=3)
    first = str(merged).splitlines()[0]
    assert first == (
        "a (demo.zip): line 4 of a and line 9 of b -> x line 1 and y line 2 and 3 more made of "
        "2 records"
    )


def test_long_and_missing_texts_are_cut() -> None:
    long = Place("/in.jsonl", 1, "x" * 500)
    text = str(Trace((long, Place("/gone.jsonl", 2)), (), ()))
    assert len(max(text.splitlines(), key=len)) < 170
    assert "(the file is gone)" in text


def test_outcomes_and_reasons_of_dispositions() -> None:
    assert outcome_of({"failed": True}, 1, 0) == "failed"
    assert outcome_of({}, 1, 1) == "kept"
    assert outcome_of({"emitted": 2}, 1, 2) == "split"
    assert outcome_of({"emitted": 1}, 3, 1) == "merged"
    assert outcome_of({"emitted": 0}, 3, 0) == "dropped"
    assert reasons_of({"dropped": ["", "a", "a"]}) == {"a": 2}
    assert reasons_of({"dropped": {"a: b": 3}}) == {"a: b": 3}
