"""Group ``tokens``: operators that count, encode and pack the tokens of texts."""

from dagster_dataops.library.tokens import chat_encoding, packing, token_counts
