"""``llm.SelfConsistency``: the answer that most of several samples agree on."""

from collections import Counter
from typing import Any, ClassVar, Final

from dagster_dataops.errors import InvalidOutputError
from dagster_dataops.foundation.override import override
from dagster_dataops.library.llm.text_prompts import TextPrompt, llm
from dagster_dataops.library.user_patterns import compiled
from dagster_dataops.operators.options.ranges import AtLeastZeroFloat, Fraction, PositiveInt
from dagster_dataops.operators.outcomes.record_context import Drop
from dagster_dataops.records import Record

_LAST_NUMBER: Final = r"(-?\d[\d,]*(?:\.\d+)?)\D*\Z"


class SelfConsistency(TextPrompt, llm):
    """Answer a question ``samples`` times, and keep the answer that most samples agree on.

    Reads ``input_key="question"`` and writes ``output_key="answer"``, ``agreement``, the share of
    the samples with that answer, and ``reasoning``, the first of their texts. ``answer`` is a
    regular expression that finds the answer in a text: its first group, by default the last number.
    Of answers that are equally frequent the first one counts. Records with an agreement below
    ``min_ratio`` are dropped for the reason ``no_agreement``; a record none of whose samples has an
    answer fails. The template ``prompt`` sees ``text``, the question.

    Source: Wang et al. 2022, arXiv:2203.11171.

    Args:
        samples: Number of answers to each question.
        answer: Regular expression that finds the answer in a text.
        min_ratio: Least agreement of records that are kept, 0 to 1.
    """

    renamed_options: ClassVar = {"least": "min_ratio"}

    prompt = "{{ text }}\n\nThink step by step. End with the answer alone on the last line."

    def __init__(
        self,
        input_key: str = "question",
        output_key: str = "answer",
        *,
        samples: PositiveInt = 8,
        answer: str = _LAST_NUMBER,
        min_ratio: Fraction = 0.0,
        temperature: AtLeastZeroFloat | None = 1.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(input_key, output_key=output_key, temperature=temperature, **kwargs)
        self._pattern = compiled(answer, option="answer")
        self.samples, self.least = samples, min_ratio
        self.require("answer", fits=self._pattern.groups >= 1, reason="needs a group: (...)")

    @override
    async def forward(self, record: Record) -> Record | Drop:
        replies = await self.asks(self.messages(record), self.samples)
        search = self._pattern.search
        answers = [
            (match[1], reply.text) for reply in replies if (match := search(reply.text.strip()))
        ]
        if not answers:
            reason = f"none of {self.samples} samples has an answer; one of them: {replies[0].text}"
            raise InvalidOutputError(reason[:2000])
        votes = Counter(answer for answer, _ in answers)
        best, count = votes.most_common(1)[0]
        agreement = count / self.samples
        if agreement < self.least:
            return Drop("no_agreement")
        reasoning = next(text for answer, text in answers if answer == best)
        more: Record = {"agreement": agreement, "reasoning": reasoning}
        return record | {self.output_key: best, **more}
