"""``llm.Generate``, ``llm.Rewrite`` and ``llm.Translate``: texts that a model writes."""

from collections.abc import Mapping
from typing import Any

from typing_extensions import override

from dagster_dataops.library.llm.text_prompts import TextPrompt, llm
from dagster_dataops.models.llm_operator import LLMOperator
from dagster_dataops.operators.options.ranges import PositiveInt
from dagster_dataops.records import Record


class Generate(LLMOperator, llm):
    """Write the reply to ``prompt`` to ``output_key="answer"``.

    ``prompt`` is a Jinja template that sees the columns of the record by name, the whole record as
    ``record``, and the filter ``tojson``. With ``response_format``, a pydantic model or a JSON
    Schema, the reply is JSON of that form.
    """


class Rewrite(TextPrompt, llm):
    """Rewrite a text as ``instruction`` says: a record for each of ``count`` rewritings.

    Reads ``input_key="text"`` and writes the rewriting to ``output_key``, by default the same key,
    and its number, counted from 1, to ``variant``. With ``keep_original=True`` the record itself
    comes first, with the number 0. The template ``prompt`` sees ``instruction`` and ``text``.

    Source: rephrased texts beside the originals, Maini et al. 2024, arXiv:2401.16380.

    Args:
        instruction: What is to be done with the text, in words.
        count: Number of rewritings of a text.
        keep_original: Whether the record itself comes first.
    """

    prompt = "{{ instruction }} Reply with the new text alone.\n\n{{ text }}"

    def __init__(
        self,
        instruction: str,
        input_key: str = "text",
        output_key: str | None = None,
        *,
        count: PositiveInt = 1,
        keep_original: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(input_key, output_key=output_key or input_key, **kwargs)
        self.instruction, self.count, self.keep_original = instruction, count, keep_original

    @override
    def values(self, record: Record) -> Mapping[str, Any]:
        return {**super().values(record), "instruction": self.instruction}

    @override
    async def forward(self, record: Record) -> list[Record]:
        replies = await self.asks(self.messages(record), self.count)
        written: list[Record] = [
            {**record, self.output_key: reply.text, "variant": number}
            for number, reply in enumerate(replies, 1)
        ]
        return [{**record, "variant": 0}, *written] if self.keep_original else written


class Translate(TextPrompt, llm):
    """Translate a text into the language ``to``, such as ``"German"``.

    Reads ``input_key="text"`` and writes ``output_key="translation"``. The template ``prompt`` sees
    ``to`` and ``text``.

    Args:
        to: Name of the language.
    """

    prompt = (
        "Translate the text into {{ to }}. Keep markup, code and numbers. Reply with the "
        "translation alone.\n\n{{ text }}"
    )

    def __init__(
        self, to: str, input_key: str = "text", output_key: str = "translation", **kwargs: Any
    ) -> None:
        super().__init__(input_key, output_key=output_key, **kwargs)
        self.to = to

    @override
    def values(self, record: Record) -> Mapping[str, Any]:
        return {**super().values(record), "to": self.to}
