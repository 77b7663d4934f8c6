"""Keys in the options of an operator."""

import pytest

from dagster_dataops.assets.metadata.key_options import column_of, written_keys


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({"input_key": "a"}, {"a": ["a"]}, id="no output key writes in place"),
        pytest.param({"input_key": "a", "output_key": "b"}, {"b": ["a"]}, id="one to one"),
        pytest.param(
            {"input_key": ["a", "b"], "output_key": "c"}, {"c": ["a", "b"]}, id="many to one"
        ),
        pytest.param(
            {"input_key": ["a", "b"], "output_key": ["c", "d"]},
            {"c": ["a"], "d": ["b"]},
            id="pair by pair",
        ),
        pytest.param({"input_key": None, "output_key": "b"}, {}, id="unknown input"),
        pytest.param({}, {}, id="no convention"),
    ],
)
def test_written_keys_follow_the_convention(options: dict, expected: dict) -> None:
    assert written_keys(options) == expected


@pytest.mark.parametrize(
    ("key", "expected"),
    [("meta.lang", "meta"), ("texts[*].body", "texts"), ("a.b", "a.b"), (".x", ".x"), ("c", "c")],
)
def test_a_key_leads_into_a_column(key: str, expected: str) -> None:
    assert column_of(key, {"meta", "texts", "a.b"}) == expected
