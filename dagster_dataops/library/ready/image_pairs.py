"""`image_text_pairs`: filter images, and describe them with a model."""

from typing import Any, Final

from dagster_dataops import data
from dagster_dataops.library.ready.shared_steps import MODEL, asked
from dagster_dataops.models.model_operator import DEFAULT_CLIENT
from dagster_dataops.pipelines.pipeline import Pipeline
from dagster_dataops.records import Record

_RUBRIC: Final = "How well does the text describe what the image shows, with nothing made up?"


def image_text_pairs(
    name: str = "pairs",
    *,
    input_key: str = "file",
    text_key: str | None = None,
    min_pixels: int = 128,
    max_side: int = 1024,
    rubric: str = _RUBRIC,
    min_score: int = 4,
    model: str = MODEL,
    client: Any = DEFAULT_CLIENT,
) -> Pipeline:
    """Return a pipeline from image files to images with texts that fit.

    Dropped are images that are animated, too small, very wide or high, of one colour, or similar to
    another one. A model that sees images describes the others, unless they have a text; a second
    call scores how well text and image fit. The images that are kept lose their metadata.

    Args:
        name: Name of the pipeline.
        input_key: Column of the image: a path, a URL or a reference.
        text_key: Column of the text that images have; ``None`` lets the model write ``caption``.
        min_pixels: Least width and height.
        max_side: Pixels of the longer side that the model is sent.
        rubric: What the score measures, in words.
        min_score: Least score of pairs that are kept, 1 to 5.
        model: Name of the model, which must see images.
        client: Client of the model.

    Returns:
        A pipeline. It needs the extras ``images`` and ``llm``.
    """
    key, asks = {"input_key": input_key}, asked(model, client)
    with Pipeline(name) as ppl:
        ppl.check = data.images.Check(allow_animated=False, **key)
        ppl.size = data.images.Size(min_width=min_pixels, min_height=min_pixels, **key)
        ppl.shape = data.images.AspectRatio(min_ratio=1 / 3, max_ratio=3.0, **key)
        ppl.detail = data.images.Entropy(min_entropy=2.0, **key)
        ppl.unique = data.images.NearDuplicate(keep="largest", **key)
        if text_key is None:
            ppl.caption = data.llm.Caption(input_key, max_side=max_side, **asks)
        ppl.fit = data.llm.Judge(
            rubric,
            text_key or "caption",
            images=input_key,
            max_side=max_side,
            min_score=min_score,
            **asks,
        )
        ppl.stripped = data.images.Strip(**key)
    return ppl


EXAMPLE: Final[tuple[Record, ...]] = ({"file": "images/first.jpg"}, {"file": "images/second.jpg"})
