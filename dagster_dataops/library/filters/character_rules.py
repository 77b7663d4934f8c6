"""Filters by the kinds of characters of a text."""

from typing import Any, ClassVar, Literal

from dagster_dataops.library.analysis.signals import character_signals
from dagster_dataops.library.filters.rules import TextFilter, bounds, filters, no_text
from dagster_dataops.operators.options.ranges import Fraction


class AlphanumericRatio(TextFilter, filters):
    """Keep texts in which ``min_ratio`` to ``max_ratio`` of the characters are letters or digits.

    Reads ``input_key``. White space counts as a character; an empty text has 0.0. Signal
    ``alnum_ratio``; reasons ``low_alnum_ratio``, ``high_alnum_ratio``. ``None`` is no limit.
    Recipes use 0.65 to 0.70 as minimum.

    Source: ``alphanumeric_filter`` of Data-Juicer.

    Args:
        min_ratio: Smallest share to keep; ``None`` for no limit.
        max_ratio: Largest share to keep; ``None`` for no limit.
    """

    def __init__(
        self, *, min_ratio: Fraction | None = 0.25, max_ratio: Fraction | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.rules = bounds("alnum_ratio", character_signals.alnum_ratio, min_ratio, max_ratio)


class SpecialCharacterRatio(TextFilter, filters):
    """Drop texts in which more than ``max_ratio`` of the characters are special.

    Reads ``input_key``. Special are punctuation, digits, white space, symbols and emoji. White
    space makes about 0.2 of English prose; recipes use 0.4 as maximum.
    ``character_set="datajuicer"`` is the exact set of Data-Juicer, which has some letters and vowel
    signs, so that Hindi fails; ``fixed`` leaves them out. An empty text has 0.0. Signal
    ``special_char_ratio``; reasons ``low_special_char_ratio``, ``high_special_char_ratio``.
    ``None`` is no limit.

    Source: ``special_characters_filter`` of Data-Juicer.

    Args:
        min_ratio: Smallest share to keep; ``None`` for no limit.
        max_ratio: Largest share to keep; ``None`` for no limit.
        character_set: ``fixed``, or ``datajuicer`` for its set with letters.
    """

    renamed_options: ClassVar = {"set": "character_set"}

    def __init__(
        self,
        *,
        min_ratio: Fraction | None = None,
        max_ratio: Fraction | None = 0.25,
        character_set: Literal["fixed", "datajuicer"] = "fixed",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        functions = {
            "fixed": character_signals.special_char_ratio,
            "datajuicer": character_signals.special_char_ratio_datajuicer,
        }
        self.rules = bounds("special_char_ratio", functions[character_set], min_ratio, max_ratio)


class NonAlphaNumeric(TextFilter, filters):
    r"""Drop texts in which more than ``max_ratio`` of the characters are not ``a-zA-Z0-9\n?!,.``.

    Reads ``input_key``. A space is such a character. Signal ``non_alpha_numeric_ratio``; reasons
    ``empty``, ``high_non_alpha_numeric_ratio``. For English only.

    Source: ``NonAlphaNumericFilter`` of NeMo Curator.

    Args:
        max_ratio: Largest share to keep; ``None`` for no limit.
    """

    renamed_options: ClassVar = {"max": "max_ratio"}

    nothing = staticmethod(no_text)

    def __init__(self, *, max_ratio: Fraction | None = 0.25, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        ratio = character_signals.non_alpha_numeric_ratio
        self.rules = bounds("non_alpha_numeric_ratio", ratio, None, max_ratio)


class Numbers(TextFilter, filters):
    """Drop texts in which more than a share of the characters are the digits 0 to 9.

    Reads ``input_key``. Signal ``numbers_ratio``; reasons ``empty``, ``high_numbers_ratio``.

    Source: ``NumbersFilter`` of NeMo Curator.

    Args:
        max_number_to_text_ratio: Largest share to keep; ``None`` for no limit.
    """

    nothing = staticmethod(no_text)

    def __init__(self, *, max_number_to_text_ratio: Fraction | None = 0.15, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        ratio = character_signals.numbers_ratio
        self.rules = bounds("numbers_ratio", ratio, None, max_number_to_text_ratio)


class Urls(TextFilter, filters):
    """Drop texts in which more than a share of the characters belong to URLs.

    Reads ``input_key``. URLs begin with ``http://`` or ``https://``. Signal ``urls_ratio``; reasons
    ``empty``, ``high_urls_ratio``.

    Source: ``UrlsFilter`` of NeMo Curator.

    Args:
        max_url_to_text_ratio: Largest share to keep; ``None`` for no limit.
    """

    nothing = staticmethod(no_text)

    def __init__(self, *, max_url_to_text_ratio: Fraction | None = 0.2, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        ratio = character_signals.urls_ratio
        self.rules = bounds("urls_ratio", ratio, None, max_url_to_text_ratio)


class WhiteSpace(TextFilter, filters):
    """Drop texts in which more than a share of the characters are white space.

    Reads ``input_key``. White space are spaces, tabs, line ends and backspaces. Signal
    ``white_space_ratio``; reasons ``empty``, ``high_white_space_ratio``.

    Source: ``WhiteSpaceFilter`` of NeMo Curator.

    Args:
        max_white_space_ratio: Largest share to keep; ``None`` for no limit.
    """

    nothing = staticmethod(no_text)

    def __init__(self, *, max_white_space_ratio: Fraction | None = 0.25, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        ratio = character_signals.white_space_ratio
        self.rules = bounds("white_space_ratio", ratio, None, max_white_space_ratio)


class Parentheses(TextFilter, filters):
    """Drop texts in which more than a share of the characters are brackets ``{}⟨⟩[]()``.

    Reads ``input_key``. Signal ``parentheses_ratio``; reasons ``empty``,
    ``high_parentheses_ratio``.

    Source: ``ParenthesesFilter`` of NeMo Curator.

    Args:
        max_parentheses_ratio: Largest share to keep; ``None`` for no limit.
    """

    nothing = staticmethod(no_text)

    def __init__(self, *, max_parentheses_ratio: Fraction | None = 0.1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        ratio = character_signals.parentheses_ratio
        self.rules = bounds("parentheses_ratio", ratio, None, max_parentheses_ratio)
