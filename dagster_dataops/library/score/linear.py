"""``score.Linear`` and ``score.Train``: logistic regression over hashed word n-grams."""

import json
import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, TypeAlias

import xxhash
from annotated_types import Gt, Interval

from dagster_dataops.data import data_register
from dagster_dataops.errors import DefinitionError
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.option_values import needs_extra
from dagster_dataops.operators.options.file_content import FileContent
from dagster_dataops.operators.options.ranges import PositiveInt
from dagster_dataops.records import Record

score: Any = data_register.new_group("score")

_Ngrams: TypeAlias = Annotated[int, Interval(ge=1, le=5)]
_Buckets: TypeAlias = Annotated[int, Interval(ge=2, le=1 << 30)]
_Rate: TypeAlias = Annotated[float, Gt(0)]

_WORD: Final = re.compile(r"\w+")
_FACTOR: Final = 0x9E3779B97F4A7C15  # odd, so that the order of words counts
_WEIGHTS, _MODEL = "weights.npy", "model.json"
_SMALL: Final = 1e-8


class HashedNGrams:
    """Turns a text into the numbers of the buckets that its word n-grams fall into.

    The n-grams have 1 to ``size`` words; the number of buckets is a power of two.
    """

    def __init__(self, size: int, buckets: int) -> None:
        self._size, self._buckets = size, buckets
        self._numpy = numpy("score.Linear")

    def of(self, text: str) -> Any:
        """Return the buckets, each once and sorted, as an array."""
        np = self._numpy
        words = _WORD.findall(text.casefold())
        encoded = (word.encode("utf-8", "replace") for word in words)
        single = np.fromiter(map(xxhash.xxh3_64_intdigest, encoded), np.uint64, len(words))
        joined = single
        hashes = [single]
        for size in range(2, min(self._size, len(words)) + 1):
            joined = joined[:-1] * np.uint64(_FACTOR) + single[size - 1 :]
            hashes.append(joined)
        buckets = np.concatenate(hashes) >> np.uint64(64 - self._buckets.bit_length() + 1)
        return np.unique(buckets.astype(np.uint32))


