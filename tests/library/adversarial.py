"""Texts that make slow algorithms slow, and values that are no texts."""

from collections.abc import Callable

LENGTH = 100_000

HOSTILE = {
    "spaces": " " * LENGTH,
    "lines": "\n" * LENGTH,
    "letters": "a" * LENGTH,
    "brackets": "(" * LENGTH,
    "links": "http://a.b/((((" * (LENGTH // 15),
    "dots": "." * LENGTH,
    "sentences": "a. " * (LENGTH // 3),
    "chinese": "好" * LENGTH,
    "boxes": "\\boxed{" * (LENGTH // 7),
    "marks": "e\u0301" * (LENGTH // 2),
    "null": "\x00" * LENGTH,
}
SCRIPTS = (
    "Ένα κείμενο.",
    "Текст по-русски.",
    "نص عربي؟",
    "טקסט",
    "हिन्दी पाठ।",
    "ข้อความ",
    "日本語の文。",
    "한국어 글.",
    "👩‍👩‍👧 🇩🇪",
    "a\ud800b",
    "\x00\x1f",
)
NO_TEXTS = (1, 1.5, True, ["a"], {"a": 1})


def survives(forward: Callable[[dict], object], key: str = "text", longest: int = LENGTH) -> None:
    """Call ``forward`` with every hostile text, every script, and without a text."""
    for text in (*(text[:longest] for text in HOSTILE.values()), *SCRIPTS, "", None):
        forward({key: text})
    forward({})
