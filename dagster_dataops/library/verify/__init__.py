"""Group ``verify``: operators that check answers, code, structured texts and instructions."""

from typing import Final

MODULES: Final = (
    "answers",
    "calculations",
    "instructions",
    "python_code",
    "structures",
    "word_overlap",
)
