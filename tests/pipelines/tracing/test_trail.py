"""Tests of the files that a trace reads: trails, maps of records, files with lines."""

import random
from array import array
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from dagster_dataops.checkpoints.journal import kept_journal
from dagster_dataops.checkpoints.journal.kept_journal import KeptJournal
from dagster_dataops.checkpoints.journal.span import Span
from dagster_dataops.checkpoints.journal.span_notes import SpanNotes
from dagster_dataops.errors import TraceError
from dagster_dataops.foundation.places.file_state import FileState
from dagster_dataops.operators.outcomes.dispositions import (
    USUAL,
    Disposition,
    disposition,
    emitting,
    sending,
)
from dagster_dataops.pipelines.tracing import record_file
from dagster_dataops.pipelines.tracing.record_file import FoundLine, RecordFile
from dagster_dataops.pipelines.tracing.record_map import MOST_LINES, KeptMap, find_error_row
from dagster_dataops.pipelines.tracing.trail import (
    Place,
    Step,
    Trace,
    TrailEnd,
    outcome_of,
    reasons_of,
)
from tests.nodes import Manifest, NodeFolder

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


ERROR = {"exception": "ValueError", "message": "no"}
OTHER = Place("/b/b_results.jsonl", 9, "{}")
OUTPUTS = (Place("/s/x/x_results.jsonl", 1, "{}", "x"), Place("/s/y/y.jsonl", 2, "{}", "y"))
DROPPED = Step("a", "demo.cut", (SOURCE,), (), "dropped", {"short": 1})


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (
            Step("a", "demo.cut", (SOURCE,), (), "failed", part="strip", error=ERROR),
            "a (demo.cut): line 3 -> failed in the part strip\n    ValueError: no",
        ),
        (DROPPED, "a (demo.cut): line 3 -> dropped: short"),
        (
            Step("a", "demo.zip", (MADE[0], OTHER), OUTPUTS, "merged", left_out=3),
            (
                "a (demo.zip): line 4 of a and line 9 of b -> x line 1 and y line 2 and 3 more "
                "made of 2 records"
            ),
        ),
    ],
)
def test_the_text_of_a_step_names_files_outputs_and_how_the_record_ended(
    step: Step, text: str
) -> None:
    assert str(step) == text or str(step).splitlines()[0] == text
    ended = str(Trace((SOURCE,), (DROPPED,), ()))
    assert ended.endswith("The record has no line in the result.")


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


MERGED = disposition(emitted=0, merged=True)
MANIFEST = Manifest(
    operator="demo.work",
    rows_in=0,
    rows_out=0,
    dropped=0,
    failed=0,
    resumed=0,
    size_bytes=0,
    modified_ns=0,
    fingerprint="xxh3:1",
    run="r",
    attempts=["r"],
    seconds=0.0,
    made_from={},
    kind="record",
    mapped=True,
    traced=True,
)


def map_of(
    folder: Path,
    spans: Sequence[Sequence[Disposition]],
    failed: Sequence[int] = (),
    outputs: Sequence[str] = (),
) -> KeptMap:
    """Return the map of records with these dispositions, span by span, and failed ones between."""
    node = NodeFolder(folder, "work")
    (folder / "in.jsonl").write_bytes(b"")
    rows = 0
    with (
        (folder / "in.jsonl").open("rb") as source,
        KeptJournal(node.kept, source.fileno(), check_input=False) as keeping,
    ):
        for at, span in enumerate(spans):
            fields: list[dict[str, Any]] = [orjson.loads(one) for one in span]
            lines = sum(
                len(one.get("outputs", [])) if outputs else one.get("emitted", 1) for one in fields
            )
            notes = SpanNotes.of(len(span), enumerate(span), {})
            size = 2 * lines
            made = Span(10 * at, 10, len(span), lines, 0, 0, size, 0, 0, 0)
            keeping.add(made, b"x\n" * lines, (), notes)
            rows += lines
        keeping.finish({"result": "xxh3:1", "fingerprint": None, "attempts": []}, {})
    errors = [orjson.dumps({"index": at, "line": at + 1, "message": f"m{at}"}) for at in failed]
    node.errors.write_bytes(b"".join(one + b"\n" for one in errors))
    manifest = replace(
        MANIFEST,
        rows_in=sum(map(len, spans)) + len(failed),
        rows_out=rows,
        failed=len(failed),
        outputs={name: {"folder": name, "name": name} for name in outputs},
    )
    return KeptMap(node, manifest)


