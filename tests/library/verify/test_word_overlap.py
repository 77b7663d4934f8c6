from typing import Any

import pytest

from dagster_dataops import data
from dagster_dataops.errors import NoTextError


def f1(answer: Any, reference: Any) -> float:
    score: float = data.verify.AnswerF1().forward({"answer": answer, "reference": reference})["f1"]
    return score


@pytest.mark.parametrize(
    ("answer", "reference", "expected"),
    [
        ("Paris is the capital.", "The capital is Paris!", 1.0),
        ("in Paris", "Paris", 2 / 3),
        ("a b b", "b b b", 0.8),  # without the article: b b
        ("don't", "dont", 1.0),
        ("Rome", "Paris", 0.0),
        ("yes", "yes it is", 0.0),
        ("Yes.", "yes", 1.0),
        ("the", "the", 0.0),
        ("", "", 0.0),
        (None, "Paris", 0.0),
        ("Paris", None, 0.0),
        ("Paris", [], 0.0),
        ("Paris", ["Rome", "Paris, France", None], 2 / 3),
    ],
)
def test_the_score_is_that_of_the_best_reference(answer, reference, expected) -> None:
    assert f1(answer, reference) == pytest.approx(expected)


def test_references_may_be_selected_and_may_be_missing() -> None:
    operator = data.verify.AnswerF1("a", "all[*].text", "score")
    records = operator.forward({"a": "x y", "all": [{"text": "z"}, {"text": "x"}]})
    assert records["score"] == pytest.approx(2 / 3)
    assert data.verify.AnswerF1().forward({"answer": "x"})["f1"] == 0.0


@pytest.mark.parametrize(("answer", "reference"), [(1, "1"), ("1", 1), ("1", ["1", 2])])
def test_a_value_that_is_no_text_is_an_error(answer, reference) -> None:
    with pytest.raises(NoTextError):
        f1(answer, reference)
