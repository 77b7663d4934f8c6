"""Text lengths: the lengths of texts by column, estimated from a sample."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.record_samples import spread_sample
from dagster_dataops.errors import DataOpsError
from dagster_dataops.foundation.places.bucket import Location

_RECORDS: Final = 1000  # records of a sample
_MOST_FILES: Final = 8
_MOST_COLUMNS: Final = 12


def compared_lengths(
    before: Iterable[Location], after: Iterable[Location]
) -> list[dict[str, dict[str, Any] | str | None]]:
    """Return the lengths of each column with texts, before and after a node.

    Each row has ``column``, ``before`` and ``after``: ``texts`` (their number in the sample),
    ``mean``, ``median``, ``p95``, ``most`` and ``histogram``, the number of texts by bits of the
    length: bin 0 is the empty text, bin 1 one character, bin n from 2^(n-1) to 2^n - 1.
    """
    first, second = _lengths(before), _lengths(after)
    columns = list(dict.fromkeys([*second, *first]))[:_MOST_COLUMNS]
    return [
        {"column": name, "before": _summary(first.get(name)), "after": _summary(second.get(name))}
        for name in columns
    ]


def _lengths(places: Iterable[Location]) -> dict[str, list[int]]:
    """Return the lengths of texts by column in samples of files; missing files are left out."""
    files = list(places)[:_MOST_FILES]
    found: dict[str, list[int]] = {}
    for path in files:
        try:
            sample = spread_sample(JsonlDataset(path, 0), _RECORDS // len(files))
        except (DataOpsError, OSError):
            continue
        for record in sample.records:
            for name, value in record.items():
                if isinstance(value, str):
                    found.setdefault(name, []).append(len(value))
    return found


def _summary(lengths: list[int] | None) -> dict[str, Any] | None:
    if not lengths:
        return None
    ordered = sorted(lengths)
    bins = Counter(length.bit_length() for length in ordered)
    return {
        "texts": len(ordered),
        "mean": round(sum(ordered) / len(ordered), 1),
        "median": ordered[len(ordered) // 2],
        "p95": ordered[(len(ordered) * 95) // 100],
        "most": ordered[-1],
        "histogram": [bins[bit] for bit in range(max(bins) + 1)],
    }
