"""`PageRequest`: a request for a page about a node. `View`: the state that all pages share."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from dagster_dataops.foundation.places.bucket import Location
from dagster_dataops.pipelines.view.records.background_work import BackgroundWorks
from dagster_dataops.pipelines.view.viewed_reviews import ViewedReviews
from dagster_dataops.pipelines.view.viewed_root import ViewedNode, ViewedRoot

if TYPE_CHECKING:
    from starlette.datastructures import QueryParams


@dataclass(frozen=True)
class View:
    """The state that all pages of a server share.

    ``reviews`` is ``None`` in a view that changes nothing.
    """

    root: ViewedRoot
    reviews: ViewedReviews | None = None
    works: BackgroundWorks = field(default_factory=BackgroundWorks)


@dataclass(frozen=True)
class PageRequest:
    """A request for a page about a node."""

    view: View
    node: ViewedNode
    query: "QueryParams"

    @cached_property
    def output(self) -> str:
        """The requested output; by default the first."""
        wanted = self.query.get("output")
        return next(iter(self.node.outputs), "") if wanted is None else wanted

    @property
    def location(self) -> Location:
        """The location of the requested result.

        Raises:
            ResultMissingError: There is none.
        """
        return self.node.result(self.output)

    @property
    def is_published(self) -> bool:
        """Whether the file of the requested result is the published one, or there is none."""
        return self.output not in self.node.outputs or self.node.is_published(self.output)

    def number(self, name: str, default: int, least: int = 0) -> int:
        """Return a number of the query, at least ``least``; without a valid one, the default."""
        text = self.query.get(name, "").replace(",", "").strip()
        number = int(text) if text.isdecimal() and text.isascii() and len(text) < 19 else default
        return max(number, least)

    def link(self, page: str, **query: Any) -> str:
        """Return the address of a page about the node and the output."""
        return link(page, self.node.key, **({"output": self.output} | query))

    def same(self, **changed: Any) -> str:
        """Return the query of this address, with other values; ``None`` leaves one out."""
        pairs = [(name, value) for name, value in self.query.multi_items() if name not in changed]
        pairs += [(name, value) for name, value in changed.items() if value is not None]
        return f"?{urlencode(pairs)}"


def link(page: str, key: str = "", **query: Any) -> str:
    """Return the address of a page about a node."""
    pairs = [(name, value) for name, value in query.items() if value not in {None, ""}]
    path = f"/{page}/{quote(key)}" if key else f"/{page}"
    return f"{path}?{urlencode(pairs)}" if pairs else path
