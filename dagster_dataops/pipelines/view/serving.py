"""serve: the web server of a view, on this machine only."""

import socket
import sys
from collections.abc import Sequence
from contextlib import closing, suppress
from typing import Final

from dagster_dataops.errors import ConfigurationError, MissingExtraError
from dagster_dataops.pipelines.view.viewed_reviews import ViewedReviews
from dagster_dataops.pipelines.view.viewed_root import ViewedRoot

PORT: Final = 8765
_ADDRESS: Final = "127.0.0.1"
_SWITCH_SECONDS: Final = 0.0005  # that a page waits for each turn beside work in the background


def view_application(shown: str, reviews: Sequence[str] | None = None) -> object:
    """Return the web application of a view, an ASGI application.

    Args:
        shown: The folder or URL of a root, of a pipeline or of a node; or ``FILE.py:NAME``.
        reviews: With a list, people decide reviews in it: those of the nodes, and those below the
            folders of the list. Otherwise the view changes nothing.

    Raises:
        ConfigurationError: There is no such folder or pipeline.
        MissingExtraError: The packages of the web server are not installed.
    """
    try:
        from dagster_dataops.pipelines.view.server.application import application
        from dagster_dataops.pipelines.view.server.page_request import View
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in {"starlette", "jinja2", "anyio"}:
            raise
        raise MissingExtraError("the view", "view") from error
    root = ViewedRoot.of(shown)
    return application(View(root, None if reviews is None else ViewedReviews(root, reviews)))


def serve(
    shown: str, port: int, *, reviews: Sequence[str] | None = None, opens: bool = False
) -> str:
    """Serve a view on this machine until Ctrl-C; return the text that the command prints last.

    The port 0 is any that is free. With ``opens``, a browser is opened. Other arguments are as
    for `view_application`.

    Raises:
        ConfigurationError: The port is taken, or there is no such folder or pipeline.
        MissingExtraError: The packages of the web server are not installed.
    """
    app = view_application(shown, reviews)
    try:
        import uvicorn
    except ImportError as error:
        raise MissingExtraError("the view", "view") from error
    with closing(_listening(port)) as listening:
        address = f"http://localhost:{listening.getsockname()[1]}/"
        print(f"{shown}: {address}  (Ctrl-C ends it)", flush=True)  # noqa: T201 - before it serves
        if opens:
            import webbrowser

            webbrowser.open(address)
        settings = uvicorn.Config(app, log_level="warning", server_header=False, lifespan="on")  # type: ignore[arg-type]
        sys.setswitchinterval(_SWITCH_SECONDS)
        with suppress(KeyboardInterrupt):  # uvicorn raises it again after its end
            uvicorn.Server(settings).run([listening])
    return "ended"


def _listening(port: int) -> socket.socket:
    """Return a socket that listens on a port of this machine."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((_ADDRESS, port))
        listening.listen(128)
    except (OSError, OverflowError) as error:
        listening.close()
        allowed = f"a free port, or 0 for any: {getattr(error, 'strerror', '') or error}"
        raise ConfigurationError("--port", port, allowed) from None
    return listening
