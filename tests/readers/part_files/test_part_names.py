"""Names of part files, and their shards."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops import PartFiles
from dagster_dataops.errors import StreamSourceError
from dagster_dataops.readers.part_files.part_names import PartNames
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
def test_numbers_are_filled_up_and_never_cut(length, number, name):
    assert PartNames("x", number + 1, "part-", length).names[number] == name


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


@given(seed=st.integers(0, 2**64 - 1), epoch=st.integers(0, 9))
def test_an_order_is_a_permutation_and_the_first_epoch_is_unshuffled(seed, epoch):
    parts = PartNames("x", 12, "part-", -1)

    assert sorted(parts.order(seed, epoch)) == sorted(parts.names)
    assert parts.order(seed, epoch) == parts.order(seed, epoch)
    assert parts.order(seed, 0) == parts.names
