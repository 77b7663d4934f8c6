import math
from typing import Any

import pytest

from dagster_dataops.library.dedup.algorithms.option_checks import rank_value


@pytest.mark.parametrize(
    ("keep", "value"),
    [("first", 0), ("longest", 3), ("score", 1.5), ("none", None), ("nan", None), ("gone", None)],
)
def test_records_are_ranked_by_length_or_a_number(keep: str, value: float | None) -> None:
    record: Any = {"score": 1.5, "none": None, "nan": math.nan}
    found = rank_value(record, keep, "abc")
    assert found == value if value is not None else found < -1e300


def test_other_values_have_no_rank() -> None:
    with pytest.raises(TypeError, match="keep='score' needs numbers.*found a str: 'x'"):
        rank_value({"score": "x"}, "score", "")
