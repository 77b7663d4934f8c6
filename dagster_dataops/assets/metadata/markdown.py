"""Markdown in which values are shown as text: tables with values as cells, fenced texts, prose.

Dagster's UI shows Markdown of less than 1,000 characters inline on the asset page. A line has room
for about 42 characters there, and the rest is cut off. Longer Markdown is shown in a wide window
behind a link. Therefore a narrow table is kept below 1,000 characters, and a wide table is padded
to more.
"""

import functools
import re
from collections.abc import Sequence
from typing import Final, TypeAlias

import orjson

INLINE_CHARACTERS: Final = 1000
_WIDTHS: Final = (120, 80, 60, 40)  # lengths of a cell; the largest that fits is used
_ROOM: Final = 42  # total length of the longest words in a row: browsers do not break words
_LONGEST_ROW: Final = 120  # length of a row that takes two or three lines
_BLOCK: Final = re.compile(r"([-+=]|[0-9]+[.)])")  # begins a list or a rule
_CODE: Final = re.compile(r"(?<![`\\])(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_DOUBTFUL: Final = re.compile(r"\||\n[ \t]*(?:[0-9]+[.)]|\W)")  # there begins a cell or block
_FENCE: Final = re.compile(r"(`{3,}(?=[^`]*$)|~{3,})")
_FOREIGN: Final = re.compile(
    r"(?<!\\)(?:\\\\)*(?:<|&(?=#?\w+;)|(?<=!)\[|(?<=\])(?:\(|:)(?=\s*<?(?!https?:|mailto:)[\w+.-]+:))"
)
_MARKDOWN: Final = re.compile(r"([\\`*_~\[\]<>&|!#])")  # characters of Markdown and HTML

_Rows: TypeAlias = Sequence[Sequence[str]]


def cell(value: object, width: int = _WIDTHS[0]) -> str:
    """Return a value as an escaped cell on one line, shortened to ``width`` characters.

    It is one paragraph where it stands alone.
    """
    text = _escaped(_cut(plain(value), width))
    begin = _BLOCK.match(text)
    return text if begin is None else f"{text[: begin.end() - 1]}\\{text[begin.end() - 1 :]}"


def fenced(value: object, language: str = "text") -> str:
    """Return a text of several lines as a block of code."""
    text = str(value).encode(errors="replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"


def in_window(text: str) -> str:
    """Return Markdown that is long enough for a window, since lines are cut off inline."""
    return text.ljust(INLINE_CHARACTERS)


def prose(text: str) -> str:
    """Return Markdown that others wrote, such as a docstring, with HTML and images as text.

    Links to other places than web pages and addresses of mail are text, too. Code stays as it is.
    """
    parts: list[str] = []
    block: list[str] = []
    fence = ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        ends = bool(fence) and line.rstrip().startswith(fence) and not line.strip("`~ ")
        if (fence and ends) or (not fence and mark is not None):
            parts += [*_paragraphs(block, code=bool(fence)), line]
            block, fence = [], "" if fence or mark is None else mark[1]
        else:
            block.append(line)
    return "\n".join([*parts, *_paragraphs(block, code=bool(fence))])


def _paragraphs(lines: Sequence[str], *, code: bool) -> list[str]:
    """Return lines outside of code with foreign elements as text."""
    if code or not lines:
        return [*lines]
    parts = re.split(r"(\n[ \t]*\n)", "\n".join(lines))
    return ["".join(map(_without_foreign, parts))]


def _without_foreign(paragraph: str) -> str:
    at, safe = 0, ""
    for span in _CODE.finditer(paragraph):
        if "\\`" in paragraph or _DOUBTFUL.search(span[0]):  # other marks may belong together
            break
        safe += _FOREIGN.sub(_as_text, paragraph[at : span.start()]) + span[0]
        at = span.end()
    return safe + _FOREIGN.sub(_as_text, paragraph[at:])


def _as_text(match: re.Match[str]) -> str:
    return f"{match[0][:-1]}\\{match[0][-1]}"


@functools.lru_cache(maxsize=4096)
def _escaped(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", text)


def plain(value: object) -> str:
    """Return a value as text on one line: a string unchanged, any other value as JSON."""
    try:
        text = value if isinstance(value, str) else orjson.dumps(value, default=str).decode()
    except TypeError:  # an integer beyond 64 bits, or a key that is not a string
        text = repr(value)
    text = text.encode(errors="replace").decode()  # no database stores a lone surrogate
    return " ".join(text.replace("\0", "\N{REPLACEMENT CHARACTER}").split())


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[object]],
    note: str = "",
    *,
    window: bool = False,
    width: int = 0,
) -> str:
    """Return a Markdown table that the UI shows inline if it is narrow, else in a window.

    Args:
        header: The names of the columns.
        rows: The values, one per column in each row.
        note: A remark below the table.
        window: Whether it is shown in a window even if it is narrow, for rows of long texts.
        width: Most characters of a cell; by default 120, and fewer if the table is then inline.
    """
    texts = tuple(tuple(plain(value) for value in row) for row in [header, *rows])
    widths = (width,) if width else _WIDTHS
    return _wide(texts, note, widths[0]) if window else _fitted(texts, note, widths)


@functools.lru_cache(maxsize=512)  # many nodes have the same table of options
def _fitted(texts: _Rows, note: str, widths: tuple[int, ...]) -> str:
    for width in widths:
        cut = [[_cut(text, width) for text in row] for row in texts]
        markdown = _table(cut, note, rule="---")
        if len(markdown) < INLINE_CHARACTERS and _fits(cut):
            return markdown
    return _wide(texts, note, widths[0])


def _wide(texts: _Rows, note: str, width: int) -> str:
    cut = [[_cut(text, width) for text in row] for row in texts]
    missing = INLINE_CHARACTERS - len(_table(cut, note, rule="---"))
    return _table(cut, note, rule="---" + "-" * max(0, missing))


def _table(rows: _Rows, note: str, rule: str) -> str:
    """Return a Markdown table of texts; the first row is the header."""
    lines = [[_escaped(text) for text in row] for row in rows]
    lines.insert(1, [rule, *["---"] * (len(rows[0]) - 1)])
    markdown = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"{markdown}\n\n_{cell(note, len(note))}_" if note else markdown


def _fits(rows: _Rows) -> bool:
    """Return whether the inline view shows all cells, in rows of few lines."""
    columns = list(zip(*rows, strict=True))
    longest = [
        max((len(word) for text in cells for word in text.split()), default=0) for cells in columns
    ]
    words = sum(longest) + 2 * len(columns)
    lengths = sum(max(map(len, column)) for column in columns)
    return words <= _ROOM and lengths <= _LONGEST_ROW


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[:width]}..."
