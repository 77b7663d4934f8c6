"""``llm.Caption``, ``VisualQA`` and ``ReadPage``: what a model sees in images."""

from collections.abc import Mapping, Sequence
from typing import Any

from dagster_dataops.foundation.override import override
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.llm.text_prompts import llm
from dagster_dataops.models.llm_operator import LLMOperator
from dagster_dataops.models.prompt_templates import with_values
from dagster_dataops.records import Record


class ImagePrompt(LLMOperator):
    """An operator that asks about the images of ``input_key``.

    Args:
        input_key: Column with an image or a list of images; or several columns.
        images: Refused: ``input_key`` names all images.
        **kwargs: As of `LLMOperator`.
    """

    _publishes_text = True

    def __init__(
        self,
        input_key: str | Sequence[str] = "file",
        *,
        images: str | Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        reason = "names no images here; give all columns of images as input_key"
        self.require("images", fits=not images, reason=reason)
        super().__init__(images=input_key, **kwargs)


class Caption(ImagePrompt, llm):
    """Describe an image in a sentence or two.

    Reads ``input_key="file"``, a path, a URL or a reference ``{"file": ...}``, and writes
    ``output_key="caption"``. Another ``prompt`` asks for other descriptions; it sees the columns of
    the record.

    Args:
        input_key: Column with an image or a list of images; or several columns.
    """

    prompt = (
        "Describe this image in one or two plain sentences: what it shows, and the text in it. "
        "Reply with the description alone."
    )

    def __init__(
        self,
        input_key: str | Sequence[str] = "file",
        output_key: str = "caption",
        **kwargs: Any,
    ) -> None:
        super().__init__(input_key, output_key=output_key, **kwargs)


class VisualQA(ImagePrompt, llm):
    """Answer a question about an image.

    Reads ``input_key="file"``, a path, a URL or a reference ``{"file": ...}``, and
    ``question_key="question"``; writes ``output_key="answer"``. The template ``prompt`` sees
    ``question`` and the columns.

    Args:
        input_key: Column with an image or a list of images; or several columns.
        question_key: Column with the question, or a selector.
    """

    prompt = "{{ question }}"

    def __init__(
        self,
        input_key: str | Sequence[str] = "file",
        output_key: str = "answer",
        *,
        question_key: str = "question",
        **kwargs: Any,
    ) -> None:
        super().__init__(input_key, output_key=output_key, **kwargs)
        self._question = FieldKey(question_key)

    @override
    def values(self, record: Record) -> Mapping[str, Any]:
        return with_values(super().values(record), {"question": self._question.text(record)})


class ReadPage(ImagePrompt, llm):
    """Transcribe the image of a page to Markdown.

    Reads ``input_key="file"``, a path, a URL or a reference ``{"file": ...}``, and writes
    ``output_key="text"``. Use it for scans, which have no text of their own.

    Args:
        input_key: Column with the image of a page, or of several pages in order.
    """

    prompt = (
        "Transcribe this page to Markdown, in the order in which it is read. Keep headings, lists "
        "and emphasis; write tables as Markdown tables and formulas as LaTeX. Leave out page "
        "numbers and running headers. Add nothing that is not on the page, and do not translate. "
        "Write [illegible] for what cannot be read. Reply with the Markdown alone, without a fence."
    )

    def __init__(
        self, input_key: str | Sequence[str] = "file", output_key: str = "text", **kwargs: Any
    ) -> None:
        super().__init__(input_key, output_key=output_key, **kwargs)
