import pytest

from dagster_dataops.library.analysis.simplified_text import simplified


@pytest.mark.parametrize(
    ("text", "simple"),
    [
        ("", ""),
        (" A\tb\n\nc ", "a b c"),
        ("It's (well-known), isn't it?", "it s well known isn t it"),
        ("1 22 3.5 1,000,000 v1.2.3 4th", "0 0 0 0 0 v0 0 0th"),
        ("Été à Łódź", "ete a łodz"),
        ("٣٫٥ kg", "0 kg"),
        ("a\u0301 \ufb01", "a \ufb01"),
        ("\u0301", ""),
        ("今天，早上", "今天 早上"),
        ("a\x00b\x85c", "a b c"),
        ("\ud800 A", "\ud800 a"),
    ],
)
def test_texts_lose_case_marks_and_values_of_numbers(text: str, simple: str) -> None:
    assert simplified(text) == simple


def test_ascii_texts_are_simplified_as_others() -> None:
    text = "".join(map(chr, range(128))) * 2 + "12.5, x"
    assert simplified(text) == simplified(text + " é").removesuffix(" e")
