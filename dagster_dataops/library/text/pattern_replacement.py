"""``text.Replace``: replace patterns or strings."""

from collections.abc import Sequence
from typing import Any

from dagster_dataops.errors import DefinitionError
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.library.field_keys import Keys
from dagster_dataops.library.text.text_cleaning import text
from dagster_dataops.library.text_mapping import TextOperator
from dagster_dataops.library.user_patterns import Engine, applied, compiled


class Replace(TextOperator, text):
    r"""Replace all matches of one pattern or several, in order.

    Reads ``input_key`` (one key or several) and writes ``output_key`` (by default, the same keys).
    As ``replace_content_mapper`` of Data-Juicer, whose patterns are those of the package regex, but
    ``.`` does not match a newline; write ``(?s)`` before a pattern for that.

    Args:
        pattern: A regular expression or, with ``regex=False``, a string; or a list of them.
        replacement: What replaces a match, with ``\1`` for groups in a regular expression; or a
            list of as many as there are patterns.
        input_key: The key of the text.
        output_key: Where the result is written.
        regex: Whether the patterns are regular expressions.
        engine: ``"re"`` is Python's; some patterns take exponential time there. ``"re2"`` always
            takes linear time, and has no look-around and no references to groups in a pattern. It
            needs the extra ``re2``.
    """

    def __init__(
        self,
        pattern: str | Sequence[str],
        replacement: str | Sequence[str] = "",
        input_key: Keys = "text",
        output_key: Keys | None = None,
        *,
        regex: bool = True,
        engine: Engine = "re",
        **kwargs: Any,
    ) -> None:
        super().__init__(input_key, output_key, **kwargs)
        patterns = [pattern] if isinstance(pattern, str) else pattern
        whole = [replacement] * len(patterns) if isinstance(replacement, str) else replacement
        if len(whole) != len(patterns):
            counts = counted(len(patterns), "patterns"), counted(len(whole), "replacements")
            msg = f"got {' and '.join(counts)}; give one replacement for all, or one for each"
            raise DefinitionError(msg)
        known = (
            [compiled(pattern, engine, "text.Replace") for pattern in patterns]
            if regex
            else patterns
        )
        self._steps: list[tuple[Any, str]] = list(zip(known, whole, strict=True))

    @override
    def changed(self, value: str) -> str:
        for pattern, replacement in self._steps:
            if isinstance(pattern, str):
                value = value.replace(pattern, replacement)
            else:
                value = applied(pattern.sub, replacement, value)
        return value
