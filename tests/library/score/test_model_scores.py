import pickle
import sys

import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError, MissingExtraError, NoTextError

BATCHES = []


def lengths(texts: list[str]) -> list[int]:
    BATCHES.append(len(texts))
    return [len(text) for text in texts]


def test_a_function_scores_batches() -> None:
    BATCHES.clear()
    operator = data.score.Model(lengths, _batch_size=2, _concurrency_mode="single")
    found = operator([{"text": "a"}, {"text": None}, {"text": "abc"}])
    assert [record["score"] for record in found] == [1.0, 0.0, 3.0]
    assert BATCHES == [2, 1]


def test_a_record_without_text_fails_alone() -> None:
    operator = data.score.Model(lengths, output_key="n", _concurrency_mode="single")
    assert operator([{"text": "a"}, {"text": 1}]) == [{"text": "a", "n": 1.0}]
    with pytest.raises(NoTextError):
        operator.forward_batch([{"text": 1}])
    with pytest.raises(ValueError, match="returned 0 scores"):
        data.score.Model(lambda texts: []).forward_batch([{"text": "a"}])


def test_files_that_cannot_be_read_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    with pytest.raises(DefinitionError, match=r"\.onnx"):
        data.score.Model("model.txt")
    with pytest.raises(DefinitionError, match="no file"):
        data.score.Model(tmp_path / "model.onnx")
    packages = {"fasttext.FastText": "a.bin", "joblib": "a.pkl", "onnxruntime": "a.onnx"}
    for package, name in packages.items():
        monkeypatch.setitem(sys.modules, package, None)
        (tmp_path / name).touch()
        with pytest.raises(MissingExtraError):
            data.score.Model(tmp_path / name)


TEXTS = ["good fine nice", "bad awful"] * 20
LABELS = ["yes", "no"] * 20


def check(path: str) -> None:
    for label, rising in (("yes", True), ("no", False), (None, True)):
        operator = data.score.Model(path, label=label)
        again = pickle.loads(pickle.dumps(operator._scores))
        good, bad = again(["nice fine\n", "awful"])
        assert (good > bad) is rising
    with pytest.raises(DefinitionError, match="maybe"):
        data.score.Model(path, label="maybe")._scores(["a"])  # ONNX files name classes only here


def test_a_scikit_learn_pipeline(tmp_path) -> None:
    pytest.importorskip("sklearn")
    import joblib
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    made = make_pipeline(CountVectorizer(), LogisticRegression()).fit(TEXTS, LABELS)
    path = tmp_path / "model.joblib"
    joblib.dump(made, path)
    check(str(path))


def test_an_onnx_model(tmp_path) -> None:
    pytest.importorskip("onnxruntime")
    skl2onnx = pytest.importorskip("skl2onnx")
    from skl2onnx.common.data_types import StringTensorType
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    made = make_pipeline(CountVectorizer(lowercase=False), LogisticRegression()).fit(TEXTS, LABELS)
    model = skl2onnx.to_onnx(made, initial_types=[("text", StringTensorType([None, 1]))])
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    check(str(path))


def test_a_fasttext_model(tmp_path) -> None:
    fasttext = pytest.importorskip("fasttext")
    lines = [f"__label__{name} {text}\n" for name, text in zip(LABELS, TEXTS, strict=True)]
    (tmp_path / "train.txt").write_text("".join(lines * 5))
    model = fasttext.train_supervised(str(tmp_path / "train.txt"), epoch=50, lr=1.0, verbose=0)
    model.save_model(str(tmp_path / "model.bin"))
    operator = data.score.Model(tmp_path / "model.bin", label="yes")
    good, bad = operator._scores(["nice fine\n", "awful"])
    assert good > 0.5 > bad
