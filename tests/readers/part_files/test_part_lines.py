"""Lines of part files."""

import pytest

from dagster_dataops import PartFiles
from dagster_dataops.errors import StreamSourceError, StreamStateError
from tests.readers.helpers import mini, places, write_parts
from tests.readers.part_files.rows import values


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("1,2\n\n3,4\n", "line 2: the line is blank"),
        ("1,2\n7\n", "line 2: it has 1 column, not 2"),
        ("1,2,3\n", "line 1: it has 3 columns, not 2"),
        ("1.5abc,1\n", "line 1: column 1 is '1.5abc'"),
        ("1,0x10\n", "line 1: column 2 is '0x10'"),
        ("nan,1\n", "column 1 is 'nan'"),
        ("1,inf\n", "column 2 is 'inf'"),
        ("1_0,1\n", "column 1 is '1_0'"),
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
