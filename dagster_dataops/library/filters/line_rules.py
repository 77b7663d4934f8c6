"""Filters by how the lines of a text begin and end."""

from typing import Any, ClassVar

from dagster_dataops.library.analysis.signals import line_signals
from dagster_dataops.library.filters.rules import TextFilter, blank, bounds, filters
from dagster_dataops.operators.options.ranges import Fraction


class Bullets(TextFilter, filters):
    """Drop texts in which more than a share of the lines start with a round bullet.

    Reads ``input_key``. Blank lines do not count, and ``-`` and ``*`` are no round bullets:
    `filters.GopherQuality` counts ``-``. Signal ``round_bullet_ratio``; reasons ``empty``,
    ``high_round_bullet_ratio``.

    Source: ``BulletsFilter`` of NeMo Curator, which fails on a text without lines.

    Args:
        max_bullet_lines_ratio: Largest share to keep; ``None`` for no limit.
    """

    nothing = staticmethod(blank)

    def __init__(self, *, max_bullet_lines_ratio: Fraction | None = 0.9, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        ratio = line_signals.round_bullet_ratio
        self.rules = bounds("round_bullet_ratio", ratio, None, max_bullet_lines_ratio)


class Ellipsis(TextFilter, filters):  # noqa: A001 - the name of the field
    """Drop texts in which more than a share of the lines end in an ellipsis or ``read more``.

    Reads ``input_key``. Blank lines do not count. Signal ``ellipsis_mark_ratio``; reasons
    ``empty``, ``high_ellipsis_mark_ratio``.

    Source: ``EllipsisFilter`` of NeMo Curator, which fails on a text without lines.

    Args:
        max_ellipsis_lines_ratio: Largest share to keep; ``None`` for no limit.
    """

    renamed_options: ClassVar = {
        "max_num_lines_ending_with_ellipsis_ratio": "max_ellipsis_lines_ratio"
    }

    nothing = staticmethod(blank)

    def __init__(self, *, max_ellipsis_lines_ratio: Fraction | None = 0.3, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        most = max_ellipsis_lines_ratio
        ratio = line_signals.ellipsis_mark_ratio
        self.rules = bounds("ellipsis_mark_ratio", ratio, None, most)


class Punctuation(TextFilter, filters):
    """Drop texts in which more than a share of the lines do not end in ``. ? ! " '``.

    Reads ``input_key``. Blank lines do not count. The marks are those of English: use
    ``filters.FineWebQuality`` for other languages. Signal ``no_end_mark_ratio``; reasons ``empty``,
    ``high_no_end_mark_ratio``.

    Source: ``PunctuationFilter`` of NeMo Curator, which fails on a text without lines.

    Args:
        max_sentences_without_endmark_ratio: Largest share to keep; ``None`` for no limit.
    """

    renamed_options: ClassVar = {
        "max_num_sentences_without_endmark_ratio": "max_sentences_without_endmark_ratio"
    }

    nothing = staticmethod(blank)

    def __init__(
        self, *, max_sentences_without_endmark_ratio: Fraction | None = 0.85, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        most = max_sentences_without_endmark_ratio
        ratio = line_signals.no_end_mark_ratio
        self.rules = bounds("no_end_mark_ratio", ratio, None, most)


class BoilerPlateString(TextFilter, filters):
    """Drop texts in which more than a share of the paragraphs speak of cookies or terms of use.

    Reads ``input_key``. A text with "lorem ipsum" has 1.0. The phrases are English. Signal
    ``boilerplate_ratio``; reason ``high_boilerplate_ratio``.

    Source: ``BoilerPlateStringFilter`` of NeMo Curator. Three long notices are recognized by their
    beginning, length and end.

    Args:
        max_boilerplate_string_ratio: Largest share to keep; ``None`` for no limit.
    """

    def __init__(
        self, *, max_boilerplate_string_ratio: Fraction | None = 0.4, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        ratio = line_signals.boilerplate_ratio
        self.rules = bounds("boilerplate_ratio", ratio, None, max_boilerplate_string_ratio)
