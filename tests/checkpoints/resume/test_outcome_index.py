import pickle
from pathlib import Path

import pytest

from dagster_dataops.checkpoints.journal.stored_outcomes import StoredOutcome, line_digest
from dagster_dataops.checkpoints.resume.outcome_index import OutcomeIndex
from dagster_dataops.errors import StorageError


def outcome(line: bytes, place: int = 0) -> StoredOutcome:
    return StoredOutcome(line_digest(line), 1, place, 10, 1, 0xFFFFFFFF)


def test_an_outcome_is_found_by_its_line_with_the_first_source_that_has_it(tmp_path: Path) -> None:
    with OutcomeIndex(tmp_path / "index") as index:
        index.add(0, [outcome(b"a", 1)])
        index.add(1, [outcome(b"a", 2), outcome(b"b", 3)])
        assert index.find(line_digest(b"a")) == (0, outcome(b"a", 1))
        assert index.find(line_digest(b" b\r\n")) == (1, outcome(b"b", 3))
        assert index.find(line_digest(b"c")) is None
    assert not (tmp_path / "index").exists()


def test_a_place_beyond_four_gigabytes_is_kept(tmp_path: Path) -> None:
    far = outcome(b"far", 2**62)
    with OutcomeIndex(tmp_path / "index") as index:
        index.add(0, [far])
        assert index.find(far.digest) == (0, far)


def test_a_disk_that_refuses_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    with OutcomeIndex(tmp_path / "index") as index:
        index._database.execute("PRAGMA max_page_count = 3")
        lots = (outcome(b"%d" % number) for number in range(10_000))
        with pytest.raises(StorageError, match="index.*write the index of outcomes.*full") as found:
            index.add(0, lots)
    assert str(pickle.loads(pickle.dumps(found.value))) == str(found.value)
