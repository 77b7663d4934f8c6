import pickle
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError, MissingExtraError


def lengths(texts: list[str]) -> list[list[int]]:
    return [[len(text), 1] for text in texts]


def test_a_function_makes_vectors_of_batches(root: Path) -> None:
    operator = data.score.Embedding(lengths, _batch_size=2, _concurrency_mode="single")
    found = operator([{"text": "a"}, {"text": None}, {"text": 1}, {"text": "abc"}])
    assert [record["embedding"] for record in found] == [[1.0, 1.0], [0.0, 1.0], [3.0, 1.0]]
    with pytest.raises(ValueError, match="returned 0 vectors for 1 text"):
        data.score.Embedding(lambda texts: []).forward_batch([{"text": "a"}])


def test_models_that_cannot_be_read_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(DefinitionError, match="no folder"):
        data.score.Embedding("minishlab/potion-base-8M")
    with pytest.raises(DefinitionError, match="backend"):
        data.score.Embedding(tmp_path, backend="x")
    for backend in ("model2vec", "sentence-transformers"):
        monkeypatch.setitem(sys.modules, backend.replace("-", "_"), None)
        with pytest.raises(MissingExtraError, match=backend):
            data.score.Embedding(tmp_path, backend=backend)


def test_a_saved_model_of_model2vec_makes_the_vectors(root: Path, tmp_path: Path) -> None:
    model2vec = pytest.importorskip("model2vec")
    import numpy as np
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = {"[UNK]": 0, "good": 1, "bad": 2}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))  # noqa: S106
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    vectors = np.array([[0, 0], [1, 0], [0, 1]], "f4")
    saved = model2vec.StaticModel(vectors, tokenizer, normalize=True)
    saved.save_pretrained(tmp_path / "model")

    operator = data.score.Embedding(tmp_path / "model", _concurrency_mode="process")
    found = operator([{"text": "good"}, {"text": "bad bad"}])
    assert [record["embedding"] for record in found] == [
        pytest.approx([1, 0]),
        pytest.approx([0, 1]),
    ]
    again = pickle.loads(pickle.dumps(operator))
    assert again.forward_batch([{"text": "good"}])[0]["embedding"] == pytest.approx([1, 0])


def test_a_folder_of_sentence_transformers_is_read_without_a_download(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given: list[Any] = []

    class SentenceTransformer:
        def __init__(self, path: str, **options: Any) -> None:
            given.append((path, options))

        def encode(self, texts: list[str], *, show_progress_bar: bool) -> Any:
            assert not show_progress_bar
            return SimpleNamespace(tolist=lambda: lengths(texts))

    package = SimpleNamespace(SentenceTransformer=SentenceTransformer)
    monkeypatch.setitem(sys.modules, "sentence_transformers", package)
    operator = data.score.Embedding(tmp_path, backend="sentence-transformers")
    assert operator.forward_batch([{"text": "ab"}]) == [{"text": "ab", "embedding": [2.0, 1.0]}]
    assert given == [(str(tmp_path), {"local_files_only": True})]
