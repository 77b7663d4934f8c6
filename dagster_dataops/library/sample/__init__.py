"""Group ``sample``: operators that split, sample, rank, sort and group records.

Those that choose records decide by hashes or values of each record, so that the result does not
depend on the number of workers. Those that see the whole set use bounded memory and files.
"""

from typing import Final

MODULES: Final = (
    "choosing",
    "diversity",
    "ordering",
    "splitting",
)
