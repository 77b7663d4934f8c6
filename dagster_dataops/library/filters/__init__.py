"""Group ``filters``: record operators that drop or tag texts by rules."""

from typing import Final

MODULES: Final = (
    "c4_cleaning",
    "character_rules",
    "field_rules",
    "length_rules",
    "line_rules",
    "listed_words",
    "pretraining_preset",
    "published_rules",
    "repetition_rules",
    "structure_rules",
    "url_rules",
    "word_rules",
)
