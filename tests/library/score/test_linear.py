import math
import random

import pytest

from dagster_dataops import data, pipeline
from dagster_dataops.errors import DefinitionError, NoTextError
from dagster_dataops.library.score.linear import probability
from tests.library.adversarial import survives

GOOD = ["the", "work", "of", "day", "is", "done", "when", "light", "evening", "falls", "field"]
BAD = ["buy", "cheap", "click", "here", "now", "win", "free", "offer", "best", "price", "sale"]


def texts(count: int, seed: int) -> list[dict]:
    chance = random.Random(seed)
    records = []
    for number in range(count):
        words = chance.choices(BAD if number % 3 else GOOD, k=20)
        records.append({"text": " ".join(words), "label": number % 3 == 0})
    return records


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    data.score.Train(buckets=1 << 12).build(iter(texts(120, 0)), folder)
    return folder


def test_a_trained_model_separates_new_texts(model) -> None:
    operator = data.score.Linear(model)
    for record in texts(60, 1):
        found = operator.forward(record)
        assert (found["score"] > 0.5) is record["label"]


def test_training_is_deterministic(model, tmp_path) -> None:
    data.score.Train(buckets=1 << 12).build(iter(texts(120, 0)), tmp_path)
    for name in ("weights.npy", "model.json"):
        assert (tmp_path / name).read_bytes() == (model / name).read_bytes()
    other = tmp_path / "other"
    other.mkdir()
    data.score.Train(buckets=1 << 12, seed=1).build(iter(texts(120, 0)), other)
    assert (other / "weights.npy").read_bytes() != (model / "weights.npy").read_bytes()


def test_a_pipeline_trains_and_scores(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pipeline("quality") as ppl:
        ppl.model = data.score.Train(buckets=1 << 12)
        ppl.scored = data.score.Linear(model=ppl.model, output_key="quality")
    found = ppl(texts(60, 0))
    assert all((record["quality"] > 0.5) is record["label"] for record in found)


def test_a_text_without_words_has_the_score_of_the_bias(model) -> None:
    operator = data.score.Linear(model)
    scores = {operator.forward({"text": text})["score"] for text in ("", None, "?!")}
    assert len(scores) == 1
    assert 0 < scores.pop() < 1


def test_wrong_labels_and_options_are_refused(model, tmp_path) -> None:
    for records in ([{"text": "a", "label": "good"}], [{"text": "a", "label": 2}], [{"text": "a"}]):
        with pytest.raises(ValueError, match="record 0"):
            data.score.Train().build(iter(records), tmp_path)
    with pytest.raises(ValueError, match="both kinds"):
        data.score.Train().build(iter([{"text": "a", "label": 1}]), tmp_path)
    for options in ({"ngram_size": 0}, {"epochs": 0}, {"buckets": 1000}):
        with pytest.raises(DefinitionError):
            data.score.Train(**options)
    with pytest.raises(DefinitionError, match=r"score\.Train"):
        data.score.Linear(tmp_path)
    with pytest.raises(NoTextError):
        data.score.Linear(model).forward({"text": 1})


def test_probabilities_are_finite() -> None:
    for value in (-1e9, -5, 0, 5, 1e9):
        assert 0 <= probability(value) <= 1
    assert math.isclose(probability(2) + probability(-2), 1)


def test_hostile_texts_have_a_score(model) -> None:
    survives(data.score.Linear(model).forward)
