"""`translations`: translate segments of texts with a model, and score the translations."""

from collections.abc import Sequence
from typing import Any, Final

from dagster_dataops import data
from dagster_dataops.library.ready.shared_steps import MODEL, asked
from dagster_dataops.models.model_operator import DEFAULT_CLIENT
from dagster_dataops.pipelines.pipeline import Pipeline
from dagster_dataops.records import Record

_RUBRIC: Final = (
    "How well does the translation say what the text says, all of it and no more, in fluent "
    "language?"
)
_PROMPT: Final = (
    "{{ rubric }}\n\nGive a short reason, then a score from {{ low }} to {{ high }}, where "
    "{{ high }} is best.\n\nText:\n{{ text }}\n\nTranslation:\n{{ translation }}"
)


def translations(
    name: str = "translations",
    *,
    to: str,
    input_key: str = "text",
    max_chars: int = 1000,
    language: str | None = None,
    rubric: str = _RUBRIC,
    min_score: int = 4,
    keep_keys: Sequence[str] = (),
    model: str = MODEL,
    client: Any = DEFAULT_CLIENT,
) -> Pipeline:
    """Return a pipeline from texts to pairs of segments in two languages, with scores.

    Texts are cut into segments of whole sentences, which a model translates. A second call scores
    each translation. Dropped are repeated segments, translations with a low score and, with
    ``language``, those in another language. The node ``scored`` has all scores, also the low ones.

    Args:
        name: Name of the pipeline.
        to: Name of the language, such as ``"German"``.
        input_key: Column of the text.
        max_chars: Most characters of a segment.
        language: ISO 639-1 code of ``to``, to check the language of translations; ``None`` does
            not check it.
        rubric: What the score measures, in words.
        min_score: Least score of translations that are kept, 1 to 5.
        keep_keys: Columns that the result has beside that of the text, ``translation``, ``score``,
            ``score_reason`` and ``chunk``, the number of the segment in its text.
        model: Name of the model.
        client: Client of the model.

    Returns:
        A pipeline. It needs the extra ``llm``, with ``language`` also ``language``.
    """
    asks = asked(model, client)
    with Pipeline(name) as ppl:
        ppl.segments = data.chunk.Sentences(max_chars, input_key=input_key)
        ppl.unique = data.dedup.Exact(input_key=input_key)
        ppl.translated = data.llm.Translate(to, input_key, **asks)
        if language is not None:
            ppl.language = data.language.Filter([language], input_key="translation")
        ppl.scored = data.llm.Judge(rubric, input_key, prompt=_PROMPT, **asks)
        ppl.good = data.filters.Field("score", ">=", min_score)
        columns = [input_key, "translation", "score", "score_reason", "chunk", *keep_keys]
        ppl.pairs = data.shape.Select(columns)
    return ppl


EXAMPLE: Final[tuple[Record, ...]] = (
    {"text": "The river is long. It flows through ten countries, and ends in the Black Sea."},
    {"text": "Ships pass the city in the morning."},
)
