"""Paging: which records a page shows, and links to other pages."""

from typing import Any, Final

from dagster_dataops.pipelines.view.records.background_work import BackgroundWork
from dagster_dataops.pipelines.view.server.page_request import PageRequest

ROWS: Final = (25, 50, 100)  # of a page
SOON: Final = 1  # seconds until a page that waits is loaded again


def waiting(work: BackgroundWork) -> dict[str, Any]:
    """Return the values of a page whose work goes on, or has failed.

    Returns:
        ``refresh`` and ``work``, to show its progress; after a failure the error as ``note``, and
        no ``refresh``.
    """
    return {"note": work.error, "refresh": 0} if work.error else {"work": work, "refresh": SOON}


def page_size(request: PageRequest) -> int:
    """Return the number of records of a page."""
    wanted = request.number("rows", ROWS[0])
    return wanted if wanted in ROWS else ROWS[0]


def paged(request: PageRequest, first: int, total: int, shown: int) -> dict[str, Any]:
    """Return the numbers of a page, and links to others."""
    size = page_size(request)
    last = max(0, (total - 1) // size * size)
    return {
        "first": first + 1 if shown else 0,
        "last": first + shown,
        "total": total,
        "links": {
            "First": request.same(**{"from": 1}) if first > 0 else "",
            "Previous": request.same(**{"from": max(1, first - size + 1)}) if first > 0 else "",
            "Next": request.same(**{"from": first + shown + 1}) if first + shown < total else "",
            "Last": request.same(**{"from": last + 1}) if first + shown < total else "",
        },
        "size": size,
    }
