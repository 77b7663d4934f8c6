"""Group ``html``: operators that take text, Markdown, metadata and tables from HTML pages."""

from typing import Final

MODULES: Final = (
    "page_data",
    "page_extraction",
)
