import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError

pytest.importorskip("ahocorasick")


def kept(operator, *texts):
    return [record["text"] for record in operator([{"text": text} for text in texts])]


def test_words_are_found_whole_in_any_case():
    operator = data.filters.Blocklist(["ass", "bad thing"])

    assert kept(operator, "a class", "an ASS.", "Bad thing", "badthing") == ["a class", "badthing"]


def test_options_of_the_blocklist():
    assert kept(data.filters.Blocklist(["ass"], whole_words=False), "a class", "x") == ["x"]
    assert kept(data.filters.Blocklist(["Ass"], ignore_case=False), "ass", "Ass") == ["ass"]
    assert kept(data.filters.Blocklist(["a"], max_hits=1), "a b", "a a") == ["a b"]
    assert kept(data.filters.Blocklist([]), "a") == ["a"]


def test_words_are_read_from_a_file(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("# comment\nbad\n\n")

    assert kept(data.filters.Blocklist(str(path)), "bad", "good") == ["good"]
    with pytest.raises(DefinitionError, match="cannot be read"):
        data.filters.Blocklist(str(tmp_path / "none.txt"))


def test_an_empty_word_is_refused():
    with pytest.raises(DefinitionError, match="include the empty text"):
        data.filters.Blocklist([""])


def test_bad_words_of_c4():
    assert kept(data.filters.C4BadWords(["bad"]), "So BAD.", "badly", "good") == ["badly", "good"]
    assert kept(data.filters.C4BadWords(["坏"], language="zh"), "很坏的", "好") == ["好"]


def test_a_share_of_texts_is_kept_by_text_and_seed():
    texts = [f"bad {number}" for number in range(400)]

    some = kept(data.filters.C4BadWords(["bad"], keep_ratio=0.25), *texts)

    assert 60 < len(some) < 140
    assert some == kept(data.filters.C4BadWords(["bad"], keep_ratio=0.25), *texts)
    assert some != kept(data.filters.C4BadWords(["bad"], keep_ratio=0.25, seed=1), *texts)
    assert kept(data.filters.C4BadWords(["bad"], keep_ratio=1.0), *texts) == texts
    with pytest.raises(DefinitionError, match="between 0 and 1"):
        data.filters.C4BadWords(["bad"], keep_ratio=2)


def test_worker_processes_find_the_same():
    operator = data.filters.Blocklist(["bad"], _concurrency_mode="process", _max_workers=2)

    assert kept(operator, "bad", "good") == ["good"]
