"""`ModelOperator`: base class of operators that call a model."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from dagster_dataops.errors import FatalModelError, OperatorContextError, OperatorOptionError
from dagster_dataops.foundation.hashing.operational import Operational
from dagster_dataops.models.calls.client import ModelClient, client_of
from dagster_dataops.models.model_session import CHAT, Endpoint, ModelSession
from dagster_dataops.operators.definition.spec import Invocation
from dagster_dataops.operators.outcomes.record_context import OperatorContext, StopRun

DEFAULT_CLIENT: Final = "default"


class ModelOperator:
    """An operator that calls a model. It has calls as long as it is open.

    Args:
        model: Name of the model.
        client: Name of a client of the run, or a `ModelClient`, or an object that `ModelClient`
            takes as ``complete``.
        keep_replies: Whether replies are kept as long as the result; else they are deleted when
            it is published, and a later run asks again. Not part of the operator's identity.
        **kwargs: Execution settings.
    """

    _max_workers: int = 200  # calls in flight
    _drain_seconds: float = 20.0  # in processes too: a call that is paid is worth the wait
    __dataops__: Invocation
    _session: ModelSession | None = None

    def __init__(
        self,
        model: str,
        client: Any,
        *,
        keep_replies: Annotated[bool, Operational] = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.model, self.client, self.keep_replies = model, client, keep_replies
        settings = self.__dataops__.settings.over(self.__dataops__.spec.settings)
        reason = (
            "would multiply two kinds of tries: give tries=... to the ModelClient for failures of "
            "the server, and reasks=... to the operator for replies of the wrong form"
        )
        self.require("_retries", fits=not settings.retries, reason=reason)

    async def open(self, context: OperatorContext) -> None:
        """Open the connections of a run."""
        name, client = self._client_in(context)
        self._session = ModelSession(client, name, context, keep_replies=self.keep_replies)

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def call(
        self,
        request: dict[str, Any],
        sample: int = 0,
        reask: int = 0,
        endpoint: Endpoint = CHAT,
    ) -> tuple[dict[str, Any], bool]:
        """Return the reply of `ModelSession.complete` for the same arguments.

        Raises:
            ModelError: There is no reply.
            StopRun: No request would succeed. The run stops resumably.
        """
        try:
            return await self.session.complete(request, sample, reask, endpoint)
        except FatalModelError as error:
            raise StopRun(f"{type(error).__name__}: {error}") from error

    def __dataops_server__(self, clients: Mapping[str, Any]) -> tuple[str, bool]:
        """Return the server that is asked; see `Operator`."""
        client = client_among(self.client, clients)
        if client.mode == "replay":
            return "recorded replies", False
        return client.server.name, client.replies_without_address == "use"

    @property
    def session(self) -> ModelSession:
        """The calls of this run.

        Raises:
            OperatorContextError: The operator is not open.
        """
        if self._session is None:
            reason = (
                "is opened by a run: call the operator with records. If the class defines open(), "
                "begin it with `await super().open(context)`"
            )
            raise OperatorContextError("session", reason)
        return self._session

    def _client_in(self, context: OperatorContext) -> tuple[str, ModelClient]:
        """Return the client in a run, with its name."""
        if not isinstance(self.client, str):
            return "given", client_of(self.client)
        if self.client == DEFAULT_CLIENT and DEFAULT_CLIENT not in context.clients:
            return DEFAULT_CLIENT, ModelClient()
        return self.client, client_of(context.clients[self.client])

    def require(self, option: str, *, fits: bool, reason: str) -> None:
        """Raise an `OperatorOptionError` unless an option fits."""
        if not fits:
            raise OperatorOptionError(self.__dataops__.spec.qualified_name, option, reason)


def client_among(option: Any, clients: Mapping[str, Any]) -> ModelClient:
    """Return the client for the option ``client`` of an operator, among those of the run."""
    return client_of(clients.get(option, ModelClient()) if isinstance(option, str) else option)
