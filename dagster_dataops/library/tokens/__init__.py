"""Group ``tokens``: operators that count, encode and pack the tokens of texts."""

from dagster_dataops.library.tokens import packing, token_counts
