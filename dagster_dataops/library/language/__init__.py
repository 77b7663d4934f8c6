"""Group ``language``: operators that identify the language and the script of texts."""

from typing import Final

MODULES: Final = (
    "identification",
    "scripts",
)
