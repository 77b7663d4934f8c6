"""Group ``chunk``: operators that cut a text into pieces, one record for each piece."""

from dagster_dataops.library.chunk import character_chunks, semantic, sentence_chunks, token_chunks
