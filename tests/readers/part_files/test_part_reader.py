"""Tests of the golden cases and properties of OneFlow's mini data loader, and its options."""

import itertools
import json
import logging
import os
import signal
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagster_dataops import PartFiles
from dagster_dataops.errors import (
    DataPipelineError,
    OperatorOptionError,
    StreamSourceError,
    StreamStateError,
)
from dagster_dataops.testing import assert_resumes_anywhere
from tests.examples import at_most
from tests.readers.helpers import EXAMPLE, PLACES, ROWS, A, B, mini, places, write_parts

# files, batch size, number of batches, index of one batch, its content
FINITE = [
    (1, 1, 9, 9, [A[8]]),
    (1, 2, 5, 5, [A[8]]),
    (1, 4, 3, 3, [A[8]]),
    (2, 1, 18, 10, [B[0]]),
    (2, 2, 9, 5, [A[8], B[0]]),
    (2, 4, 5, 5, [B[7], B[8]]),
]
ENDLESS = [  # the same; then the number of batches after which the sequence repeats
    (1, 1, 9, 10, [A[0]]),
    (1, 2, 9, 5, [A[8], A[0]]),
    (1, 4, 9, 3, [A[8], A[0], A[1], A[2]]),
    (2, 1, 18, 19, [A[0]]),
    (2, 2, 9, 5, [A[8], B[0]]),
    (2, 4, 9, 5, [B[7], B[8], A[0], A[1]]),
]


@pytest.mark.parametrize(("files", "size", "count", "number", "expected"), FINITE)
def test_a_finite_reader_ends_with_a_short_batch(files, size, count, number, expected):
    batches = mini(data_part_num=files, batch_size=size)()

    assert len(batches) == count
    assert values(batches[number - 1]) == expected


@pytest.mark.parametrize(("files", "size", "period", "number", "expected"), ENDLESS)
def test_an_infinite_reader_continues_into_the_next_epoch(files, size, period, number, expected):
    reader = mini(data_part_num=files, batch_size=size, epochs=None, wrap=True)
    batches = list(itertools.islice(reader, 3 * period))

    assert values(batches[number - 1]) == expected
    assert batches[:period] == batches[period : 2 * period] == batches[2 * period :]
    assert reader.stream().is_infinite()


def test_rows_come_in_the_order_of_files_and_lines():
    records = mini()()

    assert places(records) == PLACES
    assert [tuple(record["values"]) for record in records] == list(ROWS.values())


def test_files_are_in_another_order_from_the_second_epoch_on():
    records = mini(shuffle_after_epoch=True, epochs=40, seed=5)()
    epochs = [places(records[at : at + 18]) for at in range(0, len(records), 18)]

    assert epochs[0] == PLACES
    assert all(sorted(epoch) == PLACES for epoch in epochs)
    assert all(epoch in (PLACES, PLACES[9:] + PLACES[:9]) for epoch in epochs)  # lines in order
    assert PLACES[9:] + PLACES[:9] in epochs[1:]
    assert records == mini(shuffle_after_epoch=True, epochs=40, seed=5)()


def test_shards_agree_on_the_order_of_files_and_share_none(tmp_path):
    folder = write_parts(tmp_path, *(f"{n}\n" for n in range(5)))
    options = {"shuffle_after_epoch": True, "epochs": 9, "seed": 3, "num_shards": 2}
    halves = [PartFiles(folder, 5, shard_index=shard, **options)() for shard in (0, 1)]

    for epoch in range(9):
        first = halves[0][3 * epoch : 3 * epoch + 3]
        second = halves[1][2 * epoch : 2 * epoch + 2]
        assert sorted(int(record["text"]) for record in first + second) == list(range(5))
    assert [record["text"] for record in halves[0][:3]] == ["0", "1", "2"]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"random_shuffle": True, "shuffle_buffer_size": 4},
        {"shuffle_after_epoch": True, "epochs": 3},
        {"batch_size": 4, "epochs": 2},
        {"batch_size": 4, "epochs": 2, "drop_last": True, "prefetch": 0},
        {"batch_size": 4, "epochs": 3, "wrap": True, "random_shuffle": True},
        {"batch_size": 7, "epochs": None, "wrap": True, "prefetch": 0},
        {"batch_size": 40, "wrap": True},
        {"num_parallel_calls": 3, "random_shuffle": True},
        {"num_shards": 2, "shard_index": 1, "batch_size": 2},
    ],
    ids=str,
)
def test_it_resumes_at_any_position(options):
    assert_resumes_anywhere(mini(seed=3, **options).stream, limit=40)


