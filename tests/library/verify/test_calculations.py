"""verify.Calculations."""

import random
from fractions import Fraction
from typing import Any

from dagster_dataops import data
from tests.each import each

RIGHT = [
    "48/2=24",
    "48 / 2 = 24.0",
    "20*.05=1",
    "5.00-.01=4.99",
    "1/2=.5",
    "(5+3)*2=16",
    "2*(3+(4-1))=12",
    "-3+5=2",
    "3*-2=-6",
    "5--3=8",
    "+4+4=8",
    "1,200*5=6,000",
    "1 200 000/2=600 000",
    "1'000+1=1'001",
    "12,34,567-1=1234566",
    "10%*50=5",
    "50*(100%-10%)=45",
    "200*5%=10",
    "3x4=12",
    "3 X 4 \u00d7 2 \u00f7 8 = 3",
    "9\u22124=5",
    "\uff13\uff0b\uff14\uff1d\uff17",
    "$12*10=$120",
    "$5+$-3=-$ -2",
    "5\u20ac+\u00a33=8",
    "6=2*3=6",
    "8/4/2=1",
    "10-4-3=3",
    "2+3*4=14",
    "0*5=0",
    "5.=5",
    "0.1+0.2=0.3",
    "((((((((((2))))))))))=2",
    "1/3*3=1",
    "9" * 400 + "*0=0",
]
# By calculation, the reason and the end of the error.
WRONG = {
    "48/2=25": ("wrong", "the value is 24, not 25"),
    "6=2*3=7": ("wrong", "the value is 6, not 7"),
    "100/3=33.33": ("wrong", "the value is 33.3333333333, not 33.33"),
    "0.1+0.2=0.30000000000000004": ("wrong", "the value is 0.3, not 0.3"),
    "50-10%=45": ("wrong", "the value is 49.9, not 45"),
    "1-1=0.0001": ("wrong", "the value is 0, not 0.0001"),
    "9" * 400 + "*1=0": ("wrong", "the value is a number of 400 digits, not 0"),
    "5/0=0": ("division_by_zero", "it divides by zero"),
    "1/(2-2)=1": ("division_by_zero", "it divides by zero"),
    "0/0=1": ("division_by_zero", "it divides by zero"),
    "": ("malformed", "it has no '='"),
    "48/2": ("malformed", "it has no '='"),
    "48/2=": ("malformed", "it is not complete"),
    "=24": ("malformed", "it is not complete"),
    "3+=3": ("malformed", "it is not complete"),
    "(3+4=7": ("malformed", "it is not complete"),
    "3+4)=7": ("malformed", "it cannot be read at ')'"),
    "()=0": ("malformed", "it cannot be read at ')'"),
    "4*2=8dollars": ("malformed", "it cannot be read at 'dollars'"),
    "n+1=2": ("malformed", "it cannot be read at 'n+1'"),
    "2**3=8": ("malformed", "it cannot be read at '*3'"),
    "2^3=8": ("malformed", "it cannot be read at '^3'"),
    "5$600=5600": ("malformed", "it cannot be read at '600'"),
    "1e3=1000": ("malformed", "it cannot be read at 'e3'"),
    "3 4=7": ("malformed", "it cannot be read at '4'"),
    "1,00+1=101": ("malformed", "it cannot be read at ',00+1'"),
    "1,0000=1": ("malformed", "it cannot be read at ',0000'"),
    "1.2.3=1": ("malformed", "it cannot be read at '.3'"),
    ".=0": ("malformed", "it cannot be read at '.'"),
    "2 \u00d7 x = 6": ("malformed", "it cannot be read at 'x'"),
    "2(3)=6": ("malformed", "it cannot be read at '(3)'"),
    "10%3=1": ("malformed", "it cannot be read at '3'"),
    "\u0663+1=4": ("malformed", "it cannot be read at '\u0663+1'"),
    "__import__('os').system('x')=0": (
        "malformed",
        "it cannot be read at \"__import__('os').system('x')\"",
    ),
    "(" * 51 + "1" + ")" * 51 + "=1": (
        "malformed",
        "it has more than 50 parentheses in one another",
    ),
    "1" + "+1" * 500 + "=501": ("malformed", "it has more than 1,000 characters"),
}


