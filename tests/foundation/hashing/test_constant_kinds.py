"""Hundreds of kinds of values: a change is noticed or reported, and digests are equal everywhere.

The kinds are in `tests.foundation.hashing.constant_kinds`.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

_FEW = 10  # kinds that cannot be compared


@pytest.fixture(scope="module")
def measured() -> list[dict[str, Any]]:
    """Return the digests of all kinds in two new interpreters with other hash seeds."""
    started = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.foundation.hashing.constant_kinds"],
            cwd=Path(__file__).parents[2],
            env=os.environ | {"PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
        )
        for seed in ("1", "2")
    ]
    return [json.loads(process.communicate()[0]) for process in started]


@pytest.mark.parametrize("place", ["code", "options"])
def test_every_change_of_a_value_is_noticed_or_reported(
    measured: list[dict[str, Any]], place: str
) -> None:
    kinds = measured[0][place]
    reported = [name for name, (one, other) in kinds.items() if one[1:] or other[1:]]
    missed = [
        name for name, (one, other) in kinds.items() if one[0] == other[0] and name not in reported
    ]
    assert missed == []
    assert len(reported) < _FEW
    assert len(kinds) > 300


@pytest.mark.parametrize("place", ["code", "options", "harmless"])
def test_digests_are_the_same_in_every_process(measured: list[dict[str, Any]], place: str) -> None:
    one, other = (of[place] for of in measured)
    assert [name for name in one if one[name] != other[name]] == []


def test_what_only_reports_synchronizes_or_gives_access_does_not_count(
    measured: list[dict[str, Any]],
) -> None:
    kinds = measured[0]["harmless"]
    assert [name for name, (one, other) in kinds.items() if one != other or one[1:]] == []
