"""``retrieval.TrainingForm``: questions and passages in the forms that trainers read."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

from dagster_dataops.errors import UnfitRecordError
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.retrieval.hard_negatives import retrieval
from dagster_dataops.records import JsonValue, Record

_Style: TypeAlias = Literal["triplets", "pairs", "lists", "groups"]


class TrainingForm(retrieval):
    """Write a question with its right and wrong passages in a form for training.

    Reads ``input_key="question"``, ``positive_key="text"`` and ``negatives_key="negatives"``, a
    list of texts. Other columns are left out. The forms by ``style``:

    - ``triplets``: a record for each wrong passage, with ``anchor``, ``positive`` and ``negative``;
      for embedding models.
    - ``pairs``: a record for each passage, with ``query``, ``passage`` and ``label``, 1 for the
      right one, which comes first, else 0; for rerankers that score one passage.
    - ``lists``: one record with ``query``, ``docs`` and ``labels``; for losses over a list.
    - ``groups``: one record with ``query``, ``pos`` and ``neg``, lists of texts.

    Source: the columns that sentence-transformers (Hugging Face) reads for its losses of embedding
    models and of cross encoders; those of ``groups`` are of FlagEmbedding.

    Args:
        input_key: Key of the question: a column, or a selector.
        positive_key: Key of the right passage.
        negatives_key: Column of the wrong passages.
        style: ``triplets``, ``pairs``, ``lists`` or ``groups``.
    """

    def __init__(
        self,
        input_key: str = "question",
        positive_key: str = "text",
        negatives_key: str = "negatives",
        *,
        style: _Style = "triplets",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._question, self._positive = FieldKey(input_key), FieldKey(positive_key)
        self._negatives, self._form = FieldKey(negatives_key), _FORMS[style]

    def forward(self, record: Record) -> list[Record]:
        negatives = self._negatives.value(record)
        if not isinstance(negatives, list) or not all(isinstance(text, str) for text in negatives):
            name, kind = self._negatives.name, type(negatives).__name__
            msg = f"{name} must be a list of texts; found {kind}: {negatives!r:.80}"
            raise UnfitRecordError(msg)
        return self._form(self._question.text(record), self._positive.text(record), negatives)


def _triplets(query: str, positive: str, negatives: list[str]) -> list[Record]:
    return [{"anchor": query, "positive": positive, "negative": other} for other in negatives]


def _pairs(query: str, positive: str, negatives: list[str]) -> list[Record]:
    labelled = [(positive, 1), *((other, 0) for other in negatives)]
    return [{"query": query, "passage": text, "label": label} for text, label in labelled]


def _lists(query: str, positive: str, negatives: list[str]) -> list[Record]:
    labels: list[JsonValue] = [1, *([0] * len(negatives))]
    return [{"query": query, "docs": [positive, *negatives], "labels": labels}]


def _groups(query: str, positive: str, negatives: list[str]) -> list[Record]:
    return [{"query": query, "pos": [positive], "neg": [*negatives]}]


_FORMS: Final[Mapping[str, Callable[[str, str, list[str]], list[Record]]]] = {
    "triplets": _triplets,
    "pairs": _pairs,
    "lists": _lists,
    "groups": _groups,
}
