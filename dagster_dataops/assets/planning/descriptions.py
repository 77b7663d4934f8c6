"""Docstrings as Markdown for asset pages: sections with titles, arguments as lists.

Google, NumPy and reST styles are converted. Other text stays unchanged; no text is left out. HTML
and images are shown as text.
"""

import functools
import inspect
import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final

from dagster_dataops.assets.metadata.markdown import prose
from dagster_dataops.operators.options.docstrings import without_rst

_TITLE: Final = re.compile(r"([A-Z][A-Za-z ]{2,30}):")  # Google
_RULE: Final = re.compile(r"-{3,}")  # NumPy, below a title
_FIELD: Final = re.compile(r":(\w+)(?: +([^:]*))?:(?: +(.*))?")  # reST
_LISTED: Final = re.compile(r"(.*(arg|param|attribute)\w*|raises|warns|methods)", re.IGNORECASE)
_GOOGLE_ITEM: Final = re.compile(r"([*\w.]+)(?: *\((.*?)\))?: *(.*)")
_NUMPY_ITEM: Final = re.compile(r"([*\w., ]+?)(?: *: *(.*))?")
_PROMPT: Final = ">>>"


def first_paragraph(docstring: str) -> str:
    """Return the first paragraph of a docstring, on one line."""
    return " ".join(inspect.cleandoc(docstring).partition("\n\n")[0].split())


@functools.lru_cache(maxsize=4096)  # many nodes have the same operator
def described(docstring: str | None) -> str | None:
    """Return a docstring as Markdown; ``None`` if there is none."""
    lines = without_rst(inspect.cleandoc(docstring or "")).splitlines()
    return prose("\n".join(_rendered(lines)).strip()) or None


def _rendered(lines: Sequence[str]) -> Iterator[str]:
    at = 0
    while at < len(lines):
        line, following = lines[at], lines[at + 1 : at + 2]
        title = _TITLE.fullmatch(line)
        if title and following and following[0].startswith(" "):
            block = list(takewhile(lambda row: not row or row[0] == " ", lines[at + 1 :]))
            yield from _section(title[1], _dedented(block), _GOOGLE_ITEM)
            at += 1 + len(block)
        elif line and following and _RULE.fullmatch(following[0]):
            block = _until_title(lines[at + 2 :])
            yield from _section(line, block, _NUMPY_ITEM)
            at += 2 + len(block)
        else:
            yield _field(line)
            at += 1


def _until_title(lines: Sequence[str]) -> list[str]:
    """Return the lines before the next title of NumPy's style."""
    rules = (at for at, line in enumerate(lines) if at and _RULE.fullmatch(line))
    return list(lines[: next(rules, len(lines) + 1) - 1])


def _dedented(block: Sequence[str]) -> list[str]:
    return inspect.cleandoc("\n".join(["", *block])).splitlines()


def _section(title: str, block: Sequence[str], item: re.Pattern[str]) -> Iterator[str]:
    """Yield a section: a list of its items if it has some, else its text."""
    yield from ["", f"**{title}**", ""]
    if _LISTED.fullmatch(title):
        yield from (_item(line, item) for line in block)
    elif any(line.startswith(_PROMPT) for line in block):
        yield from ["```python", *block, "```"]
    else:
        yield from block
    yield ""


def _item(line: str, item: re.Pattern[str]) -> str:
    match = item.fullmatch(line)
    if not line or line[0] == " " or not match:
        return f"  {line.strip()}".rstrip()  # goes on with the item above
    name, kind, *text = match.groups()
    return _entry(name, kind, text[0] if text else "")


def _entry(name: str, kind: str | None, text: str | None) -> str:
    shown = f"`{name}` ({kind})" if kind else f"`{name}`"
    return f"- {shown}: {text}" if text else f"- {shown}"


def _field(line: str) -> str:
    """Return a field of reST style as a list item; other lines unchanged."""
    match = _FIELD.fullmatch(line)
    if not match:
        return line
    word, name, text = match.groups()
    if not name:
        return f"- {word}: {text or ''}"
    *kind, plain = name.split()
    return _entry(plain, " ".join(kind), text)
