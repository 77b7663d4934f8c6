import unicodedata

import pytest

from dagster_dataops.library.analysis.unicode_normalization import normalized


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
@pytest.mark.parametrize("text", ["", "abc", "é ﬁ Ａ e\u0323\u0301", "Tiếng Việt" * 400])
def test_texts_are_normalized_as_unicodedata_does(form, text):
    assert normalized(form, text) == unicodedata.normalize(form, text)


@pytest.mark.cpu_timeout(30)
def test_long_runs_of_marks_take_linear_time():
    text = "a" + "\u0301\u0323" * 100_000

    assert len(normalized("NFD", text)) == len(text)
