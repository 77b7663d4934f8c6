"""Texts have a perplexity by a KenLM model, and are dropped by it."""

import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError, MissingExtraError
from dagster_dataops.library.score.perplexity import _as_in_ccnet
from tests.library.adversarial import survives

ARPA = """\\data\\
ngram 1=6
ngram 2=3

\\1-grams:
-1.0\t<unk>\t0
0\t<s>\t-0.3
-1.0\t</s>\t0
-0.7\tthe\t-0.2
-0.9\tcat\t-0.2
-1.1\tsat\t-0.2

\\2-grams:
-0.3\t<s> the
-0.4\tthe cat
-0.5\tcat sat

\\end\\
"""
SENTENCE = 10 ** (2.4 / 4)  # <s> the, the cat, cat sat, sat </s>: -0.3 -0.4 -0.5 -0.2-1.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "model.arpa"
    file.write_text(ARPA)
    return file


@pytest.fixture
def model(path: Path) -> Path:
    pytest.importorskip("kenlm", reason="the extra kenlm is not installed")
    return path


def reason(model: Path, text: Any, **options: Any) -> Any:
    return getattr(data.score.Perplexity(model, **options).forward({"text": text}), "reason", None)


def test_the_perplexity_is_that_of_the_model(model: Path) -> None:
    tagging = data.score.Perplexity(model, mode="tag", max_perplexity=5)

    def found(text: str) -> Any:
        return tagging.forward({"text": text})

    assert found("The cat sat")["stats"]["perplexity"] == pytest.approx(SENTENCE, rel=1e-6)
    lines = found("the cat sat\n\n  thé CAT sat\u0007\n")
    assert lines["stats"]["perplexity"] == pytest.approx(SENTENCE, rel=1e-6)
    assert lines["drop_reason"] is None
    assert lines["text"] == "the cat sat\n\n  thé CAT sat\u0007\n"
    assert found("dog")["drop_reason"] == "high_perplexity"


def test_limits_are_inclusive_and_texts_without_words_are_empty(model: Path) -> None:
    (kept,) = data.score.Perplexity(model, mode="both")([{"text": "the cat sat"}])
    exact = kept["stats"]["perplexity"]

    assert reason(model, "the cat sat", max_perplexity=exact, min_perplexity=exact) is None
    assert reason(model, "the cat sat", min_perplexity=4) == "low_perplexity"
    assert reason(model, "dog", max_perplexity=5) == "high_perplexity"
    assert reason(model, "dog", max_perplexity=None) is None
    assert reason(model, " \n\t") == reason(model, None) == reason(model, "\u0000") == "empty"


def test_texts_are_normalized_as_in_ccnet() -> None:
    assert _as_in_ccnet("  Ünïcode 12,3 „mark“—１。\u0085") == 'unicode 00,0 "mark" - 0.'
    assert _as_in_ccnet("plain text") == "plain text"


def test_normalization_can_be_left_out(model: Path) -> None:
    assert reason(model, "THE CAT SAT", max_perplexity=5) is None
    assert reason(model, "THE CAT SAT", max_perplexity=5, normalize=False) == "high_perplexity"


def test_words_may_be_pieces_of_sentencepiece(model: Path, tmp_path: Path) -> None:
    sentencepiece = pytest.importorskip("sentencepiece", reason="the extra kenlm is not installed")
    (tmp_path / "texts").write_text("the cat sat\n" * 10)
    sentencepiece.SentencePieceTrainer.train(
        input=str(tmp_path / "texts"), model_prefix=str(tmp_path / "sp"), vocab_size=10,
        hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    operator = data.score.Perplexity(model, sentencepiece=tmp_path / "sp.model", mode="tag")

    (found,) = operator([{"text": "the cat sat"}])
    # Pieces begin with the mark of a space, so the model knows none of them.
    assert found["stats"]["perplexity"] > 5


def test_the_operator_is_pickled_without_its_model(model: Path) -> None:
    kept = data.score.Perplexity(model, _concurrency_mode="process", max_perplexity=5)
    state = {key: value for key, value in vars(kept).items() if key == "_model"}

    assert len(pickle.dumps(state)) < 1000
    assert kept([{"text": "the cat sat"}, {"text": "dog"}]) == [{"text": "the cat sat"}]


def test_hostile_texts_have_a_perplexity(model: Path) -> None:
    survives(data.score.Perplexity(model).forward)


def test_a_missing_file_or_another_file_is_named(model: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.arpa"
    other.write_text("no model\n")

    with pytest.raises(DefinitionError, match=r"model is '.*none.arpa', which is no file"):
        data.score.Perplexity(tmp_path / "none.arpa")
    with pytest.raises(DefinitionError, match=r"model is '.*other.arpa', which cannot be read"):
        data.score.Perplexity(other)


def test_a_missing_extra_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kenlm", None)

    with pytest.raises(MissingExtraError, match=r"score.Perplexity.*\[kenlm\]"):
        data.score.Perplexity(path)
