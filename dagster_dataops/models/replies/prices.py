"""`Price`: cost of the tokens of a model."""

from dataclasses import dataclass

from dagster_dataops.models.replies.usage import Usage

_MILLION = 1e6


@dataclass(frozen=True)
class Price:
    """The price of a model, in any currency per million tokens.

    Attributes:
        input: Price of the tokens of the request.
        output: Price of the tokens of the reply, with those of the reasoning.
        cached_input: Price of tokens of the request that the server had cached; that of the
            others by default.
    """

    input: float
    output: float = 0.0
    cached_input: float | None = None

    def cost(self, usage: Usage) -> float:
        """Return the cost of a call."""
        cached = self.input if self.cached_input is None else self.cached_input
        fresh = usage.tokens_in - usage.tokens_cached
        total = fresh * self.input + usage.tokens_cached * cached + usage.tokens_out * self.output
        return total / _MILLION
