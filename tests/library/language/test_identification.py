import importlib.util

import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError

GERMAN = "Am Sonntag sind wir mit dem Fahrrad zum See gefahren und haben gebadet."
ENGLISH = "On Sunday we went to the lake by bicycle and had a swim in the cold water."


def test_the_language_of_a_text_is_written():
    first, second = data.language.Identify()([{"text": GERMAN}, {"text": " "}])

    assert first["lang"] == "de"
    assert 0.9 < first["lang_score"] <= 1
    assert second == {"text": " ", "lang": None, "lang_score": 0.0}


def test_the_beginning_of_a_long_text_counts():
    operator = data.language.Identify(
        max_chars=len(GERMAN) + 2, language_key="l", language_score_key="s"
    )
    cut, whole = (
        operator.forward({"text": f"{GERMAN} {ENGLISH * 9}"}),
        operator.forward({"text": GERMAN}),
    )

    assert (cut["l"], cut["s"]) == (whole["l"], whole["s"])
    with pytest.raises(DefinitionError, match="max_chars"):
        data.language.Identify(max_chars=0)


def test_a_text_may_be_read_as_a_whole():
    given = {"text": f"{GERMAN} {ENGLISH * 60}"}

    assert data.language.Identify().forward(dict(given))["lang"] == "en"
    assert data.language.Identify(max_chars=len(GERMAN)).forward(dict(given))["lang"] == "de"
    whole = data.language.Identify(max_chars=None).forward(dict(given))
    assert whole == data.language.Identify(max_chars=10**6).forward(dict(given))


@pytest.mark.cpu_timeout(60)
def test_a_long_part_of_a_text_is_read_in_linear_time():
    data.language.Identify(max_chars=10**6).forward({"text": "\u0301\u0323" * 50_000})


def test_records_in_other_languages_are_dropped():
    records = [{"text": text} for text in (ENGLISH, GERMAN, "", "Hello.")]
    operator = data.language.Filter("en")

    assert operator(records) == [{"text": ENGLISH}]
    reasons = [getattr(operator.forward(dict(one)), "reason", None) for one in records]
    assert reasons == [None, "language", "empty", "language"]
    assert (
        data.language.Filter([], min_language_score=1.01).forward(records[0]).reason
        == "language_score"
    )


def test_the_language_can_be_written_instead():
    operator = data.language.Filter(["en", "fr"], label_only=True)

    kept, foreign = operator([{"text": ENGLISH}, {"text": GERMAN}])
    assert kept["stats"]["lang"] == "en"
    assert kept["drop_reason"] is None
    assert foreign["stats"]["lang_score"] > 0.9
    assert foreign["drop_reason"] == "language"
    (both,) = data.language.Filter("en", mode="both")([{"text": ENGLISH}, {"text": GERMAN}])
    assert both["stats"] == kept["stats"]
    assert "drop_reason" not in both


def test_backends_are_checked():
    with pytest.raises(DefinitionError, match="py3langid"):
        data.language.Identify(backend="cld3")
    with pytest.raises(DefinitionError, match="model_path"):
        data.language.Identify(backend="fasttext")
    with pytest.raises(DefinitionError, match="model_path"):
        data.language.Identify(model_path="lid.176.bin")


@pytest.mark.skipif(importlib.util.find_spec("lingua") is None, reason="lingua is not installed")
def test_lingua_identifies_languages():
    operator = data.language.Identify(backend="lingua")

    assert operator.forward({"text": GERMAN})["lang"] == "de"
    assert operator.forward({"text": "?!"})["lang"] is None
    assert operator.forward({"text": f"{GERMAN}\ud800"})["lang"] == "de"
