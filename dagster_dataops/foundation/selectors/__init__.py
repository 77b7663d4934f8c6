"""Column selectors: ``foo[1].y,bar`` names elements of a record, to read or change them.

A selector is parsed (`grammar`), then compiled to Python functions (`codegen`) or resolved step by
step (`resolver`).
"""

from typing import Final

SPECIAL: Final = frozenset(".[,")  # characters of selectors; a column name has none of them
