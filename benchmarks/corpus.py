"""Write the inputs: generated text, the same in every run."""

import random
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
