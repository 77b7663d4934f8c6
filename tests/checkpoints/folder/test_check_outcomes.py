from concurrent.futures import ThreadPoolExecutor
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
    assert {path.name for path in tmp_path.iterdir()} == {".a_checks.json", ".a_checks.lock"}


def test_check_steps_that_run_at_once_lose_no_outcome(tmp_path: Path) -> None:
    result = tmp_path / "a_results.jsonl"
    names = [f"check {number}" for number in range(32)]
    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(lambda name: note_outcomes(result, "x", {name: GOOD}), names))
    assert outcomes_of(result, "x") == dict.fromkeys(names, GOOD)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"fingerprint": "x"}', b'{"fingerprint": "x", "checks": [1]}']
)
def test_a_malformed_file_is_as_a_missing_one(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".a_checks.json").write_bytes(content)
    assert outcomes_of(tmp_path / "a_results.jsonl", "x") == {}
