"""`CallCounts`: the number, the tokens and the cost of the calls of an operator."""

from collections.abc import Mapping

from dagster_dataops.models.replies.latency import latency_count
from dagster_dataops.models.replies.prices import Price
from dagster_dataops.models.replies.reply import finish_reason_of
from dagster_dataops.models.replies.reply_store import ReplyStore, StoredReply
from dagster_dataops.models.replies.usage import Usage, counted_usage
from dagster_dataops.operators.outcomes.record_context import OperatorContext


class CallCounts:
    """Counts the calls of an operator with the records that make them."""

    def __init__(
        self, context: OperatorContext, store: ReplyStore, prices: Mapping[str, Price]
    ) -> None:
        self._context, self._store, self._prices = context, store, prices
        self._counted: set[int] = set()
        self._cost, self._summed_to = 0.0, store.published

    def paid(self, stored: StoredReply) -> None:
        """Count the call of a reply."""
        reply = stored.reply
        counts: dict[str, float] = {"calls": 1, f"model/{reply.get('model') or stored.model}": 1}
        if stored.seconds:
            counts[latency_count(stored.seconds)] = 1
        finish = finish_reason_of(reply)
        if finish:
            counts[f"finish_reasons/{finish}"] = 1
        self._context.count(**counts, **self._usage_counts(stored))

    def without_answer(self, spent: StoredReply) -> None:
        """Count the tokens and the cost of a reply without an answer."""
        self._context.count(**self._usage_counts(spent))

    def stored(self, stored: StoredReply, *, replays: bool) -> None:
        """Count a stored reply; as paid if its record was interrupted before it was settled.

        With ``replays``, the replies come from a file of the user.
        """
        new = self._store.published <= stored.at < self._store.opened
        is_at_start = stored.start == self._context.position
        if new and is_at_start and stored.at not in self._counted and not replays:
            self._counted.add(stored.at)
            self.paid(stored)
        else:
            self._context.count(calls_replayed=1)

    def spent_before(self) -> None:
        """Count replies without an answer that this record got before it was interrupted."""
        for spent in self._store.take_spent(self._context.position):
            self.without_answer(spent)

    def forget(self) -> None:
        """Count stored replies again that were counted."""
        self._counted.clear()

    def cost(self) -> float:
        """Return the cost of the calls for the result, of all runs and processes that make it."""
        for stored in self._store.since(self._summed_to):
            self._summed_to = stored.at + 1  # the rest of this line is no line
            self._cost += self._usage_counts(stored).get("cost", 0.0)
        return self._cost

    def _usage_counts(self, stored: StoredReply) -> dict[str, float]:
        """Return the tokens and the cost of a reply, and how much of both is estimated."""
        usage, estimated = counted_usage(stored.reply, estimated=stored.estimated)
        counts: dict[str, float] = {name: n for name, n in usage._asdict().items() if n}
        price = self._prices.get(stored.model)
        if price is not None:
            counts["cost"] = price.cost(usage) * stored.share
        if estimated is not None:
            counts |= {"calls_without_usage": 1, "tokens_estimated": sum(estimated)}
            if price is not None:
                part = Usage(tokens_in=estimated[0], tokens_out=estimated[1])
                counts["cost_estimated"] = price.cost(part) * stored.share
        return counts
