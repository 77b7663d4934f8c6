"""Group ``chat``: operators that convert, check, mask and render conversations.

The chat record, ``messages`` and perhaps ``tools``, is the common form.
"""

from typing import Final

MODULES: Final = (
    "conversions",
    "masked_secrets",
    "rendering",
    "validation",
)
