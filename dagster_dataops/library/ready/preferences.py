"""`preference_pairs`: pairs of a better and a worse answer, for preference training."""

from collections.abc import Sequence
from typing import Any, Final

from dagster_dataops import data
from dagster_dataops.library.ready.shared_steps import MODEL, asked
from dagster_dataops.models.model_operator import DEFAULT_CLIENT
from dagster_dataops.pipelines.pipeline import Pipeline
from dagster_dataops.records import Record

_RUBRIC: Final = "How correct, helpful and clear is the answer, and is it no longer than needed?"
_CLEAR: Final = "Is the request clear, and can it be answered without anything that is missing?"


def preference_pairs(
    name: str = "preferences",
    *,
    input_key: str = "prompt",
    samples: int = 4,
    rubric: str = _RUBRIC,
    min_margin: int = 2,
    min_score: int = 4,
    keep_keys: Sequence[str] = (),
    model: str = MODEL,
    client: Any = DEFAULT_CLIENT,
) -> Pipeline:
    """Return a pipeline from prompts to pairs of a chosen and a rejected answer.

    Repeated and unclear prompts are dropped. A model answers each prompt several times and scores
    the answers; the best and the worst are kept if their scores differ enough.

    Args:
        name: Name of the pipeline.
        input_key: Column of the prompt; it is called ``prompt`` in the result.
        samples: Number of answers to a prompt.
        rubric: What the scores of answers measure, in words.
        min_margin: Least difference of the scores, which are 1 to 5.
        min_score: Least score of the clearness of a prompt that is kept, 1 to 5.
        keep_keys: Columns that the result has beside ``prompt``, ``chosen`` and ``rejected``.
        model: Name of the model.
        client: Client of the model.

    Returns:
        A pipeline. It needs the extra ``llm``.
    """
    asks = asked(model, client)
    with Pipeline(name) as ppl:
        ppl.unique = data.dedup.Exact(input_key=input_key)
        ppl.clear = data.llm.Judge(_CLEAR, input_key, min_score=min_score, **asks)
        ppl.pairs = data.llm.PreferencePairs(input_key, samples=samples, rubric=rubric, **asks)
        ppl.apart = data.filters.Field("margin", ">=", min_margin)
        if input_key != "prompt":
            ppl.named = data.shape.Rename({input_key: "prompt"}, overwrite=True)
        ppl.training = data.shape.Select(["prompt", "chosen", "rejected", *keep_keys])
    return ppl


EXAMPLE: Final[tuple[Record, ...]] = (
    {"prompt": "Why is the sky blue?"},
    {"prompt": "Name three rivers that flow into the Black Sea."},
)
