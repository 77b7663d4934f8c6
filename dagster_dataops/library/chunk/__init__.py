"""Group ``chunk``: operators that cut a text into pieces, one record for each piece."""

from typing import Final

MODULES: Final = (
    "sentence_chunks",
    "sized_chunks",
)
