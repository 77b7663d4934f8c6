"""`qa_for_retrieval`: questions, passages and hard negatives for embedding models and rerankers."""

from typing import Any, Final, Literal, TypeAlias, get_args

from dagster_dataops import data
from dagster_dataops.library.option_values import check_choice
from dagster_dataops.library.ready.shared_steps import (
    EMBEDDING_MODEL,
    MODEL,
    asked,
    distinct_questions,
)
from dagster_dataops.models.model_operator import DEFAULT_CLIENT
from dagster_dataops.pipelines.pipeline import Pipeline
from dagster_dataops.records import Record

Search: TypeAlias = Literal["words", "vectors", "both"]

_RUBRIC: Final = (
    "Is this a question that somebody would type into a search, and that makes sense without "
    "having seen the text that answers it?"
)
_VECTOR: Final = "embedding"


def qa_for_retrieval(
    name: str = "retrieval",
    *,
    input_key: str = "text",
    max_chars: int = 1000,
    questions: int = 2,
    negatives: int = 4,
    search: Search = "words",
    min_score: int = 4,
    model: str = MODEL,
    embedding_model: str = EMBEDDING_MODEL,
    client: Any = DEFAULT_CLIENT,
) -> Pipeline:
    """Return a pipeline from documents to training data of retrieval.

    Documents are cut into passages, of which an index is made. A model writes questions about each
    passage; for each question, passages are found that look like the right one but do not have the
    answer. The results are ``triplets``, for embedding models, and ``reranker``, pairs with labels.

    Args:
        name: Name of the pipeline.
        input_key: Column of the text of a document.
        max_chars: Most characters of a passage.
        questions: Number of questions about a passage.
        negatives: Number of wrong passages for a question, of each index.
        search: By what wrong passages are found: their ``words`` (BM25), ``vectors``, or ``both``.
        min_score: Least score of a question that is kept, 1 to 5.
        model: Name of the model that writes and scores.
        embedding_model: Name of the model of vectors; its calls compare questions, too.
        client: Client of both models.

    Returns:
        A pipeline. It needs the extras ``library`` and ``llm``.

    Raises:
        DefinitionError: ``search`` has another value.
    """
    check_choice("search", search, get_args(Search))
    asks, embeds = asked(model, client), asked(embedding_model, client)
    mined = {"positive_key": input_key, "answer_key": "answer", "count": negatives}
    with Pipeline(name) as ppl:
        ppl.unique = data.dedup.NearDuplicate(input_key=input_key)
        ppl.passages = data.chunk.Sentences(max_chars, input_key=input_key)
        if search != "vectors":
            ppl.index = data.retrieval.Index(input_key)
        if search != "words":
            ppl.add("vectors", data.llm.Embed(input_key, _VECTOR, **embeds), inputs=["passages"])
            ppl.vector_index = data.retrieval.Index(input_key, vector_key=_VECTOR)
        pairs = data.llm.QAPairs(input_key, count=questions, **asks)
        ppl.add("pairs", pairs, inputs=["passages"])
        ppl.useful = data.llm.Judge(_RUBRIC, "question", min_score=min_score, **asks)
        ppl.distinct = distinct_questions("question", embedding_model, client)
        if search != "vectors":
            later = {"keep_empty": True} if search == "both" else {}
            ppl.mined = data.retrieval.HardNegatives(ppl.index, **mined, **later)
        if search != "words":
            ppl.asked = data.llm.Embed("question", _VECTOR, **embeds)
            ppl.mined_by_vector = data.retrieval.HardNegatives(
                ppl.vector_index, vector_key=_VECTOR, **mined
            )
        last = "mined" if search == "words" else "mined_by_vector"
        for form, style in (("triplets", "triplets"), ("reranker", "pairs")):
            training = data.retrieval.TrainingForm(positive_key=input_key, style=style)
            ppl.add(form, training, inputs=[last])
    return ppl


EXAMPLE: Final[tuple[Record, ...]] = (
    {"text": "The Danube rises in the Black Forest and flows to the Black Sea."},
    {"text": "The Rhine rises in the Alps and flows to the North Sea."},
    {"text": "The Elbe rises in the Giant Mountains and flows to the North Sea, past Hamburg."},
)
