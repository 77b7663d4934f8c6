from pathlib import Path

import pytest

from dagster_dataops.checkpoints.folder.check_outcomes import (
    CheckOutcome,
    note_outcomes,
    outcomes_of,
)

GOOD, BAD = CheckOutcome("ERROR", passed=True), CheckOutcome("WARN", passed=False)


def test_outcomes_of_the_same_result_are_kept_together(tmp_path: Path) -> None:
    result = tmp_path / "a_results.jsonl"
    assert outcomes_of(result, "x") == {}
    note_outcomes(result, "x", {"b": GOOD})
    note_outcomes(result, "x", {"a": BAD})
    assert outcomes_of(result, "x") == {"a": BAD, "b": GOOD}
    note_outcomes(result, "x", {"b": BAD})
    assert outcomes_of(result, "x") == {"a": BAD, "b": BAD}


def test_outcomes_of_another_result_are_not_known(tmp_path: Path) -> None:
    result = tmp_path / "a_results.jsonl"
    note_outcomes(result, "x", {"a": GOOD})
    assert outcomes_of(result, "y") == {}
    note_outcomes(result, "y", {"b": GOOD})
    assert outcomes_of(result, "y") == {"b": GOOD}
    assert outcomes_of(result, "x") == {}
    note_outcomes(tmp_path / "c_results.jsonl", "", {"a": GOOD})
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"fingerprint": "x"}', b'{"fingerprint": "x", "checks": [1]}']
)
def test_a_malformed_file_is_as_a_missing_one(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".a_checks.json").write_bytes(content)
    assert outcomes_of(tmp_path / "a_results.jsonl", "x") == {}