def checked(text: Any, **options: Any) -> Any:
    return data.verify.Calculations(**options).forward({"text": text})


@each("calculation", RIGHT)
def test_a_right_calculation_is_valid(calculation: str) -> None:
    text = f"He has <<{calculation}>> left."
    assert checked(text) == {"text": text, "valid": True, "error": None}


@each("case", WRONG.items())
def test_a_wrong_calculation_is_named_with_its_reason(case: tuple[str, tuple[str, str]]) -> None:
    calculation, (reason, error) = case
    text = f"First <<1+1=2>>2, then <<{calculation}>>, and <<2+2=5>>."

    record = checked(text)

    assert (record["valid"], record["error"]) == (
        False,
        f"<<{calculation[:80]}>>: {error}",
    )
    assert checked(text, mode="drop").reason == reason


def test_an_annotation_that_is_not_closed_on_its_line_is_wrong() -> None:
    for text in ("a <<1+1=2", "a <<1+1\n=2>>", "a <<1+1=2 <<2+2=4>>"):
        record = checked(text)
        assert not record["valid"]
        assert record["error"].endswith(": it is not closed by '>>' on its line")


def test_a_tolerance_is_a_share_of_the_first_value() -> None:
    assert checked("<<100/3=33.33>>", tolerance=0.001)["valid"]
    assert not checked("<<100/3=33>>", tolerance=0.001)["valid"]
    assert checked("<<1000+0=1010>>", tolerance=0.01)["valid"]
    assert not checked("<<1000+0=1010.01>>", tolerance=0.01)["valid"]
    assert not checked("<<0=0.1>>", tolerance=0.5)["valid"]


def test_a_text_without_annotations_is_wrong_if_you_say_so() -> None:
    for text in ("The answer is 4.", "", None):
        assert checked(text) == {"text": text, "valid": True, "error": None}
        assert checked(text, missing="wrong")["error"] == "no_calculation"
        assert checked(text, missing="wrong", mode="both").reason == "no_calculation"
    assert checked("<<1+1=2>>", missing="wrong")["valid"]


def test_a_comma_may_come_before_decimals() -> None:
    assert checked("<<1.200,5+0,5=1.201>>", decimal_comma=True)["valid"]
    assert not checked("<<1.200,5+0,5=1.201>>")["valid"]


def test_columns_and_modes_are_those_of_all_checks() -> None:
    operator = data.verify.Calculations(
        "turns[*].content", "right", None, mode="both", _concurrency_mode="thread"
    )
    good = {"turns": [{"content": "<<1+1=2>>"}, {"content": "<<2+2=4>>"}]}
    bad = {"turns": [{"content": "<<1+1=2>>"}, {"content": "<<2+2=5>>"}]}
    assert operator([good, bad]) == [{**good, "right": True}]


def expression(source: random.Random, depth: int) -> tuple[str, Fraction]:
    """Return a sum and its value, by Python's own fractions."""
    if depth == 0 or source.random() < 0.2:
        whole, cents = source.randint(0, 99_999), source.randint(0, 99)
        text = f"{whole:,}.{cents:02}" if source.random() < 0.5 else f"{whole}.{cents:02}"
        return text, Fraction(whole) + Fraction(cents, 100)
    (left, a), (right, b) = (expression(source, depth - 1) for _ in range(2))
    sign = source.choice("+-*/" if b else "+-*")
    value = {"+": a + b, "-": a - b, "*": a * b, "/": a / b if b else a}[sign]
    space = " " * source.randint(0, 1)
    return f"({left}){space}{sign}{space}({right})", value


def test_random_sums_have_the_values_of_exact_fractions() -> None:
    for seed in range(300):
        source = random.Random(seed)
        text, value = expression(source, 3)
        if len(text) > 900:
            continue
        result = f"({value.numerator})/{value.denominator}"
        assert checked(f"<<{text}={result}>>")["valid"], text
        assert not checked(f"<<{text}={result}+1>>")["valid"], text


def test_hostile_texts_are_read_quickly() -> None:
    for text in ("<" * 200_000, "<<" + "1" * 200_000, "<<1=1>>" * 30_000, "<<" + "(" * 200_000):
        checked(text)
