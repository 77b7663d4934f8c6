"""Steps that several ready pipelines have."""

from typing import Any, Final

from dagster_dataops import data
from dagster_dataops.models.model_operator import DEFAULT_CLIENT
from dagster_dataops.operators.definition.operator import Operator

MODEL: Final = "gpt-5-mini"
EMBEDDING_MODEL: Final = "text-embedding-3-small"
_SIMILAR_QUESTIONS: Final = 0.7  # Jaccard index of their pairs of words


def asked(model: str, client: Any) -> dict[str, Any]:
    """Return the options ``model`` and ``client``; the default client is left out."""
    return {"model": model} if client == DEFAULT_CLIENT else {"model": model, "client": client}


def distinct_questions(input_key: str, embedding_model: str | None, client: Any) -> Operator:
    """Return the step that drops questions that say the same, by vectors or by their words."""
    if embedding_model is None:
        step = data.dedup.NearDuplicate(
            input_key=input_key, threshold=_SIMILAR_QUESTIONS, ngram_size=2
        )
    else:
        asks = asked(embedding_model, client)
        step = data.llm.SemanticDedup(input_key=input_key, threshold=0.9, **asks)
    return step  # type: ignore[no-any-return]


def as_conversation(question_key: str, answer_key: str) -> dict[str, Operator]:
    """Return the steps that make a conversation of the columns of a question and its answer."""
    keys = {question_key: "question", answer_key: "answer"}
    renamed = {key: name for key, name in keys.items() if key != name}
    steps = {"named": data.shape.Rename(renamed, overwrite=True)} if renamed else {}
    return {**steps, "messages": data.chat.ToMessages(format="question_answer")}
