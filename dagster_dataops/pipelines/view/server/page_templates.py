"""The templates of the pages. What comes from records is text in them, and never markup."""

from functools import cache
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dagster_dataops.foundation.quantities import counted, percentage
from dagster_dataops.pipelines.reporting.excerpts import excerpt, text_of_value
from dagster_dataops.pipelines.view.server.page_request import link
from dagster_dataops.pipelines.view.shown import funnel_picture, histograms

_PACKAGE: Final = "dagster_dataops.pipelines.view"


@cache
def templates() -> Environment:
    """Return the templates."""
    environment = Environment(
        loader=PackageLoader(_PACKAGE, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "counted": counted,
        "percentage": percentage,
        "excerpt": excerpt,
        "text": text_of_value,
        "number": lambda value: "" if value is None else f"{value:,}",
    }
    environment.globals |= {
        "link": link,
        "copy_script": lambda: Markup(copy_script()),  # noqa: S704 - a file of the package
        "BOX": (funnel_picture.WIDTH, funnel_picture.HEIGHT),
        "CHART": (histograms.WIDTH, histograms.HEIGHT),
    }
    return environment


def style() -> str:
    """Return the style sheet of the pages."""
    return files(_PACKAGE).joinpath("templates", "style.css").read_text(encoding="utf-8")


@cache
def copy_script() -> str:
    """Return the only script of the pages: it copies a text when a button is pressed."""
    return files(_PACKAGE).joinpath("templates", "copy.js").read_text(encoding="utf-8")


def rendered(name: str, **context: Any) -> bytes:
    """Return a page."""
    text = templates().get_template(f"{name}.html").render(**context)
    return text.encode(errors="backslashreplace")
