"""Group ``join``: operators that add the columns of one dataset to the records of another."""

from typing import Final

MODULES: Final = (
    "lookups",
    "merging",
)
