from dagster_dataops.library.analysis.word_ngrams import ngrams


def test_ngrams_are_runs_of_words():
    assert ngrams(["a", "b", "c", "d"], 3) == ["a b c", "b c d"]
    assert ngrams(["a", "b"], 2, "") == ["ab"]
    assert ngrams(["a"], 2) == ngrams([], 1) == []
