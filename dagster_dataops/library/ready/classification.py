"""`distilled_classifier`: train a classifier on labels of a model, and filter all records by it."""

from typing import Any, Final

from dagster_dataops import data
from dagster_dataops.library.ready.shared_steps import MODEL, asked
from dagster_dataops.models.model_operator import DEFAULT_CLIENT
from dagster_dataops.pipelines.pipeline import Pipeline
from dagster_dataops.records import Record

_RUBRIC: Final = (
    "Would a teacher use this text in a lesson, because it explains something clearly? "
    "1 is yes, 0 is no."
)


def distilled_classifier(
    name: str = "classified",
    *,
    input_key: str = "text",
    rubric: str = _RUBRIC,
    labelled: int = 2000,
    min_probability: float = 0.5,
    seed: int = 0,
    model: str = MODEL,
    client: Any = DEFAULT_CLIENT,
) -> Pipeline:
    """Return a pipeline that filters all texts by a classifier trained on labels of a model.

    A model answers a question with 0 or 1 for a sample of the texts. Nine tenths of the answers
    train a small classifier, which then scores every text in microseconds; the node ``tested`` has
    its scores beside the answers of the model for the others. FineWeb-Edu was made of FineWeb in
    this way.

    Args:
        name: Name of the pipeline.
        input_key: Column of the text.
        rubric: The question, in words, with what 0 and 1 mean.
        labelled: Number of texts that the model answers for.
        min_probability: Least probability of 1, by the classifier, of texts that are kept.
        seed: Another number samples other texts.
        model: Name of the model.
        client: Client of the model.

    Returns:
        A pipeline whose result has ``score``, 0 to 1. It needs the extras ``score`` and ``llm``.
    """
    judged = data.llm.Judge(rubric, input_key, "label", scale=[0, 1], **asked(model, client))
    with Pipeline(name) as ppl:
        ppl.sample = data.sample.Reservoir(labelled, seed=seed)
        ppl.labelled = judged
        ppl.parts = data.sample.Split({"train": 0.9, "test": 0.1}, hash_key=input_key, seed=seed)
        train = data.score.Train(input_key)
        ppl.add("classifier", train, inputs=["parts.train"])
        tested = data.score.Linear(ppl.classifier, input_key)
        ppl.add("tested", tested, inputs=["parts.test"])
        ppl.add("scored", data.score.Linear(ppl.classifier, input_key), inputs=["source"])
        ppl.kept = data.filters.Field("score", ">=", min_probability)
    return ppl


EXAMPLE: Final[tuple[Record, ...]] = tuple(
    {"text": text.format(number)}
    for number in range(20)
    for text in (
        "The sum of the angles of a triangle is 180 degrees; example {} shows why.",
        "Buy now, offer {} ends today!",
    )
)
