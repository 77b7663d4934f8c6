"""The rules of library operators, written straightforwardly: no shared analysis, no shortcuts.

A filter returns whether it keeps a record; the others return the value that they write.
"""

import functools
import hashlib
import ipaddress
import re
from collections import Counter
from typing import Any

from benchmarks.operators import Record
from dagster_dataops.library.analysis.character_sets import (
    PUNCTUATION,
    SPECIAL_CHARACTERS,
    TERMINAL_PUNCTUATION,
)
from dagster_dataops.library.analysis.sentence_splitting import sentences_function

_STOP_WORDS = {"the", "be", "to", "of", "and", "that", "have", "with"}
_TOP = {2: 0.2, 3: 0.18, 4: 0.16}
_DUPLICATED = {5: 0.15, 6: 0.14, 7: 0.13, 8: 0.12, 9: 0.11, 10: 0.1}
_CITATION = re.compile(r"\[\d*\]|\[edit\]|\[citation needed\]")
_POLICY = (
    "terms of use",
    "privacy policy",
    "cookie policy",
    "uses cookies",
    "use of cookies",
    "use cookies",
)
_EMAIL = re.compile(r"\b[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+\b")
_IP = re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b")
_SPECIAL = "".join(SPECIAL_CHARACTERS)
_sentences = sentences_function("rule")


def gopher_quality(record: Record) -> bool:
    text = record["text"]
    words = text.split()
    content = [word for word in words if any(mark not in PUNCTUATION for mark in word)]
    lines = text.splitlines()
    if not 50 <= len(content) <= 100_000:
        return False
    if not 3 <= sum(map(len, content)) / len(content) <= 10:
        return False
    ellipses = text.count("...") + text.count("…")
    if text.count("#") / len(words) > 0.1 or ellipses / len(words) > 0.1:
        return False
    if sum(line.lstrip().startswith(("•", "-")) for line in lines) / len(lines) > 0.9:
        return False
    if sum(line.rstrip().endswith(("...", "…")) for line in lines) / len(lines) > 0.3:
        return False
    lettered = sum(any(mark.isalpha() for mark in word) for word in words)
    return lettered / len(words) >= 0.8 and len(_STOP_WORDS & set(words)) >= 2


def _repeated(parts: list[str]) -> tuple[int, int]:
    seen: set[str] = set()
    number = characters = 0
    for part in parts:
        if part in seen:
            number, characters = number + 1, characters + len(part)
        seen.add(part)
    return number, characters


def gopher_repetition(record: Record) -> bool:
    text = record["text"]
    for parts in (re.split(r"\n{2,}", text.strip()), re.split(r"\n+", text)):
        number, characters = _repeated(parts)
        if number / len(parts) > 0.3 or characters / len(text) > 0.2:
            return False
    words = text.split()
    for size, limit in _TOP.items():
        counts = Counter(" ".join(words[at : at + size]) for at in range(len(words) - size + 1))
        if counts:
            ngram, count = counts.most_common(1)[0]
            if len(ngram) * count / len(text) > limit:
                return False
    return all(_duplicated(words, n) / len(text) <= limit for n, limit in _DUPLICATED.items())


def _duplicated(words: list[str], size: int) -> int:
    seen: set[str] = set()
    at = characters = 0
    while at < len(words) - size + 1:
        ngram = "".join(words[at : at + size])
        characters += len(ngram) * (ngram in seen)
        at += size if ngram in seen else 1
        seen.add(ngram)
    return characters


def fineweb_quality(record: Record) -> bool:
    text = record["text"]
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines or sum(line[-1] in TERMINAL_PUNCTUATION for line in lines) / len(lines) < 0.12:
        return False
    if sum(len(line) <= 30 for line in lines) / len(lines) > 0.67:
        return False
    if _repeated(lines)[1] / len(text.replace("\n", "")) > 0.01:
        return False
    return bool(text.count("\n") / len(text.split()) <= 0.3)


def c4_quality(record: Record, *, ends: bool = True) -> bool:
    kept = []
    number = 0
    for line in map(str.strip, record["text"].splitlines()):
        words = line.split()
        left = _CITATION.sub("", line)
        ended = left.endswith((".", "?", "!", '"', "'")) and not left.endswith("...")
        if any(len(word) > 1000 for word in words) or (ends and not ended) or len(words) < 3:
            continue
        lowered = left.lower()
        if "lorem ipsum" in lowered:
            return False
        if "javascript" in lowered:
            continue
        if "{" in left:
            return False
        if any(phrase in lowered for phrase in _POLICY):
            continue
        number += len(_sentences(left))
        kept.append(left)
    record["text"] = "\n".join(kept).strip()
    return number >= 5


def pretraining(record: Record) -> bool:
    if not (gopher_repetition(record) and gopher_quality(record)):
        return False
    return c4_quality(record, ends=False) and fineweb_quality(record)


def _public(match: "re.Match[str]") -> str:
    try:
        found = ipaddress.ip_address(match[0]).is_global
    except ValueError:
        found = False
    return "22.214.171.124" if found else match[0]


def replace_pii(record: Record) -> str:
    return _IP.sub(_public, _EMAIL.sub("email@example.com", record["text"]))


def fix_unicode(record: Record) -> str:
    return str(_ftfy().fix_text(record["text"]))


def character_repetition(record: Record) -> bool:
    text = record["text"]
    counts = Counter(text[at : at + 10] for at in range(len(text) - 9))
    ordered = sorted(counts.values(), reverse=True)
    most = min(int(len(ordered) ** 0.5), len(ordered) - ordered.count(1))
    return not ordered or sum(ordered[:most]) / sum(ordered) <= 0.5


def word_repetition(record: Record) -> bool:
    parts = re.split(r"[ \n\t]", record["text"].lower())
    words = [word for part in parts if (word := part.strip(_SPECIAL))]
    counts = Counter(" ".join(words[at : at + 10]) for at in range(len(words) - 9))
    repeated = sum(count for count in counts.values() if count > 1)
    return not counts or repeated / counts.total() <= 0.5


def special_character_ratio(record: Record) -> bool:
    text = record["text"]
    return sum(mark in SPECIAL_CHARACTERS for mark in text) / max(1, len(text)) <= 0.25


def alphanumeric_ratio(record: Record) -> bool:
    text = record["text"]
    return sum(map(str.isalnum, text)) / max(1, len(text)) >= 0.25


def word_count(record: Record) -> bool:
    parts = re.split(r"[ \n\t]", record["text"])
    return sum(bool(part.strip(_SPECIAL)) for part in parts) >= 10


def language(record: Record) -> str:
    return str(_identifier().classify(record["text"])[0])


def token_count(record: Record) -> int:
    return len(_tokenizer().encode(record["text"]))


def minhash(record: Record) -> list[int]:
    words = re.findall(r"\w+", record["text"].lower())
    sketch = _rensa().RMinHash(num_perm=128, seed=0)
    sketch.update([" ".join(words[at : at + 5]) for at in range(max(1, len(words) - 4))])
    return list(sketch.digest())


def text_hash(record: Record) -> str:
    return hashlib.md5(record["text"].encode()).hexdigest()


@functools.cache
def _ftfy() -> Any:
    import ftfy

    return ftfy


@functools.cache
def _rensa() -> Any:
    import rensa

    return rensa


@functools.cache
def _identifier() -> Any:
    import py3langid

    return py3langid


@functools.cache
def _tokenizer() -> Any:
    import bpe_openai

    return bpe_openai.get_encoding("o200k_base")
