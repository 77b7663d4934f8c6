"""``verify.AnswerF1``: the overlap of an answer with reference answers."""

import re
from collections import Counter
from string import punctuation
from typing import Any, Final

from dagster_dataops.library.field_keys import FieldKey, text_value
from dagster_dataops.library.verify.verdict import verify
from dagster_dataops.records import Record

_NO_PUNCTUATION: Final = dict.fromkeys(map(ord, punctuation))
_ARTICLE: Final = re.compile(r"\b(?:a|an|the)\b")
_VERDICTS: Final = (["yes"], ["no"], ["noanswer"])  # equal, or no agreement at all


class AnswerF1(verify):
    """Write the F1 score of the words of an answer, 0 to 1, against the best reference answer.

    Reads ``input_key="answer"`` and ``reference_key="reference"``, a text or a list of texts, and
    writes ``output_key="f1"``. Words are compared without case, articles (``a``, ``an``, ``the``)
    and ASCII punctuation. ``yes``, ``no`` and ``noanswer`` agree with nothing but themselves. A
    missing answer or reference, or one without words, has 0.0.

    Source: Rajpurkar et al. 2016, arXiv:1606.05250 (SQuAD), and for ``yes`` and ``no`` Yang et al.
    2018, arXiv:1809.09600 (HotpotQA); ``qaf1_normalize_texts`` and ``qaf1_calculate_score`` of
    LazyLLM.

    Args:
        input_key: Key of the answer.
        reference_key: Key of the reference answers.
        output_key: Column of the score.
    """

    def __init__(
        self,
        input_key: str = "answer",
        reference_key: str = "reference",
        output_key: str = "f1",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._answer, self._reference = FieldKey(input_key), FieldKey(reference_key)
        self._written = output_key

    def forward(self, record: Record) -> Record:
        answer = _words(self._answer.text(record))
        references = map(_words, self._references(record))
        record[self._written] = max(
            (_f1(answer, reference) for reference in references), default=0.0
        )
        return record

    def _references(self, record: Record) -> list[str]:
        values = self._reference.present(record)
        if len(values) == 1 and isinstance(values[0], list):
            values = values[0]
        return [text_value(value, self._reference.name) for value in values]


def _words(answer: str) -> list[str]:
    return _ARTICLE.sub(" ", answer.lower().translate(_NO_PUNCTUATION)).split()


def _f1(answer: list[str], reference: list[str]) -> float:
    if answer != reference and (answer in _VERDICTS or reference in _VERDICTS):
        return 0.0
    same = (Counter(answer) & Counter(reference)).total()
    return 2 * same / (len(answer) + len(reference)) if same else 0.0
