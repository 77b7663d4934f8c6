"""``score.CharNGram`` and ``score.TrainCharNGram``: perplexity by counts of characters."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, TypeAlias

from annotated_types import Interval

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.score.linear import model_facts, numpy, score
from dagster_dataops.operators.options.file_content import FileContent
from dagster_dataops.records import Record

_Order: TypeAlias = Annotated[int, Interval(ge=1, le=10)]
_Buckets: TypeAlias = Annotated[int, Interval(ge=2, le=1 << 28)]

_COUNTS, _MODEL = "counts.npy", "model.json"
_FACTOR: Final = 0x9E3779B97F4A7C15
_ALPHABET: Final = 1000  # characters that a text without any statistics is expected to have
_FLUSH: Final = 1 << 20  # characters that are counted at once
_SMOOTHING: Final = 5.0  # occurrences of a context that its statistics need to count half


class TrainCharNGram(score):
    """Count the characters of reference texts for ``score.CharNGram``; builds an artefact.

    Reads ``input_key="text"``. Counts each character after the 0 to ``ngram_size - 1`` characters
    before it (``ngram_size=5``), hashed into ``buckets=1048576`` (a power of two) for each length:
    20 MB. The memory does not depend on the number of texts. Needs the extra ``score`` (numpy).

    Args:
        input_key: Key of the text: a column, or a selector.
        ngram_size: Most characters in an n-gram, 1 to 10.
        buckets: Number of buckets that n-grams are hashed into, a power of two.
    """

    renamed_options: ClassVar = {"order": "ngram_size"}

    def __init__(
        self,
        input_key: str = "text",
        *,
        ngram_size: _Order = 5,
        buckets: _Buckets = 1 << 20,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if buckets & (buckets - 1):
            msg = f"buckets must be a power of two, got {buckets}"
            raise DefinitionError(msg)
        self._column, self._order, self._buckets = FieldKey(input_key), ngram_size, buckets

    def build(self, records: Iterator[Record], folder: Path) -> None:
        np = numpy("score.TrainCharNGram")
        counts = np.zeros((self._order, self._buckets), np.uint32)
        waiting: list[list[Any]] = [[] for _ in range(self._order)]
        characters = held = 0
        for record in records:
            text = self._column.text(record)
            for column, buckets in zip(waiting, _buckets(np, text, *counts.shape), strict=True):
                column.append(buckets)
            held += len(text)
            if held >= _FLUSH:
                characters += _counted(np, counts, waiting)
                held = 0
        characters += _counted(np, counts, waiting)
        np.save(folder / _COUNTS, counts, allow_pickle=False)
        facts = {"order": self._order, "buckets": self._buckets, "characters": characters}
        (folder / _MODEL).write_text(json.dumps(facts), encoding="utf-8")


class CharNGram(score):
    """Write how surprising a text is to a model of ``score.TrainCharNGram``: its perplexity.

    Reads ``input_key="text"`` and writes ``output_key="perplexity"``: 1 is a text without surprise,
    prose like the reference texts has 3 to 10, characters that were never seen have thousands;
    ``null`` for an empty text. ``model`` is the node that
    trains it, or the folder of a trained model. The probability of a character is that after the
    characters before it, smoothed step by step with those of shorter contexts (Dirichlet). Unlike
    KenLM it needs no file from elsewhere. Needs the extra ``score`` (numpy).

    Args:
        model: Node that trains the model, or its folder.
        input_key: Key of the text: a column, or a selector.
        output_key: Column of the perplexity.
    """

    def __init__(
        self,
        model: Annotated[str | Path, FileContent],
        input_key: str = "text",
        output_key: str = "perplexity",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._np = numpy("score.CharNGram")
        facts = model_facts(model, _MODEL, "score.TrainCharNGram", "characters")
        self._characters = facts["characters"]
        self._counts = self._np.load(Path(model) / _COUNTS, allow_pickle=False)
        self._column, self._written = FieldKey(input_key), output_key

    def forward(self, record: Record) -> Record:
        text = self._column.text(record)
        record[self._written] = self._perplexity(text) if text else None
        return record

    def _perplexity(self, text: str) -> float:
        np = self._np
        chance = np.full(len(text), 1 / _ALPHABET)
        context: Any = self._characters
        for level, buckets in enumerate(_buckets(np, text, *self._counts.shape)):
            seen = self._counts[level][buckets].astype(np.float64)
            context = context[: len(seen)] if level else context
            expected = _SMOOTHING * chance[level:]
            chance[level:] = (np.minimum(seen, context) + expected) / (context + _SMOOTHING)
            context = seen  # the n-gram before a character is the context of the next length
        return float(np.exp2(-np.log2(chance).mean()))


def _buckets(np: Any, text: str, order: int, buckets: int) -> list[Any]:
    """Return for each length the buckets of the n-grams that end at each character."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
    shift = np.uint64(64 - buckets.bit_length() + 1)
    factor = np.uint64(_FACTOR)
    joined = codes * factor
    levels = [joined >> shift]
    for size in range(2, order + 1):
        before = joined[:-1]
        joined = (before ^ (before >> np.uint64(29))) * factor + codes[size - 1 :] * factor
        levels.append(joined >> shift)
    return [level.astype(np.int64) for level in levels]


def _counted(np: Any, counts: Any, waiting: list[list[Any]]) -> int:
    """Add the buffered texts to the counts, and return the number of characters."""
    characters = sum(map(len, waiting[0]))
    for level, column in enumerate(waiting):
        if column:
            times = np.bincount(np.concatenate(column), minlength=counts.shape[1])
            counts[level] += times.astype(np.uint32)
        column.clear()
    return characters
