"""Group ``stats``: operators that measure texts and sum up the measurements."""

from typing import Final

MODULES: Final = (
    "summaries",
    "text_signals",
    "threshold_selection",
)
