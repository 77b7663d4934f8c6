"""Group ``verify``: operators that check answers, code, structured texts and instructions."""

from dagster_dataops.library.verify import (
    answers,
    calculations,
    instructions,
    python_code,
    structures,
    word_overlap,
)
