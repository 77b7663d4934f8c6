"""What docstrings say of an operator's options: Google, NumPy, reST and Epydoc styles.

Read where options are shown to a person, never by the engine.
"""

import functools
import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import docstring_parser

_METHODS: Final = ("forward", "forward_batch_input", "sketch", "__init__")
# What every style needs to describe a parameter; most docstrings hold none of it.
_MARK: Final = re.compile(
    r"^\s*(args|arguments|parameters|params|keyword args|keyword arguments|other parameters|"
    r"attributes)\s*:?\s*$|^\s*[:@](param|parameter|arg|argument|key|keyword)\b",
    re.IGNORECASE | re.MULTILINE,
)


def option_descriptions(target: Any) -> dict[str, str]:
    """Return what is said of each parameter of a function, or of a class and its ``__init__``.

    What a class says itself counts before what its bases say, and what ``__init__`` says before
    the class, whose docstring may be about more than parameters.
    """
    found: dict[str, str] = {}
    for text in _texts(target):
        found.update(described_parameters(text))
    return found


def _texts(target: Any) -> Iterator[str]:
    """Yield docstrings; later ones count more."""
    if not isinstance(target, type):
        yield inspect.getdoc(target) or ""
        return
    for cls in reversed(target.__mro__[:-1]):
        yield inspect.cleandoc(cls.__doc__ or "")
        for method in _METHODS:
            yield inspect.cleandoc(getattr(vars(cls).get(method), "__doc__", None) or "")


@functools.lru_cache(maxsize=4096)
def described_parameters(text: str) -> Mapping[str, str]:
    """Return what a docstring says of each parameter, paragraphs as written, by name.

    A docstring that no style can make sense of describes nothing.
    """
    if not _MARK.search(text):
        return {}
    try:
        parsed = docstring_parser.parse(text)
    except docstring_parser.ParseError:
        return {}
    found: dict[str, str] = {}
    for parameter in parsed.params:
        for name in parameter.arg_name.split(","):  # NumPy's "width, height : int"
            plain = name.strip().lstrip("*").strip("`")
            if plain and parameter.description:
                found.setdefault(plain, inspect.cleandoc(parameter.description))
    return found
