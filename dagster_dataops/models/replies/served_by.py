"""`ServedBy`: which server a reply is from."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from dagster_dataops.errors import UnaddressedRepliesError

Unaddressed: TypeAlias = Literal["stop", "use", "ignore"]


class ServedBy(NamedTuple):
    """The server that a client asks. Its replies are those of one address, or one deployment.

    Attributes:
        address: The address in a canonical form.
        deployment: A name that clients of several addresses share; empty for none.
        unaddressed: What to do with stored replies of version 0.2, which do not name their server.
    """

    address: str
    deployment: str = ""
    unaddressed: Unaddressed = "stop"

    @property
    def name(self) -> str:
        """The deployment, or else the address."""
        return f"deployment {self.deployment}" if self.deployment else self.address

    def facts(self) -> dict[str, str]:
        """Return the keys of a stored reply that name the server."""
        named = {"deployment": self.deployment} if self.deployment else {}
        return {"address": self.address, **named}

    def answered(self, line: Mapping[str, Any]) -> bool:
        """Return whether the line of a stored reply is from this server.

        Raises:
            UnaddressedRepliesError: The reply does not name its server, and the user has not said
                what to do.
        """
        if "address" not in line:
            return self._takes_unaddressed()
        same = bool(self.deployment) and line.get("deployment") == self.deployment
        return same or line["address"] == self.address

    def _takes_unaddressed(self) -> bool:
        if self.unaddressed == "stop":
            reason = (
                "the stored reply to a request does not name its server: version 0.2 stored it. "
                f"If {self.address} made the replies of this node, set "
                "replies_without_address='use' of its ModelClient, which pays for none of them "
                "again; if another server did, set 'ignore'"
            )
            raise UnaddressedRepliesError(reason)
        return self.unaddressed == "use"
