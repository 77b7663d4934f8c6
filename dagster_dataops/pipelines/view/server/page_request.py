"""`PageRequest`: what a page is asked for. `View`: what all pages of a server share."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from dagster_dataops.foundation.places.bucket import Location
from dagster_dataops.pipelines.view.records.background_work import BackgroundWorks
from dagster_dataops.pipelines.view.viewed_root import ViewedNode, ViewedRoot

if TYPE_CHECKING:
    from starlette.datastructures import QueryParams


@dataclass(frozen=True)
class View:
    """What is shown.

    Attributes:
        root: The nodes.
        works: The work in the background.
    """

    root: ViewedRoot
    works: BackgroundWorks = field(default_factory=BackgroundWorks)


@dataclass(frozen=True)
class PageRequest:
    """What a page about a node is asked for.

    Attributes:
        view: What is shown.
        node: The node.
        query: The part of the address after the question mark.
    """

    view: View
    node: ViewedNode
    query: "QueryParams"

    @cached_property
    def output(self) -> str:
        """The output that is asked for; by default the first."""
        wanted = self.query.get("output")
        return next(iter(self.node.outputs), "") if wanted is None else wanted

    @property
    def location(self) -> Location:
        """Where the result is that is asked for.

        Raises:
            ResultMissingError: There is none.
        """
        return self.node.result(self.output)

    def number(self, name: str, default: int, least: int = 0) -> int:
        """Return a number of the query; the default if it is none, or less than ``least``."""
        text = self.query.get(name, "").replace(",", "").strip()
        number = int(text) if text.isdecimal() and text.isascii() and len(text) < 19 else default
        return max(number, least)

    def link(self, page: str, **query: Any) -> str:
        """Return the address of a page about the node and the output."""
        return link(page, self.node.key, **({"output": self.output} | query))

    def same(self, **changed: Any) -> str:
        """Return the query of this address, with other values; ``None`` leaves one out."""
        pairs = [(name, one) for name, one in self.query.multi_items() if name not in changed]
        pairs += [(name, one) for name, one in changed.items() if one is not None]
        return f"?{urlencode(pairs)}"


def link(page: str, key: str = "", **query: Any) -> str:
    """Return the address of a page about a node."""
    pairs = [(name, one) for name, one in query.items() if one not in {None, ""}]
    path = f"/{page}/{quote(key)}" if key else f"/{page}"
    return f"{path}?{urlencode(pairs)}" if pairs else path
