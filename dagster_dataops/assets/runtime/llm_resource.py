"""LLMResource: a client of language models, as a resource."""

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import dagster as dg
from pydantic import Field, create_model, field_validator, model_validator

from dagster_dataops.assets.runtime.resource import DataOpsResource, refuse_unknown
from dagster_dataops.errors import ConfigurationError
from dagster_dataops.foundation.override import override

if TYPE_CHECKING:
    from dagster_dataops.models.calls.client import ModelClient


class LLMResource(dg.ConfigurableResource[None]):
    """Address, key and limits of a server of language models: a `ModelClient` as a resource.

    The fields have the meaning of those of `ModelClient`. The address, or else the deployment, is
    part of the identity of results; a new key or limit discards no finished work. Give it as
    `build_definitions(clients={"default": LLMResource(...)})`.
    """

    base_url: str | None = Field(
        default=None,
        description=(
            "Address of an OpenAI-compatible server, with /v1. Left empty: environment "
            "DATAOPS_LLM_BASE_URL, else OPENAI_BASE_URL, else OpenAI's address."
        ),
    )
    deployment: str = Field(
        default="",
        description=(
            "A name for what the address serves. Clients with one name use the same stored replies."
        ),
    )
    replies_without_address: Literal["stop", "use", "ignore"] = Field(
        default="stop",
        description=(
            "Replies stored by version 0.2 do not name their server. stop: stop the run and ask; "
            "use: this address made them; ignore: another one did."
        ),
    )
    api_key: str | None = Field(
        default=None,
        repr=False,
        description="The key, best as an environment variable. Left empty: OPENAI_API_KEY.",
    )
    requests_per_minute: float = Field(
        default=0, ge=0, description="Most requests a minute, of all runs on this machine; 0: any."
    )
    tokens_per_minute: float = Field(
        default=0, ge=0, description="Most tokens a minute, of all runs on this machine; 0: any."
    )
    max_in_flight: int = Field(default=200, ge=1, description="Most requests at the same time.")
    timeout: float = Field(default=120.0, gt=0, description="Seconds to wait for a reply.")
    tries: int = Field(
        default=8, ge=1, description="Tries of a request if the server fails or limits the rate."
    )
    longest_wait: float = Field(
        default=120.0, ge=0, description="Most seconds to wait because the server asks for it."
    )
    prices: dict[str, dict[str, float]] = Field(
        default={},
        description=(
            "Prices by model: input, output and cached_input, per million tokens. In Python, a "
            "Price."
        ),
    )
    media_tokens: dict[str, float] = Field(
        default={},
        description=(
            "Tokens of a part of a message by its kind: image, audio, video, file. By default "
            "images count by their size."
        ),
    )
    batch_share: float = Field(
        default=0.5, ge=0, description="Share of the price that a reply of a batch costs."
    )
    max_cost: float = Field(
        default=0.0,
        ge=0,
        description="Most that the calls for one result may cost, over all its runs; 0: any.",
    )

    @model_validator(mode="before")
    @classmethod
    def _known_fields(cls, fields: Any) -> Any:
        return refuse_unknown(cls, fields)

    @field_validator("prices", mode="before")
    @classmethod
    def _plain_prices(cls, prices: Mapping[str, Any]) -> dict[str, dict[str, float]]:
        return {model: _plain(price) for model, price in prices.items()}

    @override
    def __hash__(self) -> int:
        """Return a hash: merged definitions look up equal resources."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return hash((type(self), *(repr(value) for value in fields.values())))

    @property
    def model_client(self) -> "ModelClient":
        """The client."""
        from dagster_dataops.models.calls.client import ModelClient
        from dagster_dataops.models.replies.prices import Price

        fields = {name: getattr(self, name) for name in type(self).model_fields}
        prices = {model: Price(**price) for model, price in self.prices.items()}
        return ModelClient(**{**fields, "prices": prices})


def _plain(price: Any) -> dict[str, float]:
    """Return a price as the fields that it has."""
    prices = price if isinstance(price, Mapping) else vars(price)
    return {name: value for name, value in prices.items() if value is not None}


def with_clients(
    resource: DataOpsResource, clients: Mapping[str, dg.ConfigurableResource[Any]]
) -> DataOpsResource:
    """Return the resource with further clients for operators.

    Raises:
        ConfigurationError: A name cannot be that of a field, or is taken in the resource.
    """
    if not clients:
        return resource
    names = {*type(resource).model_fields, *dir(DataOpsResource)}  # also its methods
    if not all(name.isidentifier() and name[0] != "_" and name not in names for name in clients):
        allowed = "a mapping whose keys are names of letters, digits and '_', and no attributes of "
        raise ConfigurationError("clients", dict(clients), f"{allowed}DataOpsResource")
    kinds = tuple((name, type(client)) for name, client in sorted(clients.items()))
    fields: dict[str, Any] = {name: getattr(resource, name) for name in type(resource).model_fields}
    return _extended(type(resource), kinds)(**{**fields, **clients})


@functools.cache  # resources of different classes are not equal
def _extended(
    base: type[DataOpsResource], kinds: tuple[tuple[str, type], ...]
) -> type[DataOpsResource]:
    """Return a subclass with a field for each client."""
    fields: dict[str, Any] = {name: (kind, ...) for name, kind in kinds}
    return create_model(base.__name__, __base__=base, **fields)