class Train(score):
    """Train the model of ``score.Linear``; an operator that builds an artefact.

    Reads texts in ``input_key="text"`` and their labels in ``label_key="label"``: true or 1 for
    good, false or 0 for bad, or a number between. To train on two datasets, such as a reference
    corpus and raw pages, give each its label with ``shape.Add``, and join them by ``combine``.

    It is a logistic regression over the sets of word n-grams of 1 to ``ngram_size=2`` words, hashed
    into ``buckets=262144`` (a power of two; 1 MB), as the quality classifiers of GPT-3 and CCNet
    were. ``epochs=5`` passes over the records in an order of ``seed=0``, by AdaGrad with
    ``learning_rate=0.5``. With ``balance=True``, good and bad records together count the same.
    The n-grams of all records are kept in memory: about 8 bytes a word. The same records and
    options give the same model. Needs the extra ``score`` (numpy).

    Args:
        input_key: Key of the text: a column, or a selector.
        label_key: Column of the label.
        ngram_size: Most words in an n-gram, 1 to 5.
        buckets: Number of buckets that n-grams are hashed into, a power of two.
        epochs: Passes over the records.
        learning_rate: Step size of AdaGrad, above 0.
        balance: Whether good and bad records together count the same.
        seed: Another number makes another order of the records.
    """

    renamed_options: ClassVar = {"ngrams": "ngram_size"}

    def __init__(
        self,
        input_key: str = "text",
        label_key: str = "label",
        *,
        ngram_size: _Ngrams = 2,
        buckets: _Buckets = 1 << 18,
        epochs: PositiveInt = 5,
        learning_rate: _Rate = 0.5,
        balance: bool = True,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if buckets & (buckets - 1):
            msg = f"buckets must be a power of two, got {buckets}"
            raise DefinitionError(msg)
        self._column, self._label = FieldKey(input_key), label_key
        self._settings = {"ngrams": ngram_size, "buckets": buckets}
        self._features = HashedNGrams(ngram_size, buckets)
        self._epochs, self._rate, self._seed = epochs, learning_rate, seed % (1 << 64)
        self._balance = balance

    def build(self, records: Iterator[Record], folder: Path) -> None:
        np = numpy("score.Train")
        texts, labels = [], []
        for number, record in enumerate(records):
            labels.append(self._label_of(record, number))
            texts.append(self._features.of(self._column.text(record)))
        good = sum(labels)
        if not 0 < good < len(labels):
            count = counted(len(labels), "records")
            msg = f"{count} with labels that sum up to {good}; both kinds are needed"
            raise ValueError(msg)
        importance = (len(labels) / (2 * (len(labels) - good)), len(labels) / (2 * good))
        weights, bias = self._trained(np, texts, labels, importance if self._balance else (1, 1))
        np.save(folder / _WEIGHTS, weights.astype(np.float32), allow_pickle=False)
        facts = {**self._settings, "bias": bias, "records": len(labels), "good": good}
        (folder / _MODEL).write_text(json.dumps(facts), encoding="utf-8")

    def _label_of(self, record: Record, number: int) -> float:
        label = record.get(self._label)
        if not isinstance(label, (int, float)) or not 0 <= label <= 1:
            msg = f"record {number}: label {self._label!r} is {label!r}; it must be 0 to 1, or bool"
            raise ValueError(msg)
        return float(label)

    def _trained(
        self, np: Any, texts: list[Any], labels: list[float], importance: Iterable[float]
    ) -> tuple[Any, float]:
        """Return the weights and the bias."""
        bad, good = importance
        weights = np.zeros(self._settings["buckets"])
        squares = np.full(len(weights), _SMALL)
        bias, bias_squares = 0.0, _SMALL
        for epoch in range(self._epochs):
            for number in np.random.default_rng([self._seed, epoch]).permutation(len(texts)):
                buckets, label = texts[number], labels[number]
                scale = 1 / math.sqrt(len(buckets) or 1)
                error = probability(bias + float(weights[buckets].sum()) * scale) - label
                error *= good * label + bad * (1 - label)
                slope = error * scale
                squares[buckets] += slope * slope
                weights[buckets] -= self._rate * slope / np.sqrt(squares[buckets])
                bias_squares += error * error
                bias -= self._rate * error / math.sqrt(bias_squares)
        return weights, bias


class Linear(score):
    """Write the probability that a text is good, by a model of ``score.Train``.

    Reads ``input_key="text"`` and writes ``output_key="score"``, from 0 to 1; ``filters.Field``
    then decides. ``model`` is the node that trains it, or the folder of a trained model. A text
    without words has the score that the share of good records gives. Needs the extra ``score``.

        with pipeline("quality") as ppl:
            ppl.model = data.score.Train()
            ppl.scored = data.score.Linear(model=ppl.model)

    Args:
        model: Node that trains the model, or its folder.
        input_key: Key of the text: a column, or a selector.
        output_key: Column of the score.
    """

    def __init__(
        self,
        model: Annotated[str | Path, FileContent],
        input_key: str = "text",
        output_key: str = "score",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._column, self._written = FieldKey(input_key), output_key
        np = numpy("score.Linear")
        facts = model_facts(model, _MODEL, "score.Train", "bias")
        self._features = HashedNGrams(facts["ngrams"], facts["buckets"])
        self._bias = float(facts["bias"])
        self._weights = np.load(Path(model) / _WEIGHTS, allow_pickle=False)

    def forward(self, record: Record) -> Record:
        buckets = self._features.of(self._column.text(record))
        total = float(self._weights[buckets].sum()) / math.sqrt(len(buckets) or 1)
        record[self._written] = probability(self._bias + total)
        return record


def probability(value: float) -> float:
    """Return the logistic function of a value."""
    if value >= 0:
        return 1 / (1 + math.exp(-value))
    power = math.exp(max(value, -700.0))
    return power / (1 + power)


def numpy(operator: str) -> Any:
    """Return the package numpy."""
    with needs_extra(operator, "score"):
        import numpy as np
    return np


def model_facts(folder: str | Path, name: str, builder: str, key: str) -> dict[str, Any]:
    """Return the content of the JSON file of a trained model, which has ``key``."""
    try:
        facts: dict[str, Any] = json.loads((Path(folder) / name).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        msg = f"model {str(folder)!r} is no folder of {builder}: {error}"
        raise DefinitionError(msg) from None
    if key not in facts:
        msg = f"model {str(folder)!r} is no folder of {builder}: {name} has no {key!r}"
        raise DefinitionError(msg)
    return facts
