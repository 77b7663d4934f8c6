"""Group ``pii``: operators that find and replace personal data and secrets.

Their patterns take linear time, with Python's ``re`` alone: each reads a run of its characters
once, and is tried only where a text has a character such as ``@`` that a match must have.
"""

from typing import Final

MODULES: Final = (
    "named_entities",
    "personal_data",
    "secret_keys",
)
