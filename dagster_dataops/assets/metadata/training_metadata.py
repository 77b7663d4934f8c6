"""Metadata of results with labels: the share of trained tokens, and examples."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import dagster as dg

from dagster_dataops.assets.metadata.markdown import fenced, in_window, table
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

    Returns:
        Nothing if the operator writes no labels, or the result is empty.
    """
    text_of = getattr(operator, "marked_text", None)
    records = dataset.head(_SAMPLES) if text_of and counts.get("tokens") else []
    if text_of is None or not records:
        return {}
    tokens, trained = counts["tokens"], counts.get("trained_tokens", 0)
    row = [f"{tokens:,}", f"{trained:,}", percentage(trained / tokens)]
    summary = table(["tokens", "trained", "share"], [row])
    text = f"{summary}\n\n{samples(map(text_of, records))}"
    return {TRAINED: dg.MetadataValue.md(in_window(text))}


def samples(texts: Iterable[str]) -> str:
    """Return Markdown that shows texts whose trained parts are in ``[[`` and ``]]``."""
    blocks = [fenced(_excerpt(text)) for text in texts]
    shown = [f"**record {number}**\n\n{block}" for number, block in enumerate(blocks)]
    return "\n\n".join(["Trained are the parts in `[[ ]]`.", *shown])


def _excerpt(text: str) -> str:
    """Return a text; of a long one, an excerpt with its first trained part."""
    if len(text) <= _MAX_CHARACTERS:
        return text
    start = max(text.find(_OPENS) - _BEFORE, 0)
    end = start + _MAX_CHARACTERS
    return f"{'...' if start else ''}{text[start:end]}{'...' if end < len(text) else ''}"
