"""Group ``tokens``: operators that count, encode and pack the tokens of texts."""

from typing import Final

MODULES: Final = (
    "chat_encoding",
    "packing",
    "token_counts",
)
