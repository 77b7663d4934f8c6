"""The operators that every contender runs: the same plain functions."""

import re
from typing import Any

_PATTERNS = [
    (re.compile(r"https?://[^\s)\]>\"']+"), "<url>"),
    (re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+"), "<email>"),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b"), "<ip>"),
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "<hex>"),
    (re.compile(r"\b\d+(?:[.,]\d+)*\b"), "<number>"),
    (re.compile(r"<[^<>\n]{1,80}>"), " "),
    (re.compile(r"`{1,3}[^`\n]*`{1,3}"), " "),
    (re.compile("[\u200b-\u200f\ufeff]"), ""),
    (re.compile(r"[ \t]+"), " "),
    (re.compile(r"\n{3,}"), "\n\n"),
]
_WORD = re.compile(r"\w+")


def upper(record: dict[str, Any]) -> dict[str, Any]:
    """Trivial: upper-case one field."""
    record["text"] = record["text"].upper()
    return record


def clean(record: dict[str, Any]) -> dict[str, Any]:
    """Bound by computing: ten regular expressions and word statistics."""
    text = record["text"]
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    words = [word.lower() for word in _WORD.findall(text)]
    record["text"] = text
    record["words"] = len(words)
    record["distinct"] = len(set(words))
    return record
