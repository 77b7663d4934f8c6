from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError, NoTextError
from tests.each import each
from tests.faults.cases import cases
from tests.library.adversarial import HOSTILE
from tests.library.verify.answer_pairs import DIFFERENT, EQUAL, EQUAL_EXPRESSIONS


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"result is \boxed{42}", "42"),
        (r"\boxed{1} and \boxed{\frac{1}{2}}.", r"\frac{1}{2}"),
        (r"$\boxed{ \text{A} }$", r"\text{A}"),
        (r"\boxed {7}", "7"),
        (r"\fbox{x}", "x"),
        (r"so \boxed 5$ it is", "5"),
        (r"so \boxed 5.", "5"),
        (r"\boxed{\boxed{3}}", "3"),
        (r"\boxed{1} then \boxed{2", "1"),
        (r"\boxed{\{1,2\}}", r"\{1,2\}"),
        (r"\boxed{a\\{b}}", r"a\\{b}"),
        (r"\boxedly{4}", None),
        (r"\boxed", None),
        ("no answer", None),
        ("", None),
        (None, None),
    ],
)
def test_the_last_box_is_the_answer(text: str | None, answer: str | None) -> None:
    assert data.verify.BoxedAnswer().forward({"text": text})["answer"] == answer


def test_an_answer_behind_hashes() -> None:
    operator = data.verify.BoxedAnswer(style="hash", input_key="a", output_key="b")
    assert operator([{"a": "1\n#### 2\n#### 1,000 \n"}, {"a": "none"}]) == [
        {"a": "1\n#### 2\n#### 1,000 \n", "b": "1,000"},
        {"a": "none", "b": None},
    ]
    with pytest.raises(DefinitionError, match="style"):
        data.verify.BoxedAnswer(style="box")


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("1,000", "1000"),
        ("1/2", "0.50"),
        (r"\frac{1}{2}", "0.5"),
        (r"-\dfrac12", "-0.5"),
        (r"\frac{-1}{2}", "-.5"),
        ("50%", "1/2"),
        (r"50\%", "0.5"),
        ("$1,234.50", "1234.5"),
        ("1e3", "1000"),
        ("42.", "42"),
        (r"\left( 1, \frac{1}{2} \right)", "(1, 0.5)"),
        (r"\{1, 2\}", "{1.0,2}"),
        (r"90^\circ", "90°"),
        (r"\text{Monday}", "monday"),
        ("−3", "-3"),
        (5, "5.0"),
        (2.5, "5/2"),
        ("x + 1", "x+1"),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_equal_answers(answer, reference) -> None:
    operator = data.verify.MathEqual()
    assert operator.forward({"answer": answer, "reference": reference})["correct"]
    assert operator.forward({"answer": reference, "reference": answer})["correct"]


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("1", "2"),
        ("50%", "50"),
        ("1 1/2", "11/2"),
        ("1,00", "100"),
        ("(1,2]", "(1,2)"),
        ("1,2", "(1,2)"),
        ("1,2", "1,2,3"),
        ("1/0", "2/0"),
        ("1e99999", "2e99999"),
        ("", ""),
        (None, None),
        ("9" * 5000, "9" * 4999),
    ],
)
def test_different_answers(answer, reference) -> None:
    found = data.verify.MathEqual().forward({"answer": answer, "reference": reference})
    assert found["correct"] is False


@given(st.fractions())
def test_numbers_are_read_exactly(number: Fraction) -> None:
    if len(str(number)) <= 100:
        equal = data.verify.MathEqual()
        same = f"{2 * number.numerator}/{2 * number.denominator}"
        assert equal.forward({"answer": str(number), "reference": same})["correct"]
        other = str(number + Fraction(1, 10**40))
        assert not equal.forward({"answer": str(number), "reference": other})["correct"]


