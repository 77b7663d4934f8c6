"""Read models from files of the user, as functions from texts to scores."""

from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.option_values import needs_extra

Scores: TypeAlias = Sequence[float]
_LABEL_MARK: Final = "__label__"  # begins the names of fastText's labels


def file_model(path: str, label: str | None) -> Callable[[list[str]], Scores]:
    """Return the function from texts to scores by a model in a file.

    It is pickled as the path; each process reads the file once.

    Args:
        path: The file.
        label: The class whose probability is the score; ``None`` for the last one.

    Raises:
        DefinitionError: There is no such file, or its ending is unknown.
        MissingExtraError: The package that reads it is not installed.
    """
    _loaded(path, label)
    return partial(_scores, path, label)


def _scores(path: str, label: str | None, texts: list[str]) -> Scores:
    return _loaded(path, label)(texts)


@cache
def _loaded(path: str, label: str | None) -> Callable[[list[str]], Scores]:
    ending = Path(path).suffix
    if ending not in _READERS:
        msg = f"model {path!r} ends in {ending!r}; use one of {', '.join(_READERS)}, or a function"
        raise DefinitionError(msg)
    if not Path(path).is_file():
        msg = f"model {path!r} is no file"
        raise DefinitionError(msg)
    return _READERS[ending](path, label)


def _fasttext(path: str, label: str | None) -> Callable[[list[str]], Scores]:
    with needs_extra("score.Model with a fastText file", "fasttext"):
        from fasttext.FastText import _FastText
    # The wrapper around this object does not work with numpy 2.
    model: Any = _FastText(path).f
    names = [name.removeprefix(_LABEL_MARK) for name in model.getLabels("strict")[0]]
    wanted = _LABEL_MARK + names[_class_index(names, label)]

    def scores(texts: list[str]) -> Scores:
        lines = [" ".join(text.split()) + "\n" for text in texts]
        found = [model.predict(line, -1, 0.0, "strict") for line in lines]
        return [sum(score for score, name in one if name == wanted) for one in found]

    return scores


def _scikit_learn(path: str, label: str | None) -> Callable[[list[str]], Scores]:
    with needs_extra("score.Model with a scikit-learn file", "scikit-learn"):
        import joblib
    model: Any = joblib.load(path)
    if hasattr(model, "predict_proba"):
        column = _class_index([str(name) for name in model.classes_], label)
        return lambda texts: [float(row[column]) for row in model.predict_proba(texts)]
    return lambda texts: [float(score) for score in model.predict(texts)]


def _onnx(path: str, label: str | None) -> Callable[[list[str]], Scores]:
    with needs_extra("score.Model with an ONNX file", "onnx"):
        import numpy as np
        import onnxruntime
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    given = session.get_inputs()[0]
    columns = len(given.shape) > 1

    def scores(texts: list[str]) -> Scores:
        values = np.array(texts, dtype=object)
        found = session.run(None, {given.name: values.reshape(-1, 1) if columns else values})[-1]
        return [_class_score(row, label) for row in found]

    return scores


def _class_score(row: Any, label: str | None) -> float:
    """Return the score of one text: a number, a row of probabilities, or a dict by class."""
    if isinstance(row, dict):
        names = [str(name) for name in row]
        return float(list(row.values())[_class_index(names, label)])
    values = row.reshape(-1).tolist() if hasattr(row, "reshape") else [row]
    return float(values[-1 if label is None else int(label)])


def _class_index(names: list[str], label: str | None) -> int:
    if label is None:
        return len(names) - 1
    if label.removeprefix(_LABEL_MARK) not in names:
        msg = f"label is {label!r}; the model has {', '.join(names)}"
        raise DefinitionError(msg)
    return names.index(label.removeprefix(_LABEL_MARK))


_READERS: Final[dict[str, Callable[[str, str | None], Callable[[list[str]], Scores]]]] = {
    ".bin": _fasttext,
    ".ftz": _fasttext,
    ".joblib": _scikit_learn,
    ".onnx": _onnx,
    ".pkl": _scikit_learn,
}
