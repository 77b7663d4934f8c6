"""Metadata of results to train on: the share of trained tokens, and samples of them."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import dagster as dg

from dagster_dataops.assets.metadata.markdown import fenced, table
from dagster_dataops.assets.metadata.metadata_keys import TRAINED
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.foundation.quantities import percentage
from dagster_dataops.operators.definition.operator import Operator

_SAMPLES: Final = 3
_MAX_CHARACTERS: Final = 3000
_BEFORE: Final = 500  # characters that are shown before the first trained part
_OPENS: Final = "[["


def training_metadata(
    operator: Operator, dataset: JsonlDataset, counts: Mapping[str, float]
) -> dict[str, Any]:
    """Return the share of trained tokens, and the texts of the first records, as Markdown.

    Args:
        operator: The operator that made the result.
        dataset: The result.
        counts: What the operator counted: ``tokens`` and ``trained_tokens``.

    Returns:
        Nothing if the operator writes no labels, or the result is empty.
    """
    text_of = getattr(operator, "marked_text", None)
    records = dataset.head(_SAMPLES) if text_of else []
    if text_of is None or not records or not counts.get("tokens"):
        return {}
    numbers = [counts["tokens"], counts.get("trained_tokens", 0)]
    rows = [[*(f"{one:,}" for one in numbers), percentage(numbers[1] / numbers[0])]]
    summary = table(["tokens", "trained", "share"], rows)
    return {TRAINED: dg.MetadataValue.md(f"{summary}\n\n{samples(map(text_of, records))}")}


def samples(texts: Iterable[str]) -> str:
    """Return texts with their trained parts in ``[[`` and ``]]``, as Markdown."""
    blocks = [fenced(_excerpt(text)) for text in texts]
    shown = [f"**record {number}**\n\n{block}" for number, block in enumerate(blocks)]
    return "\n\n".join(["Trained are the parts in `[[ ]]`.", *shown])


def _excerpt(text: str) -> str:
    """Return the part of a text around its first trained part, if it is long."""
    if len(text) <= _MAX_CHARACTERS:
        return text
    start = max(text.find(_OPENS) - _BEFORE, 0)
    end = start + _MAX_CHARACTERS
    return f"{'...' if start else ''}{text[start:end]}{'...' if end < len(text) else ''}"
