"""Group ``shape``: operators that change keys, nesting and types of records."""

from typing import Final

MODULES: Final = (
    "casting",
    "columns",
    "derived_values",
    "file_facts",
    "nesting",
)
