"""Operators of group ``text`` that replace characters: spaces, punctuation, newlines."""

import re
from typing import Any, ClassVar, Final

from dagster_dataops.foundation.override import override
from dagster_dataops.library.analysis.simplified_text import simplified
from dagster_dataops.library.option_values import check_choice
from dagster_dataops.library.text.text_cleaning import text
from dagster_dataops.library.text_mapping import TextOperator
from dagster_dataops.operators.options.ranges import AtLeastZero

_SPACE: Final = "[ \t\u0084\u00a0\u2000-\u200d\u202f\u205f\u2060\u3000\ufffc]"
_ONE_SPACE: Final = re.compile(_SPACE)
_SPACES: Final = re.compile(f"{_SPACE}+")
ASCII_OF_MARKS: Final = str.maketrans(
    {
        **dict.fromkeys("，、", ","),
        **dict.fromkeys("„”“«»」「《》", '"'),
        **dict.fromkeys("´’", "'"),
        **dict.fromkeys("∶：", ":"),
        **dict.fromkeys("–━►", "-"),
        **dict(zip("。？！（）；～〈〉【】％", ".?!();~<>[]%", strict=True)),
        "—": " - ",
        "．": ". ",
        "…": "...",
    }
)
_COMPATIBLE: Final = {**ASCII_OF_MARKS, ord("１"): '"'}


class NormalizeWhitespace(TextOperator, text):
    """Replace each of 23 white space and invisible characters by one space.

    The characters are the space, the tab, the spaces of Unicode, the zero-width space, joiners,
    U+2060, U+FFFC and U+0084; newlines stay. Reads ``input_key`` (one key or several) and writes
    ``output_key`` (by default, the same keys).

    As ``whitespace_normalization_mapper`` of Data-Juicer, which never collapses runs.

    Args:
        strip: Whether white space at both ends is removed first.
        collapse: Whether a run of such characters becomes one space.
    """

    def __init__(
        self, *args: Any, strip: bool = True, collapse: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._strip, self._pattern = strip, _SPACES if collapse else _ONE_SPACE

    @override
    def changed(self, value: str) -> str:
        if self._strip:
            value = value.strip()
        if self._pattern is _ONE_SPACE and value.isascii():
            return value.replace("\t", " ")
        return self._pattern.sub(" ", value)


class NormalizePunctuation(TextOperator, text):
    """Replace 33 punctuation marks of Unicode by ASCII characters.

    Quotation marks, dashes, and full-width and Chinese punctuation. Reads ``input_key`` (one key or
    several) and writes ``output_key`` (by default, the same keys).

    As ``punctuation_normalization_mapper`` of Data-Juicer, whose table is from the Moses tools.
    That table also replaces the digit U+FF11 by a quotation mark, which is an error.

    Args:
        table: The table; ``"moses"`` is the only one.
        compat: Whether U+FF11 becomes a quotation mark too.
    """

    def __init__(
        self, *args: Any, table: str = "moses", compat: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        check_choice("table", table, ("moses",))
        self._table = _COMPATIBLE if compat else ASCII_OF_MARKS

    @override
    def changed(self, value: str) -> str:
        return value if value.isascii() else value.translate(self._table)


class CollapseNewlines(TextOperator, text):
    r"""Shorten runs of newlines to ``max_newlines`` newlines.

    ``\n`` and ``\r\n`` are counted apart. Reads ``input_key`` (one key or several) and writes
    ``output_key`` (by default, the same keys). As ``NewlineNormalizer`` of NeMo Curator.

    Args:
        max_newlines: The number of newlines that longer runs get.
    """

    renamed_options: ClassVar = {"max": "max_newlines"}

    def __init__(
        self,
        *args: Any,
        max_newlines: AtLeastZero = 2,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._most = max_newlines

    @override
    def changed(self, value: str) -> str:
        most = self._most
        for newline in ("\n", "\r\n"):
            if newline * (most + 1) in value:
                value = re.sub(f"(?:{newline}){{{most + 1},}}+", newline * most, value)
        return value


class Simplify(TextOperator, text):
    """Simplify a text so that similar texts become equal.

    Lower case, accents removed, each number written as 0, punctuation and white space as one space.
    Reads ``input_key`` (one key or several) and writes ``output_key`` (by default, the same keys).
    As datatrove does before it compares sentences and n-grams.
    """

    @override
    def changed(self, value: str) -> str:
        return simplified(value)


class SimplifyText(Simplify):
    """Simplify a text: `text.Simplify` under the name that datatrove uses.

    Reads ``input_key`` and writes ``output_key``.
    """
