"""``text.Replace``: replace patterns or strings."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

from dagster_dataops.data import data_register
from dagster_dataops.errors import DefinitionError, MissingExtraError
from dagster_dataops.library.field_keys import Keys
from dagster_dataops.library.text_mapping import TextMapping
from dagster_dataops.quantities import counted
from dagster_dataops.records import Record

text: Any = data_register.new_group("text")


class Replace(text):
    r"""Replace all matches of one pattern or several, in order.

    Reads ``input_key`` (one key or several) and writes ``output_key`` (by default, the same keys).
    As ``replace_content_mapper`` of Data-Juicer, but ``.`` does not match a newline; write ``(?s)``
    before a pattern for that.

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
        engine: Literal["re", "re2"] = "re",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        patterns = [pattern] if isinstance(pattern, str) else pattern
        whole = [replacement] * len(patterns) if isinstance(replacement, str) else replacement
        if len(whole) != len(patterns):
            given = counted(len(patterns), "patterns"), counted(len(whole), "replacements")
            msg = f"got {' and '.join(given)}; give one replacement for all, or one for each"
            raise DefinitionError(msg)
        compiled = _compiler(engine) if regex else None
        self._steps = [
            partial(_replaced, compiled(one) if compiled else one, new)
            for one, new in zip(patterns, whole, strict=True)
        ]
        self._mapping = TextMapping(self._all_replaced, input_key, output_key)

    def forward(self, record: Record) -> Record:
        return self._mapping(record)

    def _all_replaced(self, value: str) -> str:
        for step in self._steps:
            value = step(value)
        return value


def _replaced(pattern: Any, replacement: str, value: str) -> str:
    if isinstance(pattern, str):
        return value.replace(pattern, replacement)
    try:
        changed: str = pattern.sub(replacement, value)
    except UnicodeEncodeError as error:
        msg = (
            f"the text has a lone surrogate at character {error.start}, which re2 cannot read; "
            "use text.FixUnicode before, or engine='re'"
        )
        raise ValueError(msg) from None
    return changed


def _compiler(engine: str) -> Callable[[str], Any]:
    if engine not in {"re", "re2"}:
        msg = f"engine is {engine!r}; use 're' or 're2'"
        raise DefinitionError(msg)
    if engine == "re":
        return partial(_compiled, re.compile, re.error)
    try:
        import re2
    except ImportError:
        raise MissingExtraError("text.Replace with engine='re2'", "re2") from None
    return partial(_compiled, re2.compile, re2.error)


def _compiled(compile_pattern: Callable[[str], Any], error: type[Exception], pattern: str) -> Any:
    try:
        return compile_pattern(pattern)
    except error as fault:
        msg = f"pattern {pattern!r} is malformed: {fault}"
        raise DefinitionError(msg) from None
