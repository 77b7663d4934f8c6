"""The templates of the pages. What comes from records is text in them, and never markup."""

from functools import cache
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from dagster_dataops.foundation.quantities import counted, percentage
from dagster_dataops.pipelines.reporting.excerpts import excerpt, text_of_value
from dagster_dataops.pipelines.view.server.page_request import link
from dagster_dataops.pipelines.view.shown import funnel_picture, histograms

_PACKAGE: Final = "dagster_dataops.pipelines.view"


@cache
def templates() -> Environment:
    """Return the templates."""
    made = Environment(
        loader=PackageLoader(_PACKAGE, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "counted": counted,
        "percentage": percentage,
        "excerpt": excerpt,
        "text": text_of_value,
        "number": lambda value: "" if value is None else f"{value:,}",
    }
    made.globals |= {
        "link": link,
        "BOX": (funnel_picture.WIDTH, funnel_picture.HEIGHT),
        "CHART": (histograms.WIDTH, histograms.HEIGHT),
    }
    return made


def style() -> str:
    """Return the style sheet of the pages."""
    return files(_PACKAGE).joinpath("templates", "style.css").read_text(encoding="utf-8")


def rendered(name: str, **context: Any) -> bytes:
    """Return a page.

    Args:
        name: The name of its template, without the ending.
        **context: The values that the template names.
    """
    text = templates().get_template(f"{name}.html").render(**context)
    return text.encode(errors="backslashreplace")