def test_lines_and_records_are_found_among_random_dispositions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_journal, "_PIECE_BYTES", 60)
    chance = random.Random(1)
    kinds = [USUAL, emitting(0), emitting(2), emitting(5), disposition(emitted=0, dropped=["a"])]
    spans = [[chance.choice(kinds) for _ in range(chance.randrange(1, 9))] for _ in range(40)]
    spans[3] = [USUAL] * 4
    kept = [one for span in spans for one in span]
    failed = sorted(chance.sample(range(len(kept) + 30), 30))
    found = map_of(tmp_path, spans, failed)
    left, line = iter(kept), 0
    for record in range(len(kept) + 30):
        if record in failed:
            assert found.of_record(record).fields == {"failed": True}
            continue
        fields = orjson.loads(next(left))
        lines = [(0, line + at) for at in range(fields.get("emitted", 1))]
        assert found.of_record(record) == ((record,), lines, fields, 0)
        assert all(found.of_line(*one).records == (record,) for one in lines)
        line += len(lines)


def test_lines_of_named_outputs_are_counted_apart(tmp_path: Path) -> None:
    spans = [[sending(0), sending(1)], [sending(1, 0, 1), emitting(0)], [sending(0)]]
    found = map_of(tmp_path, spans, outputs=("left", "right"))
    assert found.of_record(2).lines == [(1, 1), (0, 1), (1, 2)]
    assert found.of_record(3).lines == []
    assert [found.of_line(0, at).records for at in range(3)] == [(0,), (2,), (4,)]
    assert [found.of_line(1, at).records for at in range(3)] == [(1,), (2,), (2,)]


def test_a_batch_whose_lines_are_with_its_first_record_is_one_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_journal, "_PIECE_BYTES", 1)
    spans = [[USUAL, MERGED], [MERGED, emitting(3)], [MERGED, emitting(0), MERGED, USUAL]]
    found = map_of(tmp_path, spans, failed=[1])
    batches = [(0, 2, 3), (4, 5), (6, 7), (8,)]
    for batch in batches:
        assert all(found.of_record(one).records == batch for one in batch)
    lines = [found.of_line(0, at).records for at in range(5)]
    assert lines == [batches[0], batches[1], batches[1], batches[1], batches[3]]


def test_the_first_thousand_lines_of_a_record_are_followed(tmp_path: Path) -> None:
    entry = map_of(tmp_path, [[USUAL, emitting(2500)]]).of_record(1)
    assert (len(entry.lines), entry.left_out) == (MOST_LINES, 1500)


@pytest.mark.parametrize("damage", ["missing", "cut", "of another run"])
def test_a_map_that_is_not_that_of_the_result_is_refused(tmp_path: Path, damage: str) -> None:
    map_of(tmp_path, [[USUAL, emitting(0)]])
    node = NodeFolder(tmp_path, "work")
    manifest = replace(MANIFEST, rows_in=2, rows_out=1)
    if damage == "missing":
        node.kept.unlink()
    elif damage == "cut":
        node.kept.write_bytes(node.kept.read_bytes()[30:])
    else:
        manifest = replace(manifest, fingerprint="xxh3:2")
    with pytest.raises(TraceError, match="missing, damaged or of another run.*run the node again"):
        KeptMap(node, manifest)


def test_missing_rows_of_the_error_file_are_noticed(tmp_path: Path) -> None:
    map_of(tmp_path, [[USUAL, USUAL]], failed=[0])
    node = NodeFolder(tmp_path, "work")
    assert (find_error_row(node, 0) or {})["message"] == "m0"
    assert find_error_row(node, 1) is None
    for damage in (lambda: node.errors.write_text('{"a": 1}\n'), node.errors.unlink):
        damage()
        with pytest.raises(TraceError, match="1 record failed, and .*_error.jsonl has 0"):
            KeptMap(node, replace(MANIFEST, rows_in=3, rows_out=2, failed=1))


def test_a_map_takes_a_few_bytes_a_record(tmp_path: Path) -> None:
    chance = random.Random(1)
    kinds = [USUAL, emitting(0), emitting(2), disposition(emitted=0, dropped=["too_short"])]
    spans = [chance.choices(kinds, k=100) for _ in range(300)]
    map_of(tmp_path, spans, failed=array("I", range(0, 33_000, 11)))
    assert NodeFolder(tmp_path, "work").kept.stat().st_size < 30_000


