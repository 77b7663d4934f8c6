"""`WithholdingClient`: a client that makes no call, and keeps what it would have asked."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from dagster_dataops.errors import CallWithheldError
from dagster_dataops.models.calls.client import ModelClient
from dagster_dataops.models.replies.token_estimates import estimate

_USUAL_OUTPUT: Final = 1000  # tokens of a reply without a limit


@dataclass
class WithheldRequests:
    """Requests to one model that were not sent.

    Attributes:
        requests: Their number.
        tokens_in: Their tokens, by the number of characters.
        tokens_out: The most tokens that their replies may have.
    """

    requests: int = 0
    tokens_in: float = 0.0
    tokens_out: float = 0.0


@dataclass
class WithheldCalls:
    """The requests that clients did not send.

    Attributes:
        positions: Byte positions of the records that needed them, in the input.
        by_model: The requests by the name of their model.
    """

    positions: set[int] = field(default_factory=set)
    by_model: dict[str, WithheldRequests] = field(default_factory=dict)
    _asked: set[str] = field(default_factory=set)

    def add(
        self, key: str, position: int, request: Mapping[str, Any], media: Mapping[str, float]
    ) -> None:
        """Add a request of the record at a position.

        Equal requests count once. So do equal texts of requests for vectors: of a batch that
        fails, parts are asked again.
        """
        self.positions.add(position)
        texts = request.get("input")
        names = [key]
        if isinstance(texts, list):
            names = [f"{request['model']} {text}" for text in texts]
            new = [text for text, name in zip(texts, names, strict=True) if name not in self._asked]
            request = {**request, "input": new}
        if self._asked.issuperset(names):
            return
        self._asked.update(names)
        tokens_in, tokens_out = estimate(request, _USUAL_OUTPUT, media)
        of_model = self.by_model.setdefault(str(request["model"]), WithheldRequests())
        of_model.requests += 1
        of_model.tokens_in += tokens_in
        of_model.tokens_out += tokens_out


@dataclass(frozen=True, kw_only=True)
class WithholdingClient(ModelClient):
    """A client that makes no call: a request without a stored reply fails."""

    withheld: WithheldCalls = field(default_factory=WithheldCalls)

    @classmethod
    def instead_of(cls, client: ModelClient, withheld: WithheldCalls) -> "WithholdingClient":
        """Return a client that uses the stored replies of another one."""
        values = {each.name: getattr(client, each.name) for each in fields(ModelClient)}
        return cls(**values, withheld=withheld)

    def withhold(self, key: str, request: Mapping[str, Any], position: int) -> None:
        """Keep a request of the record at a position instead of sending it.

        Raises:
            CallWithheldError: Always.
        """
        self.withheld.add(key, position, request, self.media_tokens)
        raise CallWithheldError(f"a call of model {request['model']} is needed, and none is made")
