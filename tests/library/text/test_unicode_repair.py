import unicodedata

import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError


def change(text, **options):
    return data.text.FixUnicode(**options).forward({"text": text})["text"]


def test_wrong_decodings_are_repaired():
    assert change("Lâ€™Ã©tÃ©") == "L’été"
    assert change("Lâ€™Ã©tÃ©", preset="ftfy") == "L'été"
    assert change("a\x1b[31mb\x00 &amp; c") == "ab & c"


def test_switches_override_the_preset():
    assert change("“a” ﬁ") == "“a” ﬁ"
    assert change("“a” ﬁ", uncurl_quotes=True) == '"a" ﬁ'
    assert change("“a” ﬁ", preset="datajuicer", fix_latin_ligatures=False) == '"a" ﬁ'
    assert change("e\u0301") == "e\u0301"
    assert change("e\u0301", normalization="NFC") == "é"
    assert change("&lt;", unescape_html=False) == "&lt;"


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
@pytest.mark.parametrize("text", ["", "abc", "é Ａ e\u0323\u0301", "Tiếng Việt" * 400])
def test_texts_are_normalized_as_unicodedata_does(form, text):
    options = {"fix_latin_ligatures": False, "fix_character_width": False}
    assert change(text, normalization=form, **options) == unicodedata.normalize(form, text)


@pytest.mark.cpu_timeout(30)
def test_long_runs_of_marks_take_linear_time():
    assert len(change("a" + "\u0301\u0323" * 100_000, normalization="NFD")) == 200_001


def test_nested_entities_are_decoded_in_one_pass():
    assert change("&" + "amp;" * 10_000 + "lt;") == "<"
    assert change("&" + "#38;" * 10) == "&"


def test_an_unknown_preset_is_refused():
    with pytest.raises(DefinitionError, match="fineweb"):
        data.text.FixUnicode(preset="x")


@pytest.mark.parametrize("preset", ["fineweb", "ftfy"])
@pytest.mark.parametrize(
    "text",
    ["a\nÃ©\nb", "<b>\n&lt;é\n", "é\n\n&amp;lt;", "＜\n&lt;", "\r\nÃ©", "a<b\n＆lt;", "\n", ""],
)
def test_lines_that_are_left_alone_change_nothing(text, preset):
    operator = data.text.FixUnicode(preset=preset)

    assert operator._fixed_lines(text) == operator._fix_text(text, operator._config)
