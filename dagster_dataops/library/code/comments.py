"""``code.CommentRatio``: filter files of source code by their share of comments."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from dagster_dataops.foundation.override import override
from dagster_dataops.library.code.languages import code, lexer_named, pygments
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.filters.rules import Judgement, RuleFilter, bounds
from dagster_dataops.operators.options.ranges import Fraction
from dagster_dataops.records import Record

_LOOKED_AT: Final = 100_000  # characters


class _File(NamedTuple):
    text: str
    lexer: Any


class CommentRatio(RuleFilter, code):
    """Keep files whose share of comments, by characters, is ``min_ratio`` to ``max_ratio``.

    Reads ``input_key="text"`` and ``language_key="language"``, see ``code.Language``. Comments and
    documentation strings count, white space does not; directives such as ``#include`` and ``#!``
    lines are no comments. The first 100,000 characters are read. Signal ``comment_ratio``. The
    reasons are ``unknown_language``, ``empty``, ``low_comment_ratio`` and ``high_comment_ratio``.
    Needs the extra ``code`` (Pygments).

    Source: the limits of SantaCoder, Ben Allal et al. 2023, arXiv:2301.03988.

    Args:
        input_key: Key of the text: a column, or a selector.
        language_key: Column of the language.
        min_ratio: Least share of the characters, 0 to 1; ``None`` for no limit.
        max_ratio: Largest share of the characters, 0 to 1; ``None`` for no limit.
    """

    def __init__(
        self,
        *,
        input_key: str = "text",
        language_key: str = "language",
        min_ratio: Fraction | None = 0.01,
        max_ratio: Fraction | None = 0.8,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        pygments()
        self._column, self._language = FieldKey(input_key), FieldKey(language_key)
        self.rules = bounds("comment_ratio", _comment_ratio, min_ratio, max_ratio)
        self.nothing = _is_empty

    @override
    def judge(self, record: Record, known: Mapping[str, Any], *, thorough: bool) -> Judgement:
        language = self._language.text(record)
        lexer = lexer_named(language) if language else None
        if lexer is None:
            return Judgement("unknown_language")
        file = _File(self._column.text(record)[:_LOOKED_AT], lexer)
        if thorough:
            return self.judge_thoroughly(file, known)
        return Judgement(self.first_reason(file, known))


def _is_empty(file: _File) -> bool:
    return not file.text.strip()


def _comment_ratio(file: _File) -> float:
    """Return the share of the characters, without white space, that are comments."""
    from pygments.token import Comment, String

    spared = {Comment.Preproc, Comment.PreprocFile, Comment.Hashbang}
    comments = everything = 0
    for _, kind, text in file.lexer.get_tokens_unprocessed(file.text):
        size = sum(map(len, text.split()))
        everything += size
        if (kind in Comment and kind not in spared) or kind in String.Doc:
            comments += size
    return comments / everything if everything else 0.0
