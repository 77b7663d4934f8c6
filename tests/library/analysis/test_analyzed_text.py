import threading

from dagster_dataops.library.analysis.analyzed_text import AnalyzedText, analyzed


def test_a_function_is_called_once():
    calls = []
    text = AnalyzedText("a b")

    def count(given):
        calls.append(given.text)
        return len(given.text)

    assert text.get(count) == text.get(count) == 3
    assert text.split(str.split) is text.split(str.split)
    assert calls == ["a b"]


def test_equal_texts_share_their_analysis_until_another_comes():
    first = analyzed("a" * 1000)

    assert analyzed("a" * 999 + "a") is first
    assert analyzed("b") is not first
    assert analyzed("a" * 1000) is not first


def test_long_texts_are_not_kept():
    text = "a" * 1_000_001

    assert analyzed(text) is not analyzed(text)


def test_threads_have_analyses_of_their_own():
    here, there = analyzed("a"), []
    thread = threading.Thread(target=lambda: there.append(analyzed("a")))
    thread.start()
    thread.join()

    assert there[0] is not here
