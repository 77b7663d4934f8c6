"""`clean_chats`: clean a set of conversations for training."""

from collections.abc import Sequence
from typing import Any, Final

from dagster_dataops import data
from dagster_dataops.library.ready.shared_steps import MODEL, asked
from dagster_dataops.models.model_operator import DEFAULT_CLIENT
from dagster_dataops.pipelines.pipeline import Pipeline
from dagster_dataops.records import Record

_AS_TEXT: Final = (
    "{% for message in messages %}{% if message.content is string %}{{ message.content }}\n"
    "{% endif %}{% endfor %}"
)
_WHOLE: Final = "conversation_text"
_REFUSAL: Final = (
    r"(?i)\bas an ai (?:language )?model\b|\bi(?:'|\u2019)?a?m (?:just |only )?an ai\b"
    r"|\bi(?:'|\u2019)m sorry,? (?:but )?(?:as an ai|i can(?:not|'t|\u2019t))\b"
    r"|\bi can(?:not|'t|\u2019t) (?:help|assist) (?:you )?with (?:that|this)\b"
)


def clean_chats(
    name: str = "chats",
    *,
    languages: Sequence[str] = (),
    max_turns: int | None = None,
    max_chars: int | None = 100_000,
    refusals: str | None = _REFUSAL,
    threshold: float = 0.8,
    rubric: str | None = None,
    min_score: int = 4,
    model: str = MODEL,
    client: Any = DEFAULT_CLIENT,
) -> Pipeline:
    """Return a pipeline that keeps the good conversations of a set, in one format.

    Conversations of all usual formats become ``messages``. Dropped are those whose turns are out of
    order, empty or too long, those in other languages, those in which the assistant refuses, and
    those similar to an earlier one. Keys and tokens are masked. With ``rubric``, a model scores
    the others.

    Args:
        name: Name of the pipeline.
        languages: ISO 639-1 codes of languages to keep; none keeps all.
        max_turns: Most turns of the user; ``None`` for no limit.
        max_chars: Most characters of a conversation; ``None`` for no limit.
        refusals: Regular expression of refusals, by default of usual ones in English; a
            conversation in which it is found is dropped. ``None`` keeps all.
        threshold: Jaccard index, 0.01 to 1, from which conversations are similar.
        rubric: What the score of a model measures, 1 to 5, in words; ``None`` calls no model.
        min_score: Least score of conversations that are kept.
        model: Name of the model.
        client: Client of the model.

    Returns:
        A pipeline whose result has ``messages``. It needs the extras ``library`` and ``dedup``,
        with ``rubric`` also ``llm``.
    """
    with Pipeline(name) as ppl:
        ppl.messages = data.chat.ToMessages()
        ppl.valid = data.chat.Validate(max_turns=max_turns, max_chars=max_chars)
        ppl.secrets = data.chat.Secrets()
        ppl.text = data.chat.Render(_AS_TEXT, _WHOLE, on_loss="drop")
        if languages:
            ppl.language = data.language.Filter(list(languages), input_key=_WHOLE)
        if refusals is not None:
            ppl.answered = data.filters.Regex(refusals, input_key=_WHOLE)
        ppl.unique = data.dedup.NearDuplicate(input_key=_WHOLE, threshold=threshold)
        if rubric is not None:
            judged = asked(model, client)
            ppl.scored = data.llm.Judge(rubric, _WHOLE, min_score=min_score, **judged)
        ppl.training = data.shape.Drop([_WHOLE])
    return ppl


EXAMPLE: Final[tuple[Record, ...]] = (
    {
        "conversations": [
            {"from": "human", "value": "Which river flows through Vienna?"},
            {"from": "gpt", "value": "The Danube."},
        ]
    },
    {"instruction": "Add the numbers.", "input": "1 2", "output": "3"},
    {"instruction": "Who are you?", "output": "As an AI language model, I have no name."},
)
