import pytest

from dagster_dataops import data


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("Ένα κείμενο", "Greek"),
        ("Текст", "Cyrillic"),
        ("نص عربي", "Arabic"),
        ("हिन्दी", "Devanagari"),
        ("日本", "Han"),
        ("ｱｲｳー", "Katakana"),
        ("한국어", "Hangul"),
        ("ＡªK", "Latin"),
        ("𐌀𐌁", "Old Italic"),
        ("𝐀𝐁", "Common"),
        ("1, 2!", None),
        ("", None),
    ],
)
def test_the_script_of_most_letters_is_written(text, script):
    assert data.language.Script().forward({"text": text})["script"] == script


def test_shares_are_in_falling_order():
    record = data.language.Script(script_key="s", shares_key="all").forward(
        {"text": "日本語 ab 1."}
    )

    assert record["s"] == "Han"
    assert list(record["all"].items()) == [("Han", 0.6), ("Latin", 0.4)]
