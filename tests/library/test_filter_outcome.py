import pytest

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.filter_outcome import FilterOutcome


def test_the_mode_decides_what_is_written() -> None:
    def outcome(mode: str, reason: str | None):
        return FilterOutcome(mode, "s", "r").of({"a": 1, "s": {"x": 0}}, reason, {"y": 2})

    assert outcome("drop", "bad").reason == outcome("both", "bad").reason == "bad"
    assert outcome("drop", None) == {"a": 1, "s": {"x": 0}}
    assert outcome("both", None) == {"a": 1, "s": {"x": 0, "y": 2}}
    assert outcome("tag", "bad") == {"a": 1, "s": {"x": 0, "y": 2}, "r": "bad"}
    assert outcome("tag", None)["r"] is None


def test_wrong_options_and_keys_are_errors() -> None:
    with pytest.raises(DefinitionError, match="use one of 'drop', 'tag', 'both'"):
        FilterOutcome("mark", "s", "r")
    with pytest.raises(TypeError, match="no dict"):
        FilterOutcome("tag", "s", "r").of({"s": [1]}, None, {})
