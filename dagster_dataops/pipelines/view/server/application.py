"""The web application of the view: the pages by address."""

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from starlette.applications import Starlette
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from dagster_dataops.errors import DataOpsError
from dagster_dataops.pipelines.view.server.guard import Guard
from dagster_dataops.pipelines.view.server.media import named_file, picture_of, sent_part
from dagster_dataops.pipelines.view.server.overview_page import overview_page
from dagster_dataops.pipelines.view.server.page_request import PageRequest, View, link
from dagster_dataops.pipelines.view.server.page_table import NODE_PAGES, NodePage
from dagster_dataops.pipelines.view.server.page_templates import rendered, style
from dagster_dataops.pipelines.view.server.review_pages import PREFIX, ReviewPages
from dagster_dataops.pipelines.view.viewed_root import ViewedNode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request

_HTML: Final = "text/html; charset=utf-8"
_EMPTY: Final = {"refresh": 0, "note": ""}


def application(view: View) -> Guard:
    """Return the application that shows a view."""
    site = _Site(view)
    routes = [
        Route("/", site.overview),
        Route("/style.css", lambda _: Response(style(), media_type="text/css; charset=utf-8")),
        Route("/thumbnail/{key:path}", site.thumbnail),
        Route("/media/{key:path}", site.media),
        Route("/node/{key:path}", site.unpublished),
        *(Route(f"/{page.name}/{{key:path}}", site.page(page)) for page in NODE_PAGES),
        *(ReviewPages(view, site.answer).routes() if view.reviews else ()),
        Route("/{other:path}", site.missing),
    ]

    @asynccontextmanager
    async def lifespan(_: Starlette) -> "AsyncIterator[None]":
        yield
        view.works.stop()

    failing: Any = {Exception: site.failed}
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers=failing)
    return Guard(app, PREFIX if view.reviews else "")


class _Site:
    def __init__(self, view: View) -> None:
        self._view = view

    def answer(self, template: str, status: int = 200, **context: Any) -> Response:
        """Answer with a template, which names values of ``context``."""
        root = self._view.root
        whole = {**_EMPTY, "root": root.title, "place": str(root.top), "pages": []}
        whole |= {"decides": self._view.reviews is not None, **context}
        return Response(rendered(template, **whole), status, media_type=_HTML)

    def _refusal(self, status: int, message: str) -> Response:
        return self.answer("refusal", status, message=message, found=status != 404)

    def missing(self, request: "Request") -> Response:
        """Answer with the error of an unknown address."""
        return self._refusal(404, f"There is no page {request.url.path}.")

    def failed(self, _: "Request", error: Exception) -> Response:
        """Answer with the message of an unexpected error; the server logs it."""
        return self._refusal(500, f"The page cannot be made: {type(error).__name__}: {error}")

    def overview(self, _: "Request") -> Response:
        """Answer with the first page."""
        try:
            with self._view.works.pages.making():
                return self.answer("overview", **overview_page(self._view))
        except (DataOpsError, OSError) as error:
            return self._refusal(500, str(error))

    def page(self, page: NodePage) -> Any:
        """Return the function that answers with a page about a node."""

        def shown(request: "Request") -> Response:
            with self._view.works.pages.making():
                return self._of_node(request, page)

        return shown

    def unpublished(self, request: "Request") -> Response:
        """Answer with the state of a node that has no result."""
        node = self._view.root.nodes().get(request.path_params["key"])
        if node is None:
            return self._no_node(request)
        return self._refusal(200, f"{node.name}: {node.state or 'nothing is published yet'}.")

    def _no_node(self, request: "Request") -> Response:
        key = request.path_params["key"]
        return self._refusal(404, f"There is no node {key!r} below {self._view.root.top}.")

    def _of_node(self, request: "Request", page: NodePage) -> Response:
        key = request.path_params["key"]
        try:
            node = self._view.root.node(key)
        except (DataOpsError, OSError) as error:
            return self._refusal(409, str(error))
        if node is None:
            other = self._view.root.output_at(key)
            if other is None:
                return self._no_node(request)
            return RedirectResponse(link(page.name, other[0].key, output=other[1]))
        asked = PageRequest(self._view, node, request.query_params)
        try:
            context = page.context(asked)
        except (DataOpsError, OSError) as error:
            return self._refusal(409, str(error))
        return self.answer(page.name, **_about(asked, page), **context)

    def thumbnail(self, request: "Request") -> Response:
        """Answer with a small picture of an image that a record names."""
        return self._file(request, lambda file, _: picture_of(file))

    def media(self, request: "Request") -> Response:
        """Answer with a sound, a film or an image that a record names, or with a part of it."""
        sought = request.headers.get("range", "")
        return self._file(request, lambda file, asked: sent_part(file, sought, str(asked.location)))

    def _file(self, request: "Request", answer: Any) -> Response:
        try:
            node = self._view.root.node(request.path_params["key"])
            if node is None:
                return self._no_node(request)
            asked = PageRequest(self._view, node, request.query_params)
            return answer(named_file(asked), asked)  # type: ignore[no-any-return]
        except (DataOpsError, OSError) as error:
            return Response(f"{error}\n", 404, media_type="text/plain; charset=utf-8")


def _about(asked: PageRequest, page: NodePage) -> dict[str, Any]:
    """Return the values for the head of every page about a node."""
    node = asked.node
    pages = [
        (other.title, number, asked.link(other.name), other.name == page.name)
        for other in NODE_PAGES
        if other.title and (number := other.number(node)) is not None
    ]
    return {
        "node": node,
        "manifest": node.manifest,
        "asked": asked,
        "pages": pages,
        "page": page,
        "output": asked.output,
        "outputs": list(node.outputs),
        "is_published": asked.is_published,
        "inputs": _inputs(node, asked.view),
    }


def _inputs(shown: ViewedNode, view: View) -> list[tuple[str, str]]:
    """Return name and address of each input; an empty address without a node that wrote it."""
    inputs = []
    for location in shown.inputs:
        maker = view.root.node_of_result(str(location))
        if maker is None:
            inputs.append((str(location), ""))
        else:
            node, output = maker
            inputs.append((node.name, link("records", node.key, output=output)))
    return inputs