FOREIGN = b'\xef\xbb\xbf{"a":1}\r\n\n  \n{"a":2}\n{"a":3}  \n\n{"a":4}'


@pytest.fixture
def foreign(tmp_path: Path) -> RecordFile:
    (tmp_path / "in.jsonl").write_bytes(FOREIGN)
    return RecordFile(tmp_path / "in.jsonl", ours=False)


def test_blank_lines_are_no_records_but_are_counted_as_lines(
    foreign: RecordFile, tmp_path: Path
) -> None:
    found = foreign.find([0, 1, 2, 3, 4])
    assert found == {
        0: FoundLine(1, b'{"a":1}'),
        1: FoundLine(4, b'{"a":2}'),
        2: FoundLine(5, b'{"a":3}'),
        3: FoundLine(7, b'{"a":4}'),
    }
    assert foreign.count() == 4
    indices = [foreign.index_of(line) for line in range(1, 9)]
    assert indices == [0, None, None, 1, 2, None, 3, None]
    (tmp_path / "empty.jsonl").write_bytes(b"")
    empty = RecordFile(tmp_path / "empty.jsonl", ours=True)
    assert (empty.find([0]), empty.index_of(1), empty.count()) == ({}, None, 0)


@pytest.mark.parametrize("ours", [True, False])
def test_records_are_found_across_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ours: bool
) -> None:
    monkeypatch.setattr(record_file, "BLOCK_BYTES", 64)
    chance = random.Random(1)
    lines = [b'{"n":%d,"t":"%s"}' % (n, b"x" * chance.randrange(90)) for n in range(200)]
    (tmp_path / "in.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    records = RecordFile(tmp_path / "in.jsonl", ours=ours)
    wanted = chance.sample(range(200), 30)
    assert records.find(wanted) == {at: FoundLine(at + 1, lines[at]) for at in wanted}
    assert [records.index_of(at + 1) for at in wanted] == wanted
    assert records.count() == 200


class SparseIndex:
    """An index of each line of a file that was made by reading all of it.

    Args:
        path: The file.
        kept: The share of its lines that have an entry.
    """

    def __init__(self, path: Path, kept: float) -> None:
        chance = random.Random(2)
        self.state = FileState.of(path.stat())
        self.starts, byte, records = [(0, 0, 0)], 0, 0
        for number, line in enumerate(path.read_bytes().splitlines(keepends=True), 1):
            byte, records = byte + len(line), records + (not line.isspace())
            if chance.random() < kept:
                self.starts.append((byte, number, records))

    def before_line(self, line: int) -> tuple[int, int, int]:
        return max(start for start in self.starts if start[1] <= line)

    def before_record(self, record: int) -> tuple[int, int, int]:
        return max(start for start in self.starts if start[2] <= record)


@pytest.mark.parametrize("kept", [0.02, 0.3, 1.0])
def test_an_index_of_lines_changes_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: float
) -> None:
    monkeypatch.setattr(record_file, "BLOCK_BYTES", 64)
    monkeypatch.setattr(record_file, "_FIRST_BYTES", 32)
    chance = random.Random(1)
    path = tmp_path / "in.jsonl"
    lines = [
        b" " * chance.randrange(3) if chance.random() < 0.3 else b'{"n":%d}' % number
        for number in range(200)
    ]
    path.write_bytes(b"\n".join(lines))
    index = SparseIndex(path, kept)
    records = RecordFile(path, ours=False)
    for _ in range(30):
        wanted = chance.sample(range(210), chance.randrange(1, 12))
        before = records.find(wanted), [records.index_of(at + 1) for at in wanted]
        with record_file.using_indices(lambda _: index):
            assert records.find(wanted) == before[0]
            assert [records.index_of(at + 1) for at in wanted] == before[1]


def test_an_index_of_another_content_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'{"n":0}\n{"n":1}\n')
    index = SparseIndex(path, 1.0)
    path.write_bytes(b'\n\n{"n":0}\n{"n":"one"}\n')
    with record_file.using_indices(lambda _: index):
        assert RecordFile(path, ours=False).find([1]) == {1: FoundLine(4, b'{"n":"one"}')}
