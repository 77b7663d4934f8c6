"""Names of part files, and their shards."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops import PartFiles
from dagster_dataops.errors import StreamSourceError
from tests.readers.helpers import EXAMPLE, write_parts


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
