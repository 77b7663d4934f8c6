import pytest

from dagster_dataops import Drop, data
from dagster_dataops.library.analysis.signals import repetition_signals

PROSE = "The harbour was quiet when the first boats came back and nobody had slept that night. "
TWICE = PROSE + "Later the children ran down to see what had been caught that day. "
TWICE = f"{TWICE} x {TWICE}"


def reason(name, text, **options):
    returned = getattr(data.filters, name)(**options).forward({"text": text})
    return returned.reason if isinstance(returned, Drop) else None


def signals(name, text, **options):
    return getattr(data.filters, name)(mode="tag", **options).forward({"text": text})["stats"]


class TestGopherQuality:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            (PROSE * 4, None),
            ("", "gopher_short_doc"),
            ("word " * 49, "gopher_short_doc"),
            (", . ! - " * 50, "gopher_short_doc"),
            ("of a " * 50, "gopher_below_avg_threshold"),
            ("incomprehensibility " * 60, "gopher_above_avg_threshold"),
            (PROSE * 4 + "# " * 10, "gopher_too_many_hashes"),
            (PROSE * 4 + "… ... " * 4, "gopher_too_many_ellipsis"),
            ("• the boats and\n- some more words\n" * 20, "gopher_too_many_bullets"),
            ("* the boats and all the men\n* some more words and more\n" * 20, None),
            ((PROSE + "\nand so on...\n") * 5, "gopher_too_many_end_ellipsis"),
            ("the and " * 25 + "123456 " * 20, "gopher_below_alpha_threshold"),
            ("The And " + "harbour " * 60, "gopher_enough_stop_words"),
            ("the the " + "harbour " * 60, "gopher_enough_stop_words"),
        ],
    )
    def test_reasons(self, text, expected):
        assert reason("GopherQuality", text) == expected

    def test_options(self):
        short = "the boats of that harbour"
        assert reason("GopherQuality", short, min_words=5) is None
        assert reason("GopherQuality", short, min_words=None) is None
        assert reason("GopherQuality", short, min_words=1, max_words=4) == "gopher_long_doc"
        digits = "the and " * 25 + "123456 " * 20
        assert reason("GopherQuality", digits, min_alpha_words_ratio=0.5) is None
        german = "das Haus und der Hafen " * 20
        assert reason("GopherQuality", german) == "gopher_enough_stop_words"
        assert reason("GopherQuality", german, stop_words=["das", "und"]) is None
        stars = "* the boats and\n* some more words\n" * 20
        assert reason("GopherQuality", stars, bullets=["*"]) == "gopher_too_many_bullets"

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("", "empty"),
            (" \n", "empty"),
            ("!!! ---", "gopher_below_alpha_threshold"),
            ("...", "gopher_too_many_ellipsis"),
            ("a b", "gopher_below_avg_threshold"),
        ],
    )
    def test_a_limit_that_is_off_leaves_the_others(self, text, expected):
        assert reason("GopherQuality", text, min_words=None) == expected

    def test_a_text_without_words_is_empty_if_a_share_has_a_limit(self):
        shares = ["max_symbol_to_word_ratio", "max_bullet_lines_ratio", "max_ellipsis_lines_ratio"]
        shares += ["max_non_alpha_words_ratio", "min_alpha_words_ratio"]
        numbers = ["min_words", "max_words", "min_stop_words"]
        lengths = ["min_mean_word_length", "max_mean_word_length"]
        off = dict.fromkeys([*shares, *numbers, *lengths])

        assert reason("GopherQuality", "", **off) is None
        assert reason("GopherQuality", "", **off | {"min_stop_words": 1}) == (
            "gopher_enough_stop_words"
        )
        for share in shares:
            assert reason("GopherQuality", "", **off | {share: 0.5}) == "empty"

    def test_all_signals_are_written(self):
        found = signals("GopherQuality", "the boats")

        assert found["num_content_words"] == 2
        assert found["num_stop_words"] == 1
        assert len(found) == 9

    @pytest.mark.slow
    def test_words_decide(self):
        pytest.importorskip("spacy")
        text = "the boats, of that, harbour, there, " * 10

        assert reason("GopherQuality", text) is None
        spacy = reason("GopherQuality", text, words="spacy")
        assert spacy == "gopher_below_alpha_threshold"


class TestGopherRepetition:
    @pytest.mark.parametrize("with_numpy", [True, False])
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("", "empty"),
            (PROSE + "Later the children ran down to see what had been caught today.", None),
            ("one\n\ntwo\n\none\n\none", "dup_para_frac"),
            ("a long paragraph\n\na\n\nb\n\nc\n\na long paragraph", "dup_para_char_frac"),
            ("one\ntwo\none\none", "dup_line_frac"),
            ("a long line here\na\nb\nc\na long line here", "dup_line_char_frac"),
            ("two words", "top_2_gram"),
            ("alphabet " + "one two three " * 3 + PROSE, "top_3_gram"),
            (TWICE, "duplicated_5_n_grams"),
        ],
    )
    def test_reasons(self, text, expected, with_numpy, monkeypatch):
        if not with_numpy:
            monkeypatch.setattr(repetition_signals, "hashable", lambda _: False)

        assert reason("GopherRepetition", text) == expected

    def test_rules_can_be_chosen(self):
        assert reason("GopherRepetition", TWICE, duplicate_ngrams=[[12, 0.5]]) is None
        assert (
            reason("GopherRepetition", TWICE, duplicate_ngrams=[[12, 0.2]])
            == "duplicated_12_n_grams"
        )
        assert reason("GopherRepetition", "two words", top_ngrams=[]) is None
        assert reason(
            "GopherRepetition", "one\none", max_duplicate_line_ratio=None, top_ngrams=[]
        ) == ("dup_line_char_frac")

    def test_all_signals_are_written(self):
        assert len(signals("GopherRepetition", "")) == 13


class TestFineWebQuality:
    LINE = "The harbour was quiet when the first boats came back."

    @pytest.mark.parametrize(
        ("lines", "expected"),
        [
            ([LINE], None),
            ([], "empty"),
            ([" ", "\t"], "empty"),
            ([LINE + " "], "line_punct_ratio"),
            ([LINE, "Menu.", "Home.", "About."], "short_line_ratio"),
            ([LINE, LINE, "Nobody had slept that night, and it rained."], "char_dup_ratio"),
            (
                [f"{n}" * 40 + "." for n in range(9)],
                "list_ratio",
            ),
        ],
    )
    def test_reasons(self, lines, expected):
        assert reason("FineWebQuality", "\n".join(lines)) == expected

    def test_options(self):
        open_ended = self.LINE.rstrip(".")
        assert reason("FineWebQuality", open_ended, line_punct_exclude_zero=True) is None
        assert signals("FineWebQuality", open_ended)["line_punct_ratio"] == 0.0
        assert reason("FineWebQuality", open_ended, stop_chars=["back"]) is None
        assert reason("FineWebQuality", "Menu.", short_line_length=4) is None
        assert reason("FineWebQuality", "Menu.", max_short_line_ratio=None) is None


def test_mc4_needs_three_long_lines():
    long = "x" * 200
    assert reason("C4Paragraph", f"{long}\nshort\n{long}\n{long}") is None
    assert reason("C4Paragraph", "\n".join([long, long, long[1:]])) == "< 3 paragraphs"
    assert reason("C4Paragraph", long * 9) == "< 3 paragraphs"
