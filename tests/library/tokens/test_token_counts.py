import pytest

from dagster_dataops import Drop, data
from dagster_dataops.errors import DefinitionError, NoTextError
from tests.library.adversarial import NO_TEXTS, survives


def test_tokens_are_counted() -> None:
    assert data.tokens.Count()([{"text": "hello world"}]) == [{"text": "hello world", "tokens": 2}]
    operator = data.tokens.Count("bytes", input_key="a", output_key="n")
    assert operator.forward({"a": "é"}) == {"a": "é", "n": 2}


@pytest.mark.parametrize(
    ("count", "reason"),
    [(0, "empty"), (1, "low_num_token"), (2, None), (3, None), (4, "high_num_token")],
)
def test_limits_are_inclusive(count: int, reason: str | None) -> None:
    options = {"min_tokens": 2, "max_tokens": 3, "tokenizer": "whitespace"}
    record = {"text": "a " * count}
    found = data.tokens.Filter(**options).forward(dict(record))
    assert found == record if reason is None else isinstance(found, Drop) and found.reason == reason
    tagged = data.tokens.Filter(**options, mode="tag").forward(dict(record))
    assert tagged == {**record, "stats": {"num_token": count}, "drop_reason": reason}
    both = data.tokens.Filter(**options, mode="both").forward({**record, "stats": {"a": 1}})
    if reason is None:
        assert both == {**record, "stats": {"a": 1, "num_token": count}}
    else:
        assert both.reason == reason


def test_limits_may_be_off() -> None:
    options = {"min_tokens": None, "tokenizer": "bytes"}
    assert data.tokens.Filter(**options).forward({"text": "a"}) == {"text": "a"}
    assert (
        data.tokens.Filter(**options, max_tokens=0).forward({"text": "a"}).reason
        == "high_num_token"
    )
    with pytest.raises(DefinitionError, match="mode"):
        data.tokens.Filter(mode="mark")


def test_ids_are_written() -> None:
    operator = data.tokens.Encode("bytes", max_tokens=3, end_id=0)
    assert operator.forward({"text": "abcd"})["token_ids"] == [97, 98, 0]
    assert operator.forward({"text": ""})["token_ids"] == [0]
    assert data.tokens.Encode().forward({"text": "hello world"})["token_ids"] == [24912, 2375]
    with pytest.raises(DefinitionError, match="no token ids"):
        data.tokens.Encode("whitespace")
    with pytest.raises(DefinitionError, match="'max_tokens' must be at least 1, or None; got 0"):
        data.tokens.Encode("bytes", max_tokens=0, end_id=0)


@pytest.mark.parametrize("name", ["Count", "Filter", "Encode"])
def test_hostile_texts_are_counted(name: str) -> None:
    operator = getattr(data.tokens, name)()
    survives(operator.forward)
    for value in NO_TEXTS:
        with pytest.raises(NoTextError):
            operator.forward({"text": value})
