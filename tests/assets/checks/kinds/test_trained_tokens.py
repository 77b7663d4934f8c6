"""Checks of labels to train on."""

import pytest

from dagster_dataops import checks
from dagster_dataops.errors import ConfigurationError
from tests.assets.checks.finding import Find

IGNORED = -100


def record(trained: int, length: int = 4) -> dict[str, list[int]]:
    ids = list(range(97, 97 + length))
    return {"input_ids": ids, "labels": [IGNORED] * (length - trained) + ids[length - trained :]}


def test_the_share_of_trained_tokens_is_counted(find: Find) -> None:
    finding = find(checks.trained_tokens(), [record(1), record(2), record(3), record(1, 8)])

    assert finding.passed
    assert finding.text == (
        "35.0 % of 20 tokens are trained; 0 records of 4 have labels that cannot be right."
    )
    assert finding.numbers == {
        "records": 4,
        "offending_records": 0,
        "tokens": 20,
        "trained_tokens": 7,
        "trained_share": 0.35,
        "min_share": 0.125,
        "median_share": 0.25,
        "max_share": 0.75,
        "longest": 8,
    }
    assert find(checks.trained_tokens(), []).passed


def test_labels_that_cannot_be_right_are_found(find: Find) -> None:
    shifted = {"input_ids": [1, 2, 3], "labels": [2, 3, IGNORED]}
    finding = find(
        checks.trained_tokens(),
        [
            record(0),
            shifted,
            {"input_ids": [1], "labels": [1, 2]},
            {"input_ids": [1]},
            {"input_ids": "ab", "labels": [1]},
            {"input_ids": [1.0], "labels": [1]},
            record(1),
        ],
    )

    assert not finding.passed
    assert [(row["line"], row["problem"]) for row in finding.rows()] == [
        (1, "no token is trained"),
        (2, "label 0 is neither the id nor -100"),
        (3, "1 ids, 2 labels"),
        (4, "labels is no list of integers"),
        (5, "input_ids is no list of integers"),
        (6, "input_ids is no list of integers"),
    ]


def test_too_few_or_too_many_trained_tokens_fail(find: Find) -> None:
    for trained, passes in ((1, False), (2, True), (3, True), (4, False)):
        assert find(checks.trained_tokens(0.5, 0.75), [record(trained)]).passed is passes
    with pytest.raises(ConfigurationError, match="shares in order"):
        checks.trained_tokens(0.9, 0.1)


def test_the_first_records_are_shown_as_text(find: Find) -> None:
    check = checks.trained_tokens(tokenizer="bytes", samples=2)

    assert find(check, [record(1), record(2), record(3)]).samples == (
        "Trained are the parts in `[[ ]]`.\n\n**record 0**\n\n```text\nabc[[d]]\n```\n\n"
        "**record 1**\n\n```text\nab[[cd]]\n```"
    )
    assert find(checks.trained_tokens(), [record(1)]).samples == ""
    unknown = find(check, [{"input_ids": [999], "labels": [999]}]).samples
    assert "the tokenizer does not know the ids" in unknown
    with pytest.raises(ConfigurationError, match="no token ids"):
        checks.trained_tokens(tokenizer="whitespace")
