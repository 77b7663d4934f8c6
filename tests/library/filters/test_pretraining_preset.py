import pytest

from dagster_dataops import Drop, data

GOOD = (
    "The harbour was quiet when the first boats came back from the sea that morning.\n"
    "Nobody had slept, and the lamps along the quay were still lit for those who were late.\n"
    "Children ran down to see what had been caught and to carry the baskets of their fathers.\n"
    "My uncle counted the fish, wrote the number into a small book and said nothing about it.\n"
    "Later we all sat in the kitchen, and there was bread with butter and a pot of hot tea."
)
NOTICE = "This site uses cookies to improve how it works for all of us."


def reason(text, **options):
    returned = data.filters.Pretraining(**options).forward({"text": text})
    return returned.reason if isinstance(returned, Drop) else None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GOOD, None),
        ("", "empty"),
        ("two words", "top_2_gram"),
        (GOOD[:200], "gopher_short_doc"),
        (GOOD + "\nIt ended {here} as it had begun.", "curly_bracket"),
        (GOOD.rpartition("\n")[0], "too_few_sentences"),
    ],
)
def test_the_first_reason_wins(text, expected):
    assert reason(text) == expected


def test_the_rules_of_fineweb_are_about_the_text_that_is_left():
    menu = "\n".join(f"Home{letter} Ask{letter} Go{letter}." for letter in "abcdefghijkl")

    assert reason(f"{GOOD}\n{menu}") == "short_line_ratio"


def test_bad_lines_are_removed_in_the_text_or_elsewhere():
    text = f"{GOOD}\n{NOTICE}"

    assert data.filters.Pretraining()([{"text": text}]) == [{"text": GOOD}]
    assert data.filters.Pretraining(output_key="clean")([{"text": text}]) == [
        {"text": text, "clean": GOOD}
    ]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"lang": "en", "lang_score": 0.65}, None),
        ({"lang": "en", "lang_score": 0.64}, "language"),
        ({"lang": "de", "lang_score": 1.0}, "language"),
        ({"lang": None, "lang_score": None}, "language"),
    ],
)
def test_the_language_is_read_from_the_record(columns, expected):
    operator = data.filters.Pretraining(languages=["en", "fr"])

    returned = operator.forward({"text": GOOD, **columns})

    assert (returned.reason if isinstance(returned, Drop) else None) == expected


def test_the_language_is_identified_where_the_record_does_not_say_it():
    pytest.importorskip("py3langid")

    assert reason(GOOD, languages=["en"]) is None
    assert reason(GOOD, languages=["de"]) == "language"
    assert reason("", languages=["en"]) == "language"
    assert data.filters.Pretraining(languages=["en"])([{"text": GOOD}]) == [{"text": GOOD}]


@pytest.mark.parametrize("text", [GOOD, f"{GOOD}\n{NOTICE}", "", "two words", f"{GOOD}\n{{"])
def test_tag_says_what_drop_does_and_what_the_single_filters_say(text):
    (tagged,) = data.filters.Pretraining(mode="tag")([{"text": text}])

    assert tagged["text"] == text
    assert tagged["drop_reason"] == reason(text)
    record = {"text": text}
    for name in ("GopherRepetition", "GopherQuality"):
        record = getattr(data.filters, name)(mode="tag").forward(record)
    assert record["stats"].items() <= tagged["stats"].items()
    assert {"c4_sentences", "line_punct_ratio", "newlines_per_word"} <= tagged["stats"].keys()


@pytest.mark.slow
def test_the_chain_of_single_filters_keeps_the_same():
    texts = [GOOD, f"{GOOD}\n{NOTICE}", GOOD[:200], "two words", "", f"{GOOD}\n{GOOD}"]
    records = [{"text": text} for text in texts]
    chain = [{"text": text} for text in texts]
    for part in (
        data.filters.GopherRepetition(),
        data.filters.GopherQuality(),
        data.filters.C4Quality(filter_no_terminal_punct=False),
        data.filters.FineWebQuality(),
    ):
        chain = part(chain)

    assert data.filters.Pretraining()(records) == chain != []
