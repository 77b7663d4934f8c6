import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError, MissingExtraError
from tests.library.adversarial import LENGTH, survives

TEXT = "Ann Lee met Bob in Paris."
FOUND = [
    {"text": "Ann Lee", "label": "PERSON", "start": 0, "end": 7},
    {"text": "Bob", "label": "PERSON", "start": 12, "end": 15},
    {"text": "Paris", "label": "GPE", "start": 19, "end": 24},
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    spacy = pytest.importorskip("spacy")
    pipeline = spacy.blank("en")
    pipeline.add_pipe("entity_ruler").add_patterns(
        [
            {"label": "PERSON", "pattern": "Ann Lee"},
            {"label": "PERSON", "pattern": "Bob"},
            {"label": "GPE", "pattern": "Paris"},
        ]
    )
    folder = tmp_path_factory.mktemp("models") / "names"
    pipeline.to_disk(folder)
    return Path(folder)


def test_entities_are_masked_or_reported(model: Path) -> None:
    mask, tag = data.pii.Entities(model), data.pii.Entities(str(model), mode="tag")
    masked = "<PERSON> met <PERSON> in <GPE>."
    assert mask.forward({"text": TEXT}) == {"text": masked}
    assert tag.forward({"text": TEXT}) == {"text": TEXT, "entities": FOUND}
    both = data.pii.Entities(model, mode="both", labels=["GPE"], replacement="X", output_key="out")
    assert both.forward({"text": TEXT}) == {
        "text": TEXT,
        "out": "Ann Lee met Bob in X.",
        "entities": FOUND[2:],
    }
    for text in ("", None, "no names"):
        assert tag.forward({"text": text})["entities"] == []


@pytest.mark.slow
@pytest.mark.cpu_timeout(12)  # a 25th of the usual bound, for a fifth of the length
def test_hostile_texts_cost_linear_time_and_raise_nothing(model: Path) -> None:
    survives(data.pii.Entities(model, mode="both").forward, longest=LENGTH // 5)


def test_places_are_right_after_long_runs_and_lone_surrogates(model: Path) -> None:
    text = f"\ud800 {'x' * 12_000} {'!' * 700} Bob {'-' * 501} in Paris"
    masked = data.pii.Entities(model).forward({"text": text})["text"]
    assert masked == text.replace("Bob", "<PERSON>").replace("Paris", "<GPE>")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["thread", "process"])
def test_it_runs_in_workers(root: Path, model: Path, mode: Any) -> None:
    operator = data.pii.Entities(model, labels=None, _concurrency_mode=mode, _max_workers=2)
    assert operator([{"text": "Bob"}, {"text": 1}, {"text": "a"}]) == [
        {"text": "<PERSON>"},
        {"text": "a"},
    ]
    again = pickle.loads(pickle.dumps(operator))
    assert again.forward({"text": "Bob"}) == {"text": "<PERSON>"}


def test_models_that_are_not_there_and_wrong_options_are_refused(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("no_such_package", tmp_path):
        with pytest.raises(DefinitionError, match="neither the folder"):
            data.pii.Entities(name)
    with pytest.raises(DefinitionError, match="'mode' must be one of 'mask'"):
        data.pii.Entities(model, mode="drop")
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(MissingExtraError, match="spacy"):
        data.pii.Entities(model)
