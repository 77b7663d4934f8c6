"""Group ``text``: operators that clean, change, filter and split texts.

Every ``input_key`` may be a selector, such as ``meta.title,texts[*].body``.
"""

from typing import Final

MODULES: Final = (
    "character_replacement",
    "latex_source",
    "line_removal",
    "link_removal",
    "markdown_removal",
    "pattern_replacement",
    "sentence_operators",
    "text_cleaning",
    "unicode_repair",
    "word_removal",
)
