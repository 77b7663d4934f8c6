"""`ModelClient`: where models are called, and how fast."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, get_args

from dagster_dataops.errors import ConfigurationError
from dagster_dataops.foundation.hashing.operational import Operational
from dagster_dataops.models.calls.server_address import canonical_address, endpoint_address
from dagster_dataops.models.calls.shared_limits import Rates
from dagster_dataops.models.replies.media_tokens import KINDS
from dagster_dataops.models.replies.prices import Price
from dagster_dataops.models.replies.served_by import ServedBy, Unaddressed
from dagster_dataops.operators.secrets.secret_texts import without_logins

_OPENAI: Final = "https://api.openai.com/v1"
_ADDRESS_VARIABLES: Final = ("DATAOPS_LLM_BASE_URL", "OPENAI_BASE_URL")  # the first one set counts
_MODES: Final = ("live", "record", "replay")
_UNADDRESSED: Final = get_args(Unaddressed)


@dataclass(frozen=True, kw_only=True)
class ModelClient(Operational):
    """Address, key and limits of a server of models.

    The address, or else the ``deployment``, is part of the identity of results: stored replies and
    unfinished runs of one server are not used for another. No other field is.

    The limits hold for all processes of this machine whose results are below one root and that use
    the client under one name. Over the agents of a cluster each agent keeps to its share.

    Attributes:
        base_url: Address of an OpenAI-compatible server, with ``/v1``. By default the environment
            variable DATAOPS_LLM_BASE_URL, else OPENAI_BASE_URL, else OpenAI's address.
        deployment: A name for what the address serves. Clients with one name use the same stored
            replies and unfinished runs, whatever their addresses.
        replies_without_address: What to do with stored replies that do not name their server, as
            those of version 0.2: ``stop`` the run and ask you, ``use`` them if this address made
            them, or ``ignore`` them.
        api_key: The key. By default the environment variable OPENAI_API_KEY.
        complete: Makes the calls instead of HTTP: an object with ``complete(request)``, which takes
            and returns JSON of the chat completions API, or a function that takes the prompt and
            returns the text. Both may be ``async``.
        headers: Further headers of each request.
        requests_per_minute: Most requests a minute; 0 for no limit.
        tokens_per_minute: Most tokens a minute, of requests and replies; 0 for no limit.
        max_in_flight: Most requests at the same time.
        timeout: Seconds to wait for a reply.
        tries: Number of tries of a request, if the server fails, limits the rate or cannot be
            reached.
        longest_wait: Most seconds to wait because a server asks for it; a request that would have
            to wait longer fails.
        prices: Prices by model.
        media_tokens: Tokens of a part of a message by its kind (``image``, ``audio``, ``video``,
            ``file``), for limits and estimates. By default images count by their size as for
            OpenAI, sounds 10 tokens a second, others 1,000 tokens.
        batch_share: The share of the price that a reply of a batch costs (``delivery="batch"``).
        max_cost: Most that the calls for one result may cost, over all runs that make it; 0 for no
            limit. The run then stops; it resumes with a larger ``max_cost``. Requests in flight at
            that moment may exceed it.
        mode: ``live``, the default, stores replies with the result of the operator. ``record``
            stores them in the file ``replies``. ``replay`` takes them from that file and calls no
            model.
        replies: The file of ``record`` and ``replay``.
    """

    base_url: str | None = None
    deployment: str = ""
    replies_without_address: Unaddressed = "stop"
    api_key: str | None = field(default=None, repr=False)
    complete: Any = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    requests_per_minute: float = 0
    tokens_per_minute: float = 0
    max_in_flight: int = 200
    timeout: float = 120.0
    tries: int = 8
    longest_wait: float = 120.0
    prices: Mapping[str, Price] = field(default_factory=dict)
    media_tokens: Mapping[str, float] = field(default_factory=dict)
    batch_share: float = 0.5
    max_cost: float = 0.0
    mode: Literal["live", "record", "replay"] = "live"
    replies: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            ConfigurationError: A value is out of its range.
        """
        for name in ("requests_per_minute", "tokens_per_minute", "longest_wait", "max_cost"):
            self._check(name, "a number, 0 or more", fits=getattr(self, name) >= 0)
        for name in ("max_in_flight", "tries"):
            self._check(name, "a whole number, 1 or more", fits=getattr(self, name) >= 1)
        self._check("timeout", "a number of seconds above 0", fits=self.timeout > 0)
        known = set(self.media_tokens) <= set(KINDS)
        fits = known and all(token >= 0 for token in self.media_tokens.values())
        self._check("media_tokens", f"numbers, 0 or more, by {', '.join(KINDS)}", fits=fits)
        fits = self.replies_without_address in _UNADDRESSED
        self._check("replies_without_address", f"one of {', '.join(_UNADDRESSED)}", fits=fits)
        self._check("mode", f"one of {', '.join(_MODES)}", fits=self.mode in _MODES)
        fits = (self.mode == "live") == (self.replies is None)
        self._check("replies", "a file with mode 'record' or 'replay', and else None", fits=fits)

    def _check(self, name: str, allowed: str, *, fits: bool) -> None:
        if not fits:
            raise ConfigurationError(f"ModelClient.{name}", getattr(self, name), allowed)

    @property
    def address(self) -> str:
        """Address of the server, without a slash at the end."""
        named = (os.environ.get(name) for name in _ADDRESS_VARIABLES)
        address = self.base_url or next(filter(None, named), _OPENAI)
        return address.rstrip("/")

    def url(self, path: str) -> str:
        """Return the address of the endpoint at a path, such as ``/chat/completions``."""
        return endpoint_address(self.address, path)

    @property
    def server(self) -> ServedBy:
        """The server that is asked. Objects count by the name of their class or function."""
        if self.complete is None:
            address = self._canonical()
        else:
            named = getattr(self.complete, "__qualname__", type(self.complete).__qualname__)
            address = f"object {named}"
        return ServedBy(address, self.deployment, self.replies_without_address)

    def _canonical(self) -> str:
        """Return the address in its canonical form."""
        try:
            address = canonical_address(self.address)
        except ValueError:
            address = ""
        fits = address.startswith(("http://", "https://"))
        if not fits:
            shown = without_logins(self.address)
            allowed = "an address that begins with http:// or https://"
            raise ConfigurationError("ModelClient.base_url", shown, allowed)
        return address

    @property
    def key(self) -> str | None:
        """The key; ``None`` for a server that needs none."""
        return self.api_key or os.environ.get("OPENAI_API_KEY")

    @property
    def all_headers(self) -> dict[str, str]:
        """The headers of each request, with the key."""
        authorization = {"authorization": f"Bearer {self.key}"} if self.key else {}
        return {**self.headers, **authorization}

    @property
    def rates(self) -> Rates:
        """The limits."""
        return Rates(self.requests_per_minute, self.tokens_per_minute, self.max_in_flight)

    @property
    def cassette(self) -> Path | None:
        """The file of ``record`` and ``replay``; ``None`` in mode ``live``."""
        return None if self.replies is None else Path(self.replies)


def client_of(value: object) -> ModelClient:
    """Return a client for an object that makes calls; a `ModelClient` itself."""
    client = getattr(value, "model_client", None)
    if isinstance(client, ModelClient):  # a resource of Dagster
        return client
    return value if isinstance(value, ModelClient) else ModelClient(complete=value)
