"""``llm.QAPairs``: questions and answers from texts."""

import asyncio
from typing import Any, Final

from dagster_dataops.foundation.override import override
from dagster_dataops.library.llm.text_prompts import TextPrompt, llm
from dagster_dataops.models.prompt_templates import rendered_prompt, with_values
from dagster_dataops.operators.options.ranges import PositiveInt
from dagster_dataops.operators.outcomes.record_context import Drop
from dagster_dataops.records import Record

_TEXT: Final = {"type": "string"}
_PAIR: Final = {
    "type": "object",
    "properties": {"question": _TEXT, "answer": _TEXT},
    "required": ["question", "answer"],
}
_PAIRS: Final = {
    "type": "object",
    "properties": {"pairs": {"type": "array", "items": _PAIR}},
    "required": ["pairs"],
}
_GROUNDING: Final = {
    "type": "object",
    "properties": {"quote": _TEXT, "grounded": {"type": "boolean"}},
    "required": ["quote", "grounded"],
}


class QAPairs(TextPrompt, llm):
    """Write ``count`` questions with answers about a text: one record a pair.

    Reads ``input_key="text"`` and writes ``question``, ``answer`` and ``pair``, the number of the
    pair, counted from 0. With ``grounded=True`` a further call for each pair asks whether the text
    supports the answer: pairs without support are left out, the others get the supporting words as
    ``quote``. A text without a pair is dropped for the reason ``no_grounded_pair``. The template
    ``prompt`` sees ``text`` and ``count``, ``grounding_prompt`` also ``question`` and ``answer``.

    Source: generated questions that a second model checks, Alberti et al. 2019, arXiv:1906.05416.
    Here the check is for support by the text, not for the same answer.

    Args:
        count: Number of questions about a text.
        grounded: Whether a further call checks each answer.
        grounding_prompt: Jinja template of that call; ``None`` for the built-in one.
    """

    prompt = (
        "Write {{ count }} questions with short answers. The text alone must answer them, and each "
        "question must be clear without the text.\n\nText:\n{{ text }}"
    )
    grounding_prompt = (
        "Does the text support the answer? Quote the words of the text that do, then decide.\n\n"
        "Text:\n{{ text }}\n\nQuestion: {{ question }}\nAnswer: {{ answer }}"
    )
    shown = ("count",)

    def __init__(
        self,
        input_key: str = "text",
        *,
        count: PositiveInt = 3,
        grounded: bool = True,
        grounding_prompt: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(input_key, **kwargs)
        self.set_format(_PAIRS)
        self.count, self.grounded = count, grounded
        self.grounding_prompt = grounding_prompt or self.grounding_prompt

    @override
    async def forward(self, record: Record) -> list[Record] | Drop:
        reply = await self.ask(self.messages(record))
        pairs = reply.parsed["pairs"][: self.count]
        if self.grounded:
            checked = await asyncio.gather(*[self._supported(record, pair) for pair in pairs])
            pairs = [pair for pair in checked if pair is not None]
        if not pairs:
            return Drop("no_grounded_pair")
        return [record | pair | {"pair": number} for number, pair in enumerate(pairs)]

    async def _supported(self, record: Record, pair: dict[str, str]) -> dict[str, str] | None:
        """Return a pair with its quote; ``None`` if the text does not support it."""
        prompt = rendered_prompt(self.grounding_prompt, with_values(self.values(record), pair))
        reply = await self.ask(prompt, response_format=_GROUNDING)
        return {**pair, "quote": reply.parsed["quote"]} if reply.parsed["grounded"] else None
