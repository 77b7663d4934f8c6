"""Random cells of tables, and how to write them."""

import csv

import hypothesis.strategies as st

CELLS = st.text(
    st.one_of(st.sampled_from('",\n\r ;é\u2028\x00'), st.characters(exclude_categories=["Cs"])),
    max_size=12,
)

TABLES = st.lists(st.lists(CELLS, min_size=3, max_size=3), max_size=30)
# Other line ends stand inside cells without quotes, and would be read as the end of a row.
QUOTING = {"\r\n": csv.QUOTE_MINIMAL, "\n": csv.QUOTE_ALL, "\r": csv.QUOTE_ALL}
