"""Group ``documents``: operators that read PDF, DOCX, PPTX, EPUB and HTML files page by page."""

from typing import Final

MODULES: Final = (
    "joined_pages",
    "page_images",
    "page_list",
    "page_texts",
)