KILLED = """
import json, os, signal, sys
from tests.readers.helpers import mini

stream = mini(random_shuffle=True, shuffle_buffer_size=5).stream().and_return()
place, stop = sys.argv[1], int(sys.argv[2])
if os.path.exists(place + ".state"):
    stream.load_state_dict(json.load(open(place + ".state")))
with open(place, "a") as rows:
    for number, row in enumerate(stream, 1):
        print(row["file"], row["line"], file=rows, flush=True)
        with open(place + ".state", "w") as state:
            json.dump(stream.state_dict(), state)
        if number == stop:
            os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
@pytest.mark.parametrize("stop", [1, 5, 9, 17])
def test_killed_after_a_row_it_reads_each_of_the_others_once(tmp_path, stop):
    for attempt in (stop, 0):
        command = [sys.executable, "-c", KILLED, str(tmp_path / "rows"), str(attempt)]
        finished = subprocess.run(command, check=False, env=os.environ | {"PYTHONPATH": ROOT})
        assert finished.returncode == (-signal.SIGKILL if attempt else 0)

    rows = [line.split() for line in (tmp_path / "rows").read_text().splitlines()]
    assert sorted((name, int(line)) for name, line in rows) == PLACES


ROOT = str(EXAMPLE.parents[1])


def test_the_number_of_workers_does_not_affect_the_records():
    one = mini(random_shuffle=True, seed=1).stream().and_return()
    head = list(itertools.islice(one, 5))
    several = mini(random_shuffle=True, seed=1, num_parallel_calls=4).stream().and_return()
    several.load_state_dict(one.state_dict())

    assert [*head, *several] == mini(random_shuffle=True, seed=1)()


def test_lines_parsed_at_once_stay_in_their_order(tmp_path):
    folder = write_parts(tmp_path, "".join(f"{n}\n" for n in range(500)))
    records = PartFiles(folder, 1, num_parallel_calls=8)()

    assert records == [{"text": str(number)} for number in range(500)]


def test_the_stages_come_in_the_order_of_the_document():
    reader = mini(random_shuffle=True, batch_size=2)
    names = [stage.name for stage in reader.stream().stage.ordered()]

    assert names == ["part_files", "shuffle", "parse", "batch", "prefetch"]
    assert "shuffle" not in [stage.name for stage in mini().stream().stage.ordered()]


def test_at_most_four_batches_are_read_ahead(tmp_path):
    folder = write_parts(tmp_path, "".join(f"{n}\n" for n in range(100)))
    parsed = []

    class Counting(PartFiles):
        def parse(self, line):
            parsed.append(line)
            return {"text": line}

    stream = Counting(folder, 1, batch_size=2).stream().and_return()
    items = iter(stream)
    assert next(items) == {"text": ["0", "1"]}
    items.close()

    assert len(parsed) <= 2 * (1 + 4 + 1)  # given out, in the queue, waiting to be put there
    stream.load_state_dict(stream.state_dict())  # ends the thread


# ---------------------------------------------------------------- edges


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"data_part_num": 0}, "'data_part_num' must be at least 1"),
        ({"data_part_num": "2"}, "'data_part_num' must be int; got str: '2'"),
        ({"data_part_num": True}, "must be int; got bool"),
        ({"data_dir": 3}, "'data_dir' must be str"),
        ({"batch_size": 0}, "'batch_size' must be at least 1"),
        ({"shuffle_buffer_size": 0}, "'shuffle_buffer_size' must be at least 1"),
        ({"seed": -2}, "'seed' must be at least -1"),
        ({"seed": 2**64}, r"'seed' must be below 2\^64"),
        ({"num_shards": 3}, "'num_shards' is 3, more than the number of parts, 2"),
        ({"num_shards": 2, "shard_index": 2}, "'shard_index' must be below num_shards, 2"),
        ({"wrap": True}, "'wrap' applies to batches"),
        ({"drop_last": True}, "'drop_last' applies to batches"),
        ({"wrap": True, "drop_last": True, "batch_size": 2}, "cannot be combined with drop_last"),
        ({"random_shuffle": 1}, "'random_shuffle' must be bool"),
    ],
)
@pytest.mark.parametrize("registered", [False, True])
def test_an_impossible_option_is_refused_by_name(options, fault, registered):
    make = type(mini()) if registered else PartFiles
    name = r"mini\.MiniReader" if registered else "PartFiles"

    with pytest.raises(OperatorOptionError, match=f"{name}: option {fault}|{name}.*{fault}"):
        make(**{"data_dir": "x", "data_part_num": 2, **options})


def test_its_options_have_the_defaults_of_the_document():
    reader = PartFiles("x", 2)

    assert (reader.part_name_prefix, reader.part_name_suffix_length) == ("part-", -1)
    assert (reader.random_shuffle, reader.shuffle_after_epoch) == (False, False)
    assert (reader.seed, reader.shuffle_buffer_size, reader.name) == (-1, 1024, "PartFiles")
    assert PartFiles("x", 2, name="other").name == "other"


def test_construction_does_not_access_the_disk(tmp_path):
    reader = PartFiles(tmp_path / "nowhere", 2)

    with pytest.raises(StreamSourceError, match="cannot be listed"):
        reader()


def test_a_wrong_record_is_reported_with_its_place(tmp_path):
    class Wrong(PartFiles):
        def parse(self, line):
            return [line]

    with pytest.raises(StreamSourceError, match="part-0, line 1: parse returned a list"):
        Wrong(write_parts(tmp_path, "1\n"), 1)()


def test_its_columns_are_those_of_its_records():
    assert mini(with_place=False).column_types() == {"values": list[float]}
    assert mini(batch_size=2).column_types() == {
        "values": list[list[float]],
        "file": list[str],
        "line": list[int],
    }


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("1,2\n\n3,4\n", "line 2: the line is blank"),
        ("1,2\n7\n", "line 2: it has 1 column, not 2"),
        ("1,2,3\n", "line 1: it has 3 columns, not 2"),
        ("1.5abc,1\n", "line 1: column 1 is '1.5abc'"),
        ("1,1e999\n", "too large"),
        (b"1,\xff\n", "UnicodeDecodeError"),
    ],
)
def test_a_bad_line_is_reported_with_its_file_and_number(tmp_path, content, fault):
    folder = write_parts(tmp_path, content)

    with pytest.raises(StreamSourceError, match=r"part-0, line \d.*") as raised:
        mini(folder, 1, -1)()
    assert fault in str(raised.value)


def test_blanks_carriage_returns_marks_and_missing_ends_do_not_matter(tmp_path):
    folder = write_parts(tmp_path, b"\xef\xbb\xbf 1 , 2.02\r\n5,10", "", "3,4\n")

    assert [tuple(row["values"]) for row in mini(folder, 3, -1)()] == [(1, 2.02), (5, 10), (3, 4)]
    assert places(mini(folder, 3, -1)()) == [("part-0", 1), ("part-0", 2), ("part-2", 1)]


def test_blank_lines_are_skipped_on_request(tmp_path):
    folder = write_parts(tmp_path, "1,2\n \n\r\n3,4\n\n")

    assert places(mini(folder, 1, -1, skip_blank_lines=True)()) == [("part-0", 1), ("part-0", 4)]


def test_empty_parts_are_an_empty_dataset(tmp_path):
    assert PartFiles(write_parts(tmp_path, "", ""), 2, epochs=None, batch_size=3)() == []
    assert PartFiles(tmp_path, 2)() == []


def test_bad_lines_are_skipped_or_quarantined_by_the_stream(tmp_path):
    folder = write_parts(tmp_path, "1,2\nx,4\n5,6\n")
    stream = mini(folder, 1, -1, batch_size=2).stream().and_return(on_error="quarantine")

    assert [values(batch) for batch in stream] == [[(1, 2), (5, 6)]]
    assert "line 2" in stream.quarantined[0]["message"]


def test_a_position_in_changed_files_is_refused(tmp_path):
    folder = write_parts(tmp_path, "1,2\n3,4\n")
    state = mini(folder, 1, -1).stream().and_return().state_dict()
    write_parts(folder, "1,2\n3,5\n")

    with pytest.raises(StreamStateError, match="data"):
        mini(folder, 1, -1).stream().and_return().load_state_dict(state)


def test_a_position_survives_a_move_of_the_folder(tmp_path):
    stream = mini(write_parts(tmp_path / "a", "1,2\n3,4\n"), 1, -1).stream().and_return()
    next(iter(stream))
    moved = mini(write_parts(tmp_path / "b", "1,2\n3,4\n"), 1, -1).stream().and_return()
    moved.load_state_dict(stream.state_dict())

    assert [row["values"] for row in moved] == [[3, 4]]


@pytest.mark.parametrize(
    ("length", "number", "name"),
    [
        (3, 0, "part-000"),
        (3, 10, "part-010"),
        (3, 1000, "part-1000"),
        (-1, 0, "part-0"),
        (-1, 10, "part-10"),
        (5, 0, "part-00000"),
    ],
)
def test_numbers_are_filled_up_and_never_cut(length, number, name, tmp_path):
    for other in range(number):
        (tmp_path / f"part-{other:0{max(length, 0)}}").write_text("")
    (tmp_path / name).write_text("found")
    reader = PartFiles(tmp_path, number + 1, part_name_suffix_length=length)
    assert reader() == [{"text": "found"}]


def test_all_missing_parts_are_named(tmp_path):
    write_parts(tmp_path, "")

    with pytest.raises(StreamSourceError, match="2 of 3 parts are missing: part-1, part-2"):
        PartFiles(tmp_path, 3)()


def test_the_number_of_digits_that_matches_the_files_is_named():
    with pytest.raises(StreamSourceError, match="part_name_suffix_length=3 would read those"):
        PartFiles(EXAMPLE, 2)()


def test_parts_that_are_not_read_are_named(tmp_path, caplog):
    write_parts(tmp_path, "1\n", "2\n", "3\n", "4\n")
    (tmp_path / "part-x").write_text("no part")

    with caplog.at_level(logging.WARNING, "dagster_dataops"):
        assert len(PartFiles(tmp_path, 2)()) == 2
        assert len(PartFiles(tmp_path, 2, epochs=3)()) == 6
    assert len(caplog.records) == 2
    assert "2 parts are not read, since data_part_num is 2: part-2, part-3" in caplog.text


def test_reading_all_parts_logs_nothing(caplog):
    assert len(PartFiles(EXAMPLE, 2, part_name_suffix_length=3)()) == 18
    assert caplog.text == ""


@pytest.fixture(scope="module")
def twelve(tmp_path_factory):
    return write_parts(tmp_path_factory.mktemp("parts"), *map(str, range(12)))


@given(seed=st.integers(0, 2**64 - 1))
def test_an_order_is_a_permutation_and_the_first_epoch_is_unshuffled(twelve, seed):
    reader = PartFiles(twelve, 12, seed=seed, shuffle_after_epoch=True, epochs=4)
    texts = [row["text"] for row in reader()]
    epochs = [texts[at : at + 12] for at in range(0, 48, 12)]

    assert epochs[0] == [str(number) for number in range(12)]
    assert all(sorted(one) == sorted(epochs[0]) for one in epochs)
    assert len(set(map(tuple, epochs))) > 1
    assert [row["text"] for row in reader()] == texts


@settings(max_examples=at_most(40))
@given(
    window=st.integers(1, 25),
    seed=st.integers(0, 2**64 - 1),
    size=st.one_of(st.none(), st.integers(1, 20)),
)
def test_a_shuffle_is_a_permutation_that_batches_do_not_change(window, seed, size):
    options = {"random_shuffle": True, "shuffle_buffer_size": window, "seed": seed, "prefetch": 0}
    rows = mini(**options)()

    assert sorted(places(rows)) == PLACES
    assert [ROWS[place] for place in places(rows)] == [tuple(row["values"]) for row in rows]
    assert places(mini(batch_size=size, **options)()) == places(rows)
    assert window > 1 or places(rows) == PLACES


def test_a_large_buffer_shuffles_everything():
    firsts = {places(mini(random_shuffle=True, seed=seed)())[0] for seed in range(300)}

    assert firsts == set(PLACES)


def test_epochs_are_shuffled_differently():
    records = mini(random_shuffle=True, epochs=2, seed=1)()

    assert sorted(places(records[:18])) == sorted(places(records[18:])) == PLACES
    assert records[:18] != records[18:]


def test_a_generated_seed_is_reported_and_repeats_the_order():
    drawn = mini(random_shuffle=True, shuffle_after_epoch=True)
    again = mini(random_shuffle=True, shuffle_after_epoch=True, seed=drawn.seed_in_use)

    assert drawn() == drawn() == again()
    assert set(drawn.stream().and_return().seeds.values()) == {drawn.seed_in_use}
    assert mini(random_shuffle=True).seed_in_use != drawn.seed_in_use


def test_a_state_contains_its_generated_seed():
    first = mini(random_shuffle=True, shuffle_after_epoch=True, epochs=2).stream().and_return()
    head = list(itertools.islice(first, 7))
    saved = json.loads(json.dumps(first.state_dict()))
    second = mini(random_shuffle=True, shuffle_after_epoch=True, epochs=2).stream().and_return()
    second.load_state_dict(saved)

    assert second.seeds == first.seeds == saved["seeds"]
    assert second.given_seeds == {}
    assert places(second) == places(first)
    assert head


class Rows(PartFiles):
    """One JSON object a line."""

    def parse(self, line):
        return json.loads(line)


def reader(folder, rows, size, epochs=1, **options):
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    write_parts(folder, lines)
    return Rows(folder, 1, batch_size=size, epochs=epochs, prefetch=0, **options).stream()


@pytest.fixture(scope="module")
def batches(tmp_path_factory):
    folder = tmp_path_factory.mktemp("batches")
    return lambda rows, *given, **options: reader(
        folder, [{"n": row} for row in rows], *given, **options
    )


def sizes(stream):
    return [len(batch["n"]) for batch in stream]


@given(
    count=st.integers(0, 9),
    size=st.integers(1, 12),
    epochs=st.integers(1, 3),
    kind=st.sampled_from(["short", "drop_last", "wrap"]),
)
def test_batches_hold_the_rows_in_their_order(batches, count, size, epochs, kind):
    rows = list(range(count))
    made = list(batches(rows, size, epochs, **({} if kind == "short" else {kind: True})))
    found = [row for batch in made for row in batch["n"]]

    if kind == "short":
        assert found == rows * epochs
    elif kind == "drop_last":
        assert found == rows[: count - count % size] * epochs
    else:
        assert found == list(itertools.islice(itertools.cycle(rows), len(found)))
        assert len(found) == -(-count * epochs // size) * size


@given(
    count=st.integers(0, 5),
    size=st.integers(1, 7),
    epochs=st.one_of(st.none(), st.integers(1, 3)),
    kind=st.sampled_from(["short", "drop_last", "wrap"]),
)
def test_batches_resume_at_any_position(batches, count, size, epochs, kind):
    more = {} if kind == "short" else {kind: True}
    assert_resumes_anywhere(lambda: batches(range(count), size, epochs, **more), limit=12)


def test_rows_of_other_columns_are_refused(tmp_path):
    with pytest.raises(DataPipelineError, match=r"\['a'\] and \['b'\]"):
        list(reader(tmp_path, [{"a": 1}, {"b": 2}], 2))


def test_the_stage_that_makes_a_stream_infinite_is_named(batches):
    assert batches([1], 1, None).endless_stage == "batch"
    assert batches([1], 1).endless_stage is None
    assert sizes(itertools.islice(batches([1, 2], 4, None, wrap=True), 3)) == [4, 4, 4]


def values(record):
    return [tuple(row) for row in record["values"]]
