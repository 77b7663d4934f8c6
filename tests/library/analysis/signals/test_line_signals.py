import re

from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.library.analysis.analyzed_text import AnalyzedText
from dagster_dataops.library.analysis.signals import line_signals

texts = st.text("ab \n\t", max_size=30)


@given(texts)
def test_lines_are_split_as_by_patterns(text):
    analyzed = AnalyzedText(text)

    assert line_signals.newline_runs(analyzed) == re.split("\n+", text)
    assert line_signals.paragraphs(analyzed) == re.split("\n{2,}", text.strip())
    assert line_signals.filled_lines(analyzed) == [one for one in text.split("\n") if one.strip()]


def test_numbers_of_lines_and_paragraphs():
    assert line_signals.num_lines(AnalyzedText("a\n\nb\n")) == 3
    assert line_signals.num_paragraphs(AnalyzedText("a\n\n\nb\n")) == 2
    assert line_signals.num_paragraphs(AnalyzedText(" \n")) == 0
