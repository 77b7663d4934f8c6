"""Read option descriptions from docstrings in Google, NumPy, reST and Epydoc style.

Used where options are shown to users, never by the engine.
"""

import functools
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import docstring_parser

# A docstring without any of these describes no parameter. Most docstrings have none.
_MARK: Final = re.compile(
    r"^\s*(args|arguments|parameters|params|keyword args|keyword arguments|other parameters|"
    r"attributes)\s*:?\s*$|^\s*[:@](param|parameter|arg|argument|key|keyword)\b",
    re.IGNORECASE | re.MULTILINE,
)


_LITERAL: Final = re.compile(r"(?<!`)``(?!`)([^`]+)``(?!`)")
_ROLE: Final = re.compile(r":(?:\w+:)?\w+:`([^`]+)`(?!`)")
_TITLED: Final = re.compile(r"(.+?)\s*<[^<>]*>", re.DOTALL)
_LINK: Final = re.compile(r"(?<!`)`([^`<]+?)\s+<(https?://[^>\s]+)>`__?(?!\w)")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+(?=[^a-z])|[.!?](?=\s*\n\s*\n)")


def without_rst(text: str) -> str:
    """Return a text in which marks of reStructuredText are those of Markdown.

    Literals in double backticks and roles become code in single ones, links those of Markdown.
    Fenced code, and literals that contain a backtick, stay.
    """
    if "``" not in text and ":`" not in text and "`_" not in text:
        return text
    pieces = re.split(r"(^ *```.*?^ *```)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(
        piece if number % 2 else _converted(piece) for number, piece in enumerate(pieces)
    )


def _converted(text: str) -> str:
    text = _LITERAL.sub(r"`\1`", _ROLE.sub(_named, text))
    return _LINK.sub(r"[\1](\2)", text)


def _named(role: re.Match[str]) -> str:
    """Return the name that a role shows: its title, or after ``~`` the last part of its target."""
    target = role[1].removeprefix("!")
    titled = _TITLED.fullmatch(target)
    if titled:
        return f"`{titled[1]}`"
    return f"`{target.rpartition('.')[2] if target.startswith('~') else target}`"


def first_sentence(text: str) -> str:
    """Return the first sentence of a text that begins each sentence with a capital or a mark."""
    return _SENTENCE_END.split(text, maxsplit=1)[0]


def option_descriptions(target: Any, methods: Sequence[str] = ("forward",)) -> dict[str, str]:
    """Return the description of each parameter of a function, or of a class and its ``__init__``.

    A class takes precedence over its bases, and ``__init__`` over the docstring of its class.

    Args:
        target: The function or class.
        methods: Methods of a class with parameters that are options, too. ``__init__`` takes
            precedence over them, and they over the docstring of the class.
    """
    descriptions: dict[str, str] = {}
    for text in _texts(target, methods):
        descriptions.update(described_parameters(text))
    return descriptions


def _texts(target: Any, methods: Sequence[str]) -> Iterator[str]:
    """Yield docstrings in rising precedence."""
    if not isinstance(target, type):
        yield inspect.getdoc(target) or ""
        return
    for cls in reversed(target.__mro__[:-1]):
        yield inspect.cleandoc(cls.__doc__ or "")
        for method in (*methods, "__init__"):
            yield inspect.cleandoc(getattr(vars(cls).get(method), "__doc__", None) or "")


@functools.lru_cache(maxsize=4096)
def described_parameters(text: str) -> Mapping[str, str]:
    """Return the description of each parameter in a docstring, by name.

    Paragraphs are kept as written. A docstring in an unknown style has no descriptions.
    """
    if not _MARK.search(text):
        return {}
    try:
        parsed = docstring_parser.parse(text)
    except docstring_parser.ParseError:
        return {}
    descriptions: dict[str, str] = {}
    for parameter in parsed.params:
        for name in parameter.arg_name.split(","):  # NumPy's "width, height : int"
            plain = name.strip().lstrip("*").strip("`")
            if plain and parameter.description:
                descriptions.setdefault(plain, without_rst(inspect.cleandoc(parameter.description)))
    return descriptions
