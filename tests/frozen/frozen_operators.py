"""The operators of the frozen folders. An edit changes their code, so that no frozen run resumes.

Every version from 0.2.0 on runs them. ``die_at`` kills the process group at one record; it is
operational, so a run without it resumes.
"""

import os
import signal
import time
from pathlib import Path
from typing import Annotated

from dagster_dataops import (
    DataPipelineBuilder,
    Drop,
    LLMOperator,
    Operational,
    To,
    data_register,
)

Step = Annotated[int, Operational]


def pause(number: int, die_at: int) -> None:
    """Kill all processes of the run at a record; work slowly before it."""
    if die_at < 0:
        return
    time.sleep(0.06 if number < die_at else 1)  # what is finished is handed over
    if number == die_at:
        os.killpg(0, signal.SIGKILL)


def doubled(record: dict, die_at: int) -> dict:
    """Return a record with twice its number; every eleventh fails."""
    pause(record["n"], die_at)
    if record["n"] % 11 == 7:
        raise ValueError("seven")
    return record | {"doubled": 2 * record["n"]}


@data_register("data.frozen")
def double(record: dict, tag: str = "", die_at: Step = -1):
    return doubled(record, die_at) | {"tag": tag}


@data_register("data.frozen", _concurrency_mode="async")
async def double_async(record: dict, tag: str = "", die_at: Step = -1):
    return doubled(record, die_at) | {"tag": tag}


@data_register("data.frozen")
def expand(record: dict, context, die_at: Step = -1):
    pause(record["n"], die_at)
    context.count(seen=1, weight=0.5)
    if record["n"] % 5 == 0:
        return Drop("five")
    if record["n"] % 5 == 1:
        return []
    return [record | {"part": part} for part in range(record["n"] % 3 + 1)]


@data_register("data.frozen", outputs=("odd", "even"))
def route(record: dict, die_at: Step = -1):
    return To("odd" if record["n"] % 2 else "even", doubled(record, die_at))


@data_register("data.frozen", rewrite_func="forward_batch_input")
def backwards(records: list):
    return records[::-1]


frozen = data_register.new_group("frozen")


class Double(frozen):
    """A class, with an option that has a default."""

    def __init__(self, factor: int = 2, die_at: Step = -1, **kwargs):
        super().__init__(**kwargs)
        self.factor, self.die_at = factor, die_at

    def forward(self, record: dict):
        pause(record["n"], self.die_at)
        return record | {"doubled": self.factor * record["n"]}


class Batched(frozen):
    """Batches of records."""

    def __init__(self, die_at: Step = -1, **kwargs):
        super().__init__(**kwargs)
        self.die_at = die_at

    def forward_batch(self, records: list):
        for record in records:
            pause(record["n"], self.die_at)
        return [record | {"batch": [one["n"] for one in records]} for record in records]


class Smallest(frozen):
    """A selection."""

    def sketch(self, record: dict):
        return record["n"] % 4

    def keep(self, sketches):
        return [sketch < 2 for sketch in sketches]


class Streamed(frozen):
    """A stream, written with positions."""

    def __init__(self, die_at: Step = -1, **kwargs):
        super().__init__(**kwargs)
        self.die_at = die_at

    def stream(self, records: DataPipelineBuilder) -> DataPipelineBuilder:
        die_at = self.die_at
        slowed = records.map(Slow(die_at))
        return slowed.filter(is_kept).bucket(3, drop_remainder=False).map(as_batch)


class Slow(Operational):
    """A function of a stream that dies."""

    def __init__(self, die_at: int) -> None:
        self.die_at = die_at

    def __call__(self, record: dict) -> dict:
        pause(record["n"], self.die_at)
        return record


def is_kept(record: dict) -> bool:
    return record["n"] % 4 != 1


def as_batch(records: list) -> dict:
    return {"numbers": [record["n"] for record in records]}


class Words(frozen):
    """An artefact."""

    def build(self, records, folder: Path):
        words = sorted({word for record in records for word in record["text"].split()})
        (folder / "words.txt").write_text("\n".join(words))


class Known(frozen):
    """Reads the artefact."""

    def __init__(self, words, **kwargs):
        super().__init__(**kwargs)
        self.words = set((Path(words) / "words.txt").read_text().splitlines())

    def forward(self, record: dict):
        return record | {"known": all(word in self.words for word in record["text"].split())}


class Mapped(frozen):
    """Options that version 0.2 compared by other rules: a dict of two entries, and a tuple."""

    def __init__(self, names: dict, order: tuple = ("n", "text"), die_at: Step = -1, **kwargs):
        super().__init__(**kwargs)
        self.names, self.order, self.die_at = names, order, die_at

    def forward(self, record: dict):
        pause(record["n"], self.die_at)
        return {self.names.get(name, name): record[name] for name in self.order}


class Sealed(frozen):
    """An option that version 0.2 left out of the identity, although it changes the result."""

    def __init__(self, encryption_key: str, die_at: Step = -1, **kwargs):
        super().__init__(**kwargs)
        self.key, self.die_at = encryption_key, die_at

    def forward(self, record: dict):
        pause(record["n"], self.die_at)
        return {"sealed": f"{self.key}{record['n']}"}


class Asks(LLMOperator):
    """Asks a model."""

    def __init__(self, die_at: Step = -1, **kwargs):
        super().__init__(**kwargs)
        self.die_at = die_at

    async def forward(self, record: dict):
        reply = await self.ask(f"number {record['n']}")
        pause(record["n"], self.die_at)
        return record | {"reply": reply.text}


data_register("data.frozen")(Asks)
