"""``llm.Judge`` and ``llm.PreferencePairs``: scores that a model gives."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, TypeAlias

from annotated_types import Ge

from dagster_dataops.foundation.override import override
from dagster_dataops.library.llm.text_prompts import TextPrompt, llm
from dagster_dataops.models.prompt_templates import rendered_prompt, with_values
from dagster_dataops.models.replies.reply import Reply
from dagster_dataops.operators.options.ranges import AtLeastZeroFloat
from dagster_dataops.operators.outcomes.record_context import Drop
from dagster_dataops.records import Record

_Samples: TypeAlias = Annotated[int, Ge(2)]


class Judge(TextPrompt, llm):
    """Score a text by a ``rubric``, and drop texts with a low score.

    Reads ``input_key="text"`` and writes the score, a whole number of ``scale=(1, 5)``, to
    ``output_key="score"`` and its reason to ``<output_key>_reason``. With ``min_score``, records
    with a lower score are dropped for the reason ``low_score``. The template ``prompt`` sees
    ``rubric``, ``low``, ``high`` and ``text``.

    Source: grading of single answers by a model, Zheng et al. 2023, arXiv:2306.05685.

    Args:
        rubric: What the score measures, in words.
        scale: Lowest and highest score.
        min_score: Least score of records that are kept; ``None`` keeps all.
    """

    prompt = (
        "{{ rubric }}\n\nGive a short reason, then a score from {{ low }} to {{ high }}, where "
        "{{ high }} is best.\n\nText:\n{{ text }}"
    )
    shown = ("rubric", "low", "high")

    renamed_options: ClassVar = {"keep_from": "min_score"}

    def __init__(
        self,
        rubric: str,
        input_key: str = "text",
        output_key: str = "score",
        *,
        scale: Sequence[int] = (1, 5),
        min_score: float | None = None,
        **kwargs: Any,
    ) -> None:
        low, high = _limits(self, scale)
        super().__init__(input_key, output_key=output_key, **kwargs)
        self.set_format(score_schema(low, high))
        self.rubric, self.low, self.high, self.min_score = rubric, low, high, min_score

    @override
    def parse(self, record: Record, reply: Reply) -> Record | Drop:
        score = reply.parsed["score"]
        if self.min_score is not None and score < self.min_score:
            return Drop("low_score")
        reason = {f"{self.output_key}_reason": reply.parsed["reason"]}
        return record | {self.output_key: score, **reason}


class PreferencePairs(TextPrompt, llm):
    """Answer a question ``samples`` times, and keep the best and the worst answer.

    Reads ``input_key="prompt"`` and writes ``chosen``, ``rejected`` and ``margin``, the difference
    of their scores. Each answer gets a score of ``scale=(1, 5)`` by a ``rubric``, from the same
    model. Records whose answers all have one score are dropped for the reason ``no_preference``.
    The template ``prompt`` sees ``text``, the question; ``judge_prompt`` also sees ``answer``,
    ``rubric``, ``low`` and ``high``.

    Source: several answers, scored by a model, Cui et al. 2023, arXiv:2310.01377. There the answers
    are from several models.

    Args:
        samples: Number of answers to each question.
        rubric: What the score measures, in words.
        scale: Lowest and highest score.
        judge_prompt: Jinja template of the request for a score; ``None`` for the built-in one.
    """

    prompt = "{{ text }}"
    judge_prompt = (
        "{{ rubric }}\n\nGive a short reason, then a score from {{ low }} to {{ high }}, where "
        "{{ high }} is best.\n\nQuestion:\n{{ text }}\n\nAnswer:\n{{ answer }}"
    )

    def __init__(
        self,
        input_key: str = "prompt",
        *,
        samples: _Samples = 2,
        rubric: str = "How correct, helpful and clear is the answer?",
        scale: Sequence[int] = (1, 5),
        judge_prompt: str | None = None,
        temperature: AtLeastZeroFloat | None = 1.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(input_key, temperature=temperature, **kwargs)
        self.samples, self.rubric = samples, rubric
        self.low, self.high = _limits(self, scale)
        self.judge_prompt = judge_prompt or self.judge_prompt
        self._schema = score_schema(self.low, self.high)

    @override
    async def forward(self, record: Record) -> Record | Drop:
        answers = await self.asks(self.messages(record), self.samples)
        scores = await asyncio.gather(*[self._score(record, answer.text) for answer in answers])
        ranked = sorted(range(self.samples), key=lambda at: scores[at])
        worst, best = ranked[0], ranked[-1]
        margin = scores[best] - scores[worst]
        if not margin:
            return Drop("no_preference")
        chosen = {"chosen": answers[best].text, "rejected": answers[worst].text}
        return record | {**chosen, "margin": margin}

    async def _score(self, record: Record, answer: str) -> int:
        scale = {"rubric": self.rubric, "low": self.low, "high": self.high, "answer": answer}
        prompt = rendered_prompt(self.judge_prompt, with_values(self.values(record), scale))
        reply = await self.ask(prompt, response_format=self._schema, temperature=0)
        score: int = reply.parsed["score"]
        return score


def score_schema(low: int, high: int) -> dict[str, Any]:
    """Return the JSON Schema of a reason and a score; the reason comes first."""
    score = {"type": "integer", "minimum": low, "maximum": high}
    return {
        "type": "object",
        "properties": {"reason": {"type": "string"}, "score": score},
        "required": ["reason", "score"],
    }


def _limits(operator: TextPrompt, scale: Sequence[int]) -> tuple[int, int]:
    """Return the lowest and the highest score."""
    fits = len(scale) == 2 and scale[0] < scale[1]
    reason = f"is {scale!r}; give the lowest and the highest score, such as (1, 5)"
    operator.require("scale", fits=fits, reason=reason)
    return scale[0], scale[1]
