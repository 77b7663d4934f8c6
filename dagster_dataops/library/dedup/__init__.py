"""Group ``dedup``: operators that remove repeated records, sentences, lines and passages.

They process the records in parallel, with a checkpoint, and then decide in input order. Memory is
limited; more data goes to files in the node's folder.
"""

from typing import Final

MODULES: Final = (
    "against",
    "bloom",
    "exact",
    "near_duplicates",
    "sentences",
    "simhash",
    "substrings",
    "urls",
)
