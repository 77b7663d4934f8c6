"""`sft_from_documents`: make conversations for fine-tuning from documents."""

from collections.abc import Sequence
from typing import Any, Final

from dagster_dataops import data
from dagster_dataops.library.ready.shared_steps import (
    EMBEDDING_MODEL,
    MODEL,
    as_conversation,
    asked,
    distinct_questions,
)
from dagster_dataops.models.model_operator import DEFAULT_CLIENT
from dagster_dataops.pipelines.pipeline import Pipeline
from dagster_dataops.records import Record

_RUBRIC: Final = (
    "Is this a clear question that somebody could ask who has not seen the text, and that makes "
    "sense without it?"
)


def sft_from_documents(
    name: str = "sft",
    *,
    input_key: str = "text",
    max_chars: int = 1500,
    questions: int = 3,
    min_score: int = 4,
    keep_keys: Sequence[str] = ("quote",),
    model: str = MODEL,
    embedding_model: str | None = EMBEDDING_MODEL,
    client: Any = DEFAULT_CLIENT,
) -> Pipeline:
    """Return a pipeline from documents to conversations of one question and its answer.

    Equal and similar documents are dropped; the others are cut into passages of whole sentences. A
    model writes questions about each passage with answers that a second call finds in it; a third
    call scores the questions. Questions that mean the same are kept once.

    Args:
        name: Name of the pipeline.
        input_key: Column of the text of a document.
        max_chars: Most characters of a passage.
        questions: Number of questions about a passage.
        min_score: Least score of a question that is kept, 1 to 5.
        keep_keys: Columns that the result has beside ``messages``; ``quote`` has the words of the
            document that support the answer.
        model: Name of the model that writes and scores.
        embedding_model: Name of the model of vectors, by which questions are compared; ``None``
            compares their words.
        client: Client of both models.

    Returns:
        A pipeline whose result has ``messages``. It needs the extras ``library`` and ``llm``.
    """
    asks = asked(model, client)
    with Pipeline(name) as ppl:
        ppl.clean = data.text.Normalize(input_key=input_key)
        ppl.unique = data.dedup.NearDuplicate(input_key=input_key)
        ppl.passages = data.chunk.Sentences(max_chars, input_key=input_key)
        ppl.pairs = data.llm.QAPairs(input_key, count=questions, **asks)
        ppl.useful = data.llm.Judge(_RUBRIC, "question", min_score=min_score, **asks)
        ppl.distinct = distinct_questions("question", embedding_model, client)
        for step, operator in as_conversation("question", "answer").items():
            ppl.add(step, operator)
        ppl.training = data.shape.Select(["messages", *keep_keys])
    return ppl


EXAMPLE: Final[tuple[Record, ...]] = (
    {
        "text": "The Danube rises in the Black Forest and flows through ten countries. "
        "It ends in the Black Sea."
    },
    {"text": "The Rhine rises in the Alps and flows through six countries. It ends at the sea."},
)
