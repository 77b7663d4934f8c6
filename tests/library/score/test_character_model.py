import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.score import character_model
from tests.library.adversarial import survives

PROSE = "The light of the evening falls on the field, and the work of the day is done. "


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    data.score.TrainCharNGram(buckets=1 << 14).build(iter([{"text": PROSE}] * 20), folder)
    return folder


def perplexity(model, text: str | None) -> float | None:
    return data.score.CharNGram(model).forward({"text": text})["perplexity"]


def test_known_prose_surprises_least(model) -> None:
    found = [
        perplexity(model, text)
        for text in (PROSE, "the field of the day", "dlif eht fo yad eht", "xqzj kvwb", "好的")
    ]
    assert found == sorted(found)
    assert 1 < found[0] < 2
    assert found[-1] > 1000
    assert perplexity(model, "") is perplexity(model, None) is None
    assert perplexity(model, "t") > 1


def test_counts_do_not_depend_on_how_much_is_counted_at_once(
    model, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(character_model, "_FLUSH", 100)
    data.score.TrainCharNGram(buckets=1 << 14).build(iter([{"text": PROSE}] * 20), tmp_path)
    for name in ("counts.npy", "model.json"):
        assert (tmp_path / name).read_bytes() == (model / name).read_bytes()


def test_empty_references_and_wrong_options(tmp_path) -> None:
    data.score.TrainCharNGram(buckets=16).build(iter([{"text": ""}, {}]), tmp_path)
    assert perplexity(tmp_path, "abc") > 1
    for options in ({"ngram_size": 0}, {"buckets": 100}):
        with pytest.raises(DefinitionError):
            data.score.TrainCharNGram(**options)


def test_hostile_texts_have_a_perplexity(model) -> None:
    survives(data.score.CharNGram(model).forward)


def test_a_model_of_another_operator_is_refused(model) -> None:
    with pytest.raises(DefinitionError, match=r"no folder of score\.Train: .* has no 'bias'"):
        data.score.Linear(model)
