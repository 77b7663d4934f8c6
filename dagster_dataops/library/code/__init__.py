"""Group ``code``: operators for files of source code."""

from typing import Final

MODULES: Final = (
    "comments",
    "languages",
    "licences",
    "syntax",
)
