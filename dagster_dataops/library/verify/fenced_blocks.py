"""The fenced code blocks of a text."""

import re
from typing import Final, NamedTuple

_FENCE: Final = re.compile(r"^ {0,3}(`{3,}+|~{3,}+)[ \t]*+([^\s`]*+)[^\n`]*+$", re.MULTILINE)


class FencedBlock(NamedTuple):
    """One block.

    Attributes:
        line: The number of lines before its first.
        language: The first word behind the opening fence, in lower case.
        code: Its text.
    """

    line: int
    language: str
    code: str


def fenced_blocks(text: str, languages: tuple[str, ...]) -> list[FencedBlock] | None:
    """Return the blocks in one of the languages; without any, those that name no language.

    A block that is not closed reaches to the end. ``None`` means that the text has no blocks.
    """
    if "```" not in text and "~~~" not in text:
        return None
    blocks: list[FencedBlock] = []
    opened: re.Match[str] | None = None
    line = counted = 0
    for fence in _FENCE.finditer(text):
        if opened is None:
            opened = fence
            start = min(fence.end() + 1, len(text))
            line += text.count("\n", counted, start)
            counted = start
        elif fence[1].startswith(opened[1]) and not fence[2]:
            blocks.append(FencedBlock(line, opened[2].lower(), text[counted : fence.start()]))
            opened = None
    if opened is not None:
        blocks.append(FencedBlock(line, opened[2].lower(), text[counted:]))
    if not blocks:
        return None
    marked = [block for block in blocks if block.language in languages]
    return marked or [block for block in blocks if not block.language]
