"""Histogram pictures: the distributions in a result of ``stats.Summary``, as Markdown.

Each picture is a small SVG in a data URI. With its numbers it has less than 1,000 characters,
because Dagster's UI then shows it on the asset page, and longer Markdown behind a link. The name of
the column is in the text, since the page has no room for long keys.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Final

import dagster as dg

from dagster_dataops.assets.metadata.markdown import INLINE_CHARACTERS, cell
from dagster_dataops.assets.metadata.metadata_keys import own_key
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import InputError

SUMMARY: Final = "stats.Summary"
_MOST_COLUMNS: Final = 20
_NAME: Final = 60  # characters of a column's name
_ROOM: Final = 130  # of the name, if marks take two characters
_MOST_BARS: Final = 30  # bins are joined to at most as many
_WIDTH: Final = 240  # pixels
_HEIGHT: Final = 60


def histogram_metadata(dataset: JsonlDataset, operator: str) -> dict[str, Any]:
    """Return a picture for each of the first columns with numbers; empty for other operators."""
    if operator != SUMMARY:
        return {}
    try:
        columns = [row.get("columns") for row in dataset.head(1)]
    except InputError:  # the preview shows what is wrong
        return {}
    data = columns[0] if columns and isinstance(columns[0], dict) else {}
    drawn = [
        f"{cell(name, _NAME)}\n\n{text}"
        for name, column in data.items()
        if isinstance(column, dict) and (text := histogram(column))
    ]
    return {
        own_key(f"histogram_{number}"): dg.MetadataValue.md(text)
        for number, text in enumerate(drawn[:_MOST_COLUMNS], 1)
    }


def histogram(column: Mapping[str, Any]) -> str:
    """Return the histogram of a column as Markdown; empty text if it has no numbers."""
    counts = (column.get("histogram") or {}).get("counts", ())
    if not counts:
        return ""
    percentiles = column["percentiles"]
    numbers = {
        "from": column["min"],
        "median": percentiles["50"],
        "mean": column["mean"],
        "95 %": percentiles["95"],
        "to": column["max"],
    }
    text = ", ".join(
        f"{name} {value:{',.6g' if isinstance(value, float) else ','}}"
        for name, value in numbers.items()
        if value is not None
    )
    encoded = b64encode(_svg(counts).encode()).decode()
    picture = f"![histogram](data:image/svg+xml;base64,{encoded})\n\n{text}"
    return picture if len(picture) + _ROOM < INLINE_CHARACTERS else text


def _svg(counts: Sequence[float]) -> str:
    """Return a drawing with a bar for each bin; a bin that is not empty can be seen."""
    joined = -(-len(counts) // _MOST_BARS)
    bars = [sum(counts[at : at + joined]) for at in range(0, len(counts), joined)]
    width, most = _WIDTH // len(bars), max(bars)
    heights = [max(1, round(_HEIGHT * bar / most)) if bar else 0 for bar in bars]
    drawn = "".join(
        f"M{at * width} {_HEIGHT}v-{height}h{max(1, width - 1)}V{_HEIGHT}"
        for at, height in enumerate(heights)
        if height
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}">'
        f'<path fill="#4c78a8" d="{drawn}"/></svg>'
    )
