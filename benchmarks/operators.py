"""The operators that every contender runs: the same plain functions, standard library only."""

import asyncio
import hashlib
import os
import re
import time
import zlib
from pathlib import Path
from typing import Any

Record = dict[str, Any]

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
CALLS = "BENCHMARK_CALLS"  # the file in which `marked_call` and `marked_upper` count


def upper(record: Record) -> Record:
    """Trivial: upper-case one field."""
    record["text"] = record["text"].upper()
    return record


def lower(record: Record) -> None:
    """Trivial, as are the next ones: they change the record, or return it."""
    record["text"] = record["text"].lower()


def strip(record: Record) -> None:
    record["text"] = record["text"].strip()


def measured(record: Record) -> Record:
    record["length"] = len(record["text"])
    return record


def tagged(record: Record) -> None:
    record["tag"] = "long" if record["length"] > 500 else "short"


def numbered(record: Record) -> Record:
    record["number"] = record["length"] % 97
    return record


def headed(record: Record) -> None:
    record["head"] = record["text"][:20]


def flagged(record: Record) -> Record:
    record["flag"] = record["number"] > 48
    return record


EIGHT = (lower, strip, measured, tagged, numbered, headed, flagged, upper)


async def upper_async(record: Record) -> Record:
    """The same as a coroutine that never waits."""
    return upper(record)


def clean(record: Record) -> Record:
    """Bound by computing: ten regular expressions and word statistics."""
    text = record["text"]
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    words = [word.lower() for word in _WORD.findall(text)]
    record["text"] = text
    record["words"] = len(words)
    record["distinct"] = len(set(words))
    return record


def kept(record: Record) -> bool:
    """Whether the record is one of the 70 % to keep, determined by its id."""
    return zlib.crc32(b"%d" % record["id"]) % 10 < 7


def score(record: Record) -> Record:
    """A call that takes 4 ms, however many records it is for."""
    return score_batch([record])[0]


def score_batch(records: list[Record]) -> list[Record]:
    time.sleep(0.004)
    return [{**record, "score": len(record["text"])} for record in records]


def keep(record: Record) -> list[Record] | None:
    """Filter by `kept`."""
    return None if kept(record) else []


def triple(record: Record) -> list[Record]:
    """One record becomes three."""
    number, question, answer = record["id"], record["question"], record["answer"]
    return [
        {"id": f"{number}-0", "text": question},
        {"id": f"{number}-1", "text": answer},
        {"id": f"{number}-2", "text": f"{question}\n{answer}"},
    ]


def digest(record: Record) -> bytes:
    """Return a digest that two records with the same text share."""
    return hashlib.blake2b(record["text"].encode(), digest_size=16).digest()


def reply(record: Record) -> Record:
    """Return the answer of a call, without the waiting."""
    record["reply"] = "done"
    return record


def call(record: Record) -> Record:
    """Limited by waiting: simulates a call of a model, with the duration in the record."""
    time.sleep(record["seconds"])
    return reply(record)


async def call_async(record: Record) -> Record:
    """The same as a coroutine."""
    await asyncio.sleep(record["seconds"])
    return reply(record)


class _Marks:
    """Counts calls over all processes, and records clock and CPU time at each first call."""

    descriptor: int | None = None

    def add(self) -> None:
        if self.descriptor is None:
            path = Path(os.environ[CALLS])
            self.descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            first = path.with_name(f"{path.name}.{os.getpid()}")
            now = f"{time.perf_counter()} {time.process_time()}"
            first.write_text(now, encoding="ascii")
        os.write(self.descriptor, b".")


_marks = _Marks()


def marked_call(record: Record) -> Record:
    """`call`, counted."""
    _marks.add()
    return call(record)


def marked_upper(record: Record) -> Record:
    """`upper`, counted."""
    _marks.add()
    return upper(record)
