"""Changes by word: what was added to a text and removed from it."""

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any, Final, NamedTuple

# A run of letters or digits of scripts with spaces, else one character; and the spaces after it.
_TOKENS: Final = re.compile(
    r"(?:[^\W\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
    r"\U00020000-\U0003ffff]+|\S)\s*|\s+"
)
_MOST_PAIRS: Final = 200_000  # of equal tokens, which decide the time
_LONGEST: Final = 100_000  # characters of a text
_CONTEXT: Final = 90  # characters shown around a change
_LONG: Final = 1000  # characters of a change


class TextPiece(NamedTuple):
    """A part of a text.

    Attributes:
        text: The part.
        mark: ``add``, ``cut``, ``match`` or empty.
    """

    text: str
    mark: str = ""


Sides = tuple[list[TextPiece], list[TextPiece]]


def changed_words(before: str, after: str, *, around: bool = True) -> Sides:
    """Return both texts in parts, with the words that differ marked.

    Texts that differ in too many places to compare them in a short time are compared line by line,
    then as a whole between the first and the last difference.

    With ``around``, only the text around changes is kept.
    """
    first, second = before[:_LONGEST], after[:_LONGEST]
    sides = _compared(_TOKENS.findall(first), _TOKENS.findall(second))
    if around:
        sides = _shortened(sides[0]), _shortened(sides[1])
    return _with_rest(sides[0], before), _with_rest(sides[1], after)


def _with_rest(pieces: list[TextPiece], text: str) -> list[TextPiece]:
    """Return the pieces of a text, and how much of it was not compared."""
    left = len(text) - _LONGEST
    note = TextPiece(f" … {left:,} more characters, which were not compared")
    return [*pieces, note] if left > 0 else pieces


def _compared(first: Sequence[str], second: Sequence[str], *, by_line: bool = False) -> Sides:
    start = _same(first, second)
    end = _same(first[start:][::-1], second[start:][::-1])
    inner = first[start : len(first) - end], second[start : len(second) - end]
    if _cost(*inner) <= _MOST_PAIRS:
        middle = _matched(*inner)
    elif not by_line:
        lines = [re.findall(r"[^\n]*\n|[^\n]+", "".join(part)) for part in inner]
        middle = _compared(lines[0], lines[1], by_line=True)
    else:
        middle = _pieces(inner[0], "cut"), _pieces(inner[1], "add")
    same_before, same_after = _pieces(first[:start]), _pieces(first[len(first) - end :])
    return (
        _joined([*same_before, *middle[0], *same_after]),
        _joined([*same_before, *middle[1], *same_after]),
    )


def _cost(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the number of pairs of equal tokens, and some for each token."""
    counted = [Counter(map(str.rstrip, side)) for side in (first, second)]
    pairs = sum(number * counted[1][word] for word, number in counted[0].items())
    return pairs + 10 * max(len(first), len(second))


def _matched(first: Sequence[str], second: Sequence[str]) -> Sides:
    left: list[TextPiece] = []
    right: list[TextPiece] = []
    words = [[token.rstrip() or token for token in side] for side in (first, second)]
    matcher = SequenceMatcher(None, words[0], words[1], autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            for piece, other in zip(first[a:b], second[c:d], strict=True):
                word, same = piece.rstrip(), piece == other
                left += [*_pieces([word]), *_pieces([piece[len(word) :]], "" if same else "cut")]
                right += [*_pieces([word]), *_pieces([other[len(word) :]], "" if same else "add")]
        else:
            cut, added = "".join(first[a:b]), "".join(second[c:d])
            spaces = _same_spaces(cut, added)
            end = _pieces([cut[len(cut) - spaces :]])
            left += [*_pieces([cut[: len(cut) - spaces]], "cut"), *end]
            right += [*_pieces([added[: len(added) - spaces]], "add"), *end]
    return left, right


def _same_spaces(first: str, second: str) -> int:
    """Return the number of spaces at the end of two texts, if they end with the same ones."""
    ends = [text[len(text.rstrip()) :] for text in (first, second)]
    return len(ends[0]) if ends[0] == ends[1] else 0


def _same(first: Sequence[str], second: Sequence[str]) -> int:
    pairs = zip(first, second, strict=False)
    return next(
        (at for at, (word, other) in enumerate(pairs) if word != other),
        min(len(first), len(second)),
    )


def _pieces(tokens: Sequence[str], mark: str = "") -> list[TextPiece]:
    text = "".join(tokens)
    return [TextPiece(text, mark)] if text else []


def _joined(pieces: Sequence[TextPiece]) -> list[TextPiece]:
    """Return pieces with neighbours of the same mark as one; a space between two marks too."""
    joined: list[TextPiece] = []
    for at, piece in enumerate(pieces):
        mark = piece.mark
        if joined and not mark and piece.text.isspace() and at + 1 < len(pieces):
            mark = joined[-1].mark if pieces[at + 1].mark == joined[-1].mark else ""
        if joined and joined[-1].mark == mark:
            joined[-1] = TextPiece(joined[-1].text + piece.text, mark)
        else:
            joined.append(TextPiece(piece.text, mark))
    return joined


def _shortened(pieces: Sequence[TextPiece]) -> list[TextPiece]:
    """Return pieces with long ones that are not marked cut to what is around the marks."""
    shortened = []
    for at, piece in enumerate(pieces):
        text, last = piece.text, at + 1 == len(pieces)
        room = _CONTEXT * (2 if at > 0 and not last else 1)
        if not piece.mark and len(text) > 2 * room:
            head = text[:_CONTEXT] if at else ""
            tail = "" if last else text[-_CONTEXT:]
            text = f"{head} … {tail}" if len(pieces) > 1 else text
        elif len(text) > _LONG:
            text = f"{text[:_LONG]} … {len(text) - _LONG:,} more characters"
        shortened.append(TextPiece(text, piece.mark))
    return shortened


def marked(text: str, wanted: Sequence[str], patterns: Sequence[Any] = ()) -> list[TextPiece]:
    """Return a text in parts, with the places of other texts marked, in upper and lower case.

    Between the words of these may be any space and punctuation.

    The places of ``patterns``, compiled regular expressions, are marked, too.
    """
    expressions = [
        r"[\W_]+".join(map(re.escape, phrase.split())) for phrase in wanted if phrase.split()
    ]
    searched = [re.compile(expression, re.IGNORECASE) for expression in expressions]
    places = sorted(
        match.span() for pattern in [*searched, *patterns] for match in pattern.finditer(text)
    )
    pieces, at = [], 0
    for start, end in places:
        if end <= max(at, start):
            continue
        if start > at:
            pieces.append(TextPiece(text[at:start]))
        pieces.append(TextPiece(text[max(at, start) : end], "match"))
        at = end
    return [*pieces, TextPiece(text[at:])] if at < len(text) else pieces
