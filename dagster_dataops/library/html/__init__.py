"""Group ``html``: operators that take text, Markdown, metadata and tables from HTML pages."""

from dagster_dataops.library.html import page_data, page_extraction
