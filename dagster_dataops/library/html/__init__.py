"""Group ``html``: operators that take text, Markdown, metadata and tables from HTML pages."""

from dagster_dataops.library.html import extraction, page_data, page_markdown

__all__ = ["extraction", "page_data", "page_markdown"]
