"""Write the inputs: generated text, the same in every run."""

import ast
import random
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

import orjson

from benchmarks.latencies import latency, uniform
from benchmarks.operators import Record

_TEXT = """
the quick brown fox jumps over a lazy dog while readers of every age visit cafe and library to
compare what tables say about growth in rivers forests towns engines letters of old kings
"""
_WORDS = _TEXT.split()
_SNIPPETS = [
    "see https://example.org/a/b?c=1 for more",
    "write to jane.doe@example.com at once",
    "from 192.168.10.1 to 10.0.0.254",
    "at 0xdeadbeef and 0x7fff",
    "12,345.67 of 890 items",
    "<b>bold</b> and <a href='#x'>a link</a>",
    "`inline code` and ```more of it```",
    "zero\u200bwidth",
    "tabs\t\tand   spaces",
    "\n\n\n\n",
]
_LETTERS = str.maketrans("0123456789", "abcdefghij")
_TYPOGRAPHIC = str.maketrans("'`", "\u2019\u2018")


def write(path: Path, records: Iterable[Record]) -> Path:
    """Write ``records`` as JSON Lines."""
    with path.open("wb", buffering=1 << 20) as file:
        for record in records:
            file.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))
    return path


def texts(rows: int, characters: int = 545) -> Iterator[Record]:
    """Yield records of about ``characters + 35`` bytes."""
    chosen = random.Random(1)
    pool = " ".join(chosen.choices(_WORDS, k=200_000))
    for number in range(rows):
        at = chosen.randrange(len(pool) - characters)
        yield {"id": number, "text": f"{number} {pool[at : at + characters]}"}


def documents(megabytes: float) -> Iterator[Record]:
    """Yield messy documents of 2 to 16 KB."""
    chosen = random.Random(2)
    sentences = [_sentence(chosen) for _ in range(5_000)]
    size = number = 0
    while size < megabytes * 1e6:
        text = " ".join(chosen.choices(sentences, k=chosen.randrange(25, 180)))
        yield {"id": number, "text": text}
        size += len(text)
        number += 1


def _sentence(chosen: random.Random) -> str:
    words = chosen.choices(_WORDS, k=chosen.randrange(8, 20))
    if chosen.random() < 0.4:
        words.insert(chosen.randrange(len(words)), chosen.choice(_SNIPPETS))
    return " ".join(words).capitalize() + "."


def questions(rows: int) -> Iterator[Record]:
    """Yield questions of which two in three are new, with answers of which half are new."""
    chosen = random.Random(3)
    pool = " ".join(chosen.choices(_WORDS, k=200_000))
    for number in range(rows):
        question, answer = chosen.randrange(rows), chosen.randrange(rows // 2 + 1)
        at, then = question * 7919 % 900_000, answer * 104_729 % 900_000
        yield {
            "id": number,
            "question": f"{question} {pool[at : at + 235]}",
            "answer": f"{answer} {pool[then : then + 285]}",
        }


def prose(rows: int) -> Iterator[Record]:
    """Yield texts of 2,240 characters on average, of lognormal length: docstrings, cut and joined.

    They are those of Python's standard library, so they differ between versions of Python. One part
    in ten is an address, markup or white space; one text in three has typographic quotes.
    """
    chosen = random.Random(4)
    paragraphs = _paragraphs()
    for number in range(rows):
        length = int(chosen.lognormvariate(7.39, 0.8))
        parts: list[str] = []
        while sum(map(len, parts)) < length:
            pool = _SNIPPETS if chosen.random() < 0.1 else paragraphs
            parts.append(chosen.choice(pool))
        text = "\n\n".join(parts)[:length]
        yield {"id": number, "text": text if number % 3 else text.translate(_TYPOGRAPHIC)}


def _paragraphs() -> list[str]:
    found: list[str] = []
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                found += (ast.get_docstring(node) or "").split("\n\n")
    return [text for text in found if len(text) > 60]


def similar_pairs(pairs: int, singles_each: int = 2) -> Iterator[Record]:
    """Yield pairs of documents of 60 to 300 words with Jaccard indices from 0.45, and singles.

    There are ``singles_each`` singles for a pair. The columns ``pair`` and ``jaccard`` (of word
    5-grams) describe the pairs. The two of a pair are far apart.
    """
    chosen = random.Random(3)
    first, second, singles = [], [], []
    for number in range(pairs):
        words = _unrelated(chosen)
        other = list(words)
        while chosen.random() < 0.8 or other == words:
            other[chosen.randrange(len(other))] = _word(chosen, 10**9)
            if _jaccard(words, other) < 0.45:
                break
        about = {"pair": number, "jaccard": _jaccard(words, other)}
        first.append({**about, "text": " ".join(words)})
        second.append({**about, "text": " ".join(other)})
        singles += [{"text": " ".join(_unrelated(chosen))} for _ in range(singles_each)]
    for number, record in enumerate([*first, *singles, *second]):
        yield {"id": number, **record}


def _unrelated(chosen: random.Random) -> list[str]:
    return [_word(chosen, 50_000) for _ in range(chosen.randrange(60, 301))]


def _word(chosen: random.Random, words: int) -> str:
    """Return one of a number of words, without digits: datatrove takes all numbers for the same."""
    return str(chosen.randrange(words)).translate(_LETTERS)


def _jaccard(one: list[str], other: list[str]) -> float:
    first, second = (
        {tuple(words[at : at + 5]) for at in range(len(words) - 4)} for words in (one, other)
    )
    return len(first & second) / len(first | second)


def calls(rows: int, scale: float = 1.0) -> Iterator[Record]:
    """Yield records with the duration of their call, lognormal."""
    for number in range(rows):
        yield {"id": number, "prompt": f"prompt {number}", "seconds": latency(number) * scale}


def even_calls(rows: int, longest: float) -> Iterator[Record]:
    """Yield records whose calls take between 0 and ``longest`` seconds."""
    for number in range(rows):
        yield {"id": number, "seconds": uniform(number) * longest}


def keys(rows: int) -> Iterator[Record]:
    """Yield records of about 100 bytes; one text in five is a repetition."""
    for number in range(rows):
        key = number if number % 5 else number // 7
        yield {
            "id": number,
            "text": f"{key:012d} a short text in place of a longer one, as they are told apart",
        }
