"""``score.Model``: the scores of a model of the user."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

from dagster_dataops.errors import DefinitionError
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.loaded_files import LoadedFile
from dagster_dataops.library.option_values import needs_extra
from dagster_dataops.library.score.linear import score
from dagster_dataops.operators.options.file_content import FileContent
from dagster_dataops.records import Record

Scores: TypeAlias = Sequence[float]
_LABEL_MARK: Final = "__label__"  # begins the names of fastText's labels


class Model(score):
    """Write the score of a text by a model of yours.

    Reads ``input_key="text"`` and writes ``output_key="score"``, a number. ``filters.Field`` then
    decides. The texts of ``_batch_size`` records go to the model at once.

    ``model`` is a function that takes a list of texts and returns as many numbers, or the path of a
    file: fastText (``.bin``, ``.ftz``; extra ``fasttext``), a scikit-learn pipeline over texts
    (``.joblib``, ``.pkl``; extra ``scikit-learn``) or ONNX with one input of texts (``.onnx``;
    extra ``onnx``). ``label`` names the class whose probability is the score (for an ONNX model
    that returns rows, its number); by default the last class. Reading ``.joblib`` and ``.pkl``
    runs code in them: use files that you trust.

    Args:
        model: Function from a list of texts to numbers, or the path of a model file.
        input_key: Key of the text: a column, or a selector.
        output_key: Column of the score.
        label: Class whose probability is the score; ``None`` for the last one.
    """

    def __init__(
        self,
        model: Callable[[list[str]], Sequence[float]] | Annotated[str | Path, FileContent],
        input_key: str = "text",
        output_key: str = "score",
        *,
        label: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._scores: Callable[[list[str]], Sequence[float]]
        self._scores = model if callable(model) else LoadedFile(_loaded, str(model), label)
        self._column, self._written = FieldKey(input_key), output_key

    def forward_batch(self, records: list[Record]) -> list[Any]:
        scores = self._scores([self._column.text(record) for record in records])
        if len(scores) != len(records):
            texts = counted(len(records), "texts")
            msg = f"the model returned {counted(len(scores), 'scores')} for {texts}"
            raise ValueError(msg)
        for record, number in zip(records, scores, strict=True):
            record[self._written] = float(number)
        return list(records)


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
        predictions = [model.predict(line, -1, 0.0, "strict") for line in lines]
        return [sum(score for score, name in labels if name == wanted) for labels in predictions]

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
    input_ = session.get_inputs()[0]
    columns = len(input_.shape) > 1

    def scores(texts: list[str]) -> Scores:
        values = np.array(texts, dtype=object)
        outputs = session.run(None, {input_.name: values.reshape(-1, 1) if columns else values})[-1]
        return [_class_score(row, label) for row in outputs]

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
