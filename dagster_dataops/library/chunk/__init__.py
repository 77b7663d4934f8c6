"""Group ``chunk``: operators that cut a text into pieces, one record for each piece."""

from dagster_dataops.library.chunk import sentence_chunks, sized_chunks
