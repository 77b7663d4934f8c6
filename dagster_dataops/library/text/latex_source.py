"""``text.Latex``: remove parts of LaTeX sources that are no text."""

import re
from collections.abc import Sequence
from typing import Any, Final

from dagster_dataops.errors import DefinitionError
from dagster_dataops.foundation.override import override
from dagster_dataops.library.text.text_cleaning import text
from dagster_dataops.library.text_mapping import TextOperator

_COMMENT_LINE: Final = re.compile(r"(?m)^%.*\n?")
_COMMENT: Final = re.compile(r"((?<!\\)(?:\\\\)*+)%.*")
_BIBLIOGRAPHY: Final = re.compile(
    r"\\(?:appendix(?![A-Za-z])|begin\{(?:references|REFERENCES|thebibliography)\}|bibliography\{)"
)
_HEADING: Final = re.compile(
    r"\\(?:chapter|part|(?:sub){0,2}section|(?:sub)?paragraph)\*?(?:\[[^\]\n]{0,200}+\])?\{"
)
_DEFINITION: Final = re.compile(
    r"\\(?:newcommand\*?\{(\\[A-Za-z0-9]++)\}|def[ \t]*+(\\[A-Za-z0-9]++)[ \t]*+)\{(.*)\}"
)
_COMMAND: Final = re.compile(r"\\[A-Za-z0-9]++")
_LONGEST_MACRO: Final = 200  # characters; else a short text could become huge
_PARTS: Final = ("comments", "bibliography", "header", "macros")


class Latex(TextOperator, text):
    r"""Remove comments, bibliography and header from LaTeX sources, and expand macros.

    In this order:

    - ``macros``: each ``\newcommand`` and ``\def`` without arguments that stands alone on its line,
      with up to 200 characters, is expanded in the other lines; macros in a macro stay.
    - ``header``: all before the first heading, ``\chapter`` to ``\subparagraph``, goes.
    - ``bibliography``: all from ``\appendix`` or a bibliography on goes.
    - ``comments``: comments go, and lines that are comments.

    Reads ``input_key`` (one key or several) and writes ``output_key`` (by default, the same keys).

    As ``expand_macro_mapper``, ``remove_header_mapper``, ``remove_bibliography_mapper`` and
    ``remove_comments_mapper`` of Data-Juicer; the last one also removes the character before a
    comment.

    Args:
        strip: The parts.
    """

    def __init__(self, *args: Any, strip: Sequence[str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._parts = frozenset(_PARTS if strip is None else strip)
        if not self._parts.issubset(_PARTS):
            msg = f"strip is {strip}; it takes {', '.join(_PARTS)}"
            raise DefinitionError(msg)

    @override
    def changed(self, value: str) -> str:
        if "macros" in self._parts:
            value = _expanded(value)
        if "header" in self._parts and (heading := _HEADING.search(value)):
            value = value[heading.start() :]
        if "bibliography" in self._parts and (end := _BIBLIOGRAPHY.search(value)):
            value = value[: end.start()]
        if "comments" in self._parts:
            value = _COMMENT.sub(r"\1", _COMMENT_LINE.sub("", value))
        return value


def _expanded(value: str) -> str:
    if "\\newcommand" not in value and "\\def" not in value:
        return value
    macros: dict[str, str] = {}
    lines = [(line, _definition(line)) for line in value.split("\n")]
    for _, macro in lines:
        if macro and len(macro[3]) <= _LONGEST_MACRO:
            macros[macro[1] or macro[2]] = macro[3]
    return "\n".join(
        line if macro else _COMMAND.sub(lambda name: macros.get(name[0], name[0]), line)
        for line, macro in lines
    )


def _definition(line: str) -> re.Match[str] | None:
    stripped = line.strip()
    return _DEFINITION.fullmatch(stripped) if stripped.endswith("}") else None
