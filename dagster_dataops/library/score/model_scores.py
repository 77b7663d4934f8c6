"""``score.Model``: the scores of a model of the user."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.score.linear import score
from dagster_dataops.library.score.model_files import file_model
from dagster_dataops.quantities import counted
from dagster_dataops.records import Record


class Model(score):
    """Write the score of a text by a model of yours.

    Reads ``input_key="text"`` and writes ``output_key="score"``, a number. ``filters.Field`` then
    decides. The texts of ``_batch_size`` records go to the model at once.

    ``model`` is a function that takes a list of texts and returns as many numbers, or the path of a
    file: fastText (``.bin``, ``.ftz``; extra ``fasttext``), a scikit-learn pipeline over texts
    (``.joblib``, ``.pkl``; extra ``scikit-learn``) or ONNX with one input of texts (``.onnx``;
    extra ``onnx``). ``label`` names the class whose probability is the score (for an ONNX model
    that returns rows, its number); by default the last class. Reading ``.joblib`` and ``.pkl``
    runs code in them: use files that you trust. A path counts as an option, the content of its
    file does not.

    Args:
        model: Function from a list of texts to numbers, or the path of a model file.
        input_key: Key of the text: a column, or a selector.
        output_key: Column of the score.
        label: Class whose probability is the score; ``None`` for the last one.
    """

    def __init__(
        self,
        model: Callable[[list[str]], Sequence[float]] | str | Path,
        input_key: str = "text",
        output_key: str = "score",
        *,
        label: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._scores: Callable[[list[str]], Sequence[float]]
        self._scores = model if callable(model) else file_model(str(model), label)
        self._column, self._written = FieldKey(input_key), output_key

    def forward_batch(self, records: list[Record]) -> list[Any]:
        scores = self._scores([self._column.text(record) for record in records])
        if len(scores) != len(records):
            texts = counted(len(records), "texts")
            msg = f"the model returned {counted(len(scores), 'scores')} for {texts}"
            raise ValueError(msg)
        for record, found in zip(records, scores, strict=True):
            record[self._written] = float(found)
        return list(records)