@given(st.text("0123456789.,/%-+eE\\frac{}$ ()", max_size=12))
def test_no_text_is_an_error(text: str) -> None:
    operator = data.verify.MathEqual()
    assert operator.forward({"answer": text, "reference": "1"})["correct"] in {True, False}


def test_modes_tolerance_and_keys() -> None:
    operator = data.verify.MathEqual("a", "b", mode="drop", tolerance=0.01)
    assert operator([{"a": "1.005", "b": "1"}, {"a": "1.1", "b": 1}]) == [{"a": "1.005", "b": "1"}]
    assert operator.forward({"a": "2", "b": "1"}).reason == "not_equal"
    with pytest.raises(DefinitionError, match="tolerance"):
        data.verify.MathEqual(tolerance=1)
    with pytest.raises(NoTextError):
        operator.forward({"a": [1], "b": "1"})


def correct(operator, answer, reference):
    return operator.forward({"answer": answer, "reference": reference})["correct"]


def both_ways(operator, pair):
    return [correct(operator, *pair), correct(operator, *pair[::-1])]


@each("pair", EQUAL)
def test_parts_and_forms_of_numbers_are_equal(pair):
    assert both_ways(data.verify.MathEqual(), pair) == [True, True]


@each("pair", [*EQUAL_EXPRESSIONS, *DIFFERENT])
def test_other_answers_differ(pair):
    assert both_ways(data.verify.MathEqual(), pair) == [False, False]


@pytest.fixture(scope="module")
def symbolic():
    pytest.importorskip("math_verify")
    return data.verify.MathEqual(symbolic=True)


@each("pair", [*EQUAL, *EQUAL_EXPRESSIONS])
@pytest.mark.slow
def test_equal_expressions_are_equal(symbolic, pair):
    assert correct(symbolic, *pair) is True


TO_300_DIGITS = [pair for pair in DIFFERENT if "10^{-300}" in pair[0]]  # seconds for each
DIGITS = cases(100, campaign=300)  # beyond those that are computed first, in any case


@pytest.mark.slow
@each("pair", [pair for pair in DIFFERENT if pair not in TO_300_DIGITS])
def test_different_answers_are_never_equal_as_expressions(symbolic, pair):
    assert correct(symbolic, *pair) is False


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "reference"), TO_300_DIGITS)
def test_answers_that_differ_in_the_last_of_many_digits_are_not_equal(symbolic, answer, reference):
    shorter = answer.replace("{-300}", f"{{-{DIGITS}}}")
    assert correct(symbolic, shorter, reference) is False


@pytest.mark.slow
def test_expressions_may_differ_by_the_tolerance():
    pytest.importorskip("math_verify")
    near = data.verify.MathEqual(symbolic=True, tolerance=1e-6)

    assert both_ways(near, (r"\sqrt{2}", "1.4142136")) == [True, True]
    assert both_ways(near, (r"\sqrt{2}", "1.4143")) == [False, False]
    assert both_ways(near, ("x", "x+0.0000001")) == [False, False]


@each(
    "text",
    [
        "(" * 900,
        "9^{9^{9^{9}}}",
        "9" * 200 + "!",
        "((9!)!)!",
        r"\binom{99999999}{5000000}",
        "2^{2^{2^{2^{2^{2}}}}}",
        r"(1+\sqrt{2})^{999}-(3+\sqrt5)^{999}",
        "1," * 20_000,
        "x=" * 1000,
    ],
)
@pytest.mark.slow
@pytest.mark.cpu_timeout(60)
def test_hostile_expressions_end(symbolic, text):
    assert both_ways(symbolic, (text, "1")) == [False, False]
    both_ways(symbolic, (text, f"{text}+x"))


def test_hostile_texts_have_no_answer() -> None:
    data.verify.BoxedAnswer().forward({"text": "\\boxed" + " " * 100_000})
    for text in HOSTILE.values():
        data.verify.MathEqual().forward({"answer": text, "reference": text + "1"})
