"""Column lineage of operators that follow the ``input_key``/``output_key`` convention.

What an operator writes comes from what it reads; every other column is the upstream column of the
same name. Operators without ``input_key`` do not say what they read, and get no lineage.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import dagster as dg

from dagster_dataops.datasets.dataset import JsonlDataset

_SAMPLE_ROWS: Final = 100


def column_lineage(
    options: Mapping[str, Any],
    upstream: Sequence[tuple[dg.AssetKey, JsonlDataset]],
    result: JsonlDataset,
) -> dg.TableColumnLineage | None:
    """Return from which upstream columns every column of ``result`` comes.

    Args:
        options: The operator's; ``input_key`` and ``output_key`` count.
        upstream: Its inputs with their asset keys; columns are those of their first 100 records.
        result: What it wrote.
    """
    written = written_keys(options)
    if not written or not upstream:
        return None
    origins: dict[dg.AssetKey, list[str]] = {}
    for key, dataset in upstream:  # an asset stands here once for each of its partitions
        origins[key] = list(dict.fromkeys([*origins.get(key, ()), *columns_of(dataset)]))
    read = sorted({name for names in written.values() for name in names})
    lineage: dict[str, list[dg.TableColumnDep]] = {}
    for column in columns_of(result):
        names = written.get(column)
        if names is None:  # passed through, or written without being an output_key
            known = any(column in columns for columns in origins.values())
            names = [column] if known else read
        lineage[column] = [
            dg.TableColumnDep(asset_key=key, column_name=name)
            for key, columns in origins.items()
            for name in names
            if name in columns
        ]
    return dg.TableColumnLineage(deps_by_column=lineage)


def lineage_metadata(
    options: Mapping[str, Any],
    upstream: Sequence[tuple[dg.AssetKey, JsonlDataset]],
    result: JsonlDataset,
) -> dict[str, Any]:
    """Return the column lineage under Dagster's key, or nothing; arguments as `column_lineage`."""
    lineage = column_lineage(options, upstream, result)
    return {} if lineage is None else {"dagster/column_lineage": lineage}


def written_keys(options: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the keys that an operator writes, each with those it reads for it.

    As many outputs as inputs belong together pair by pair; otherwise every output comes of
    every input. No ``output_key`` means that inputs are written in place.
    """
    read = _names(options.get("input_key"))
    written = _names(options.get("output_key")) or read
    if len(read) == len(written):
        return {to: [source] for source, to in zip(read, written, strict=True)}
    return dict.fromkeys(written, read) if read else {}


def _names(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, (list, tuple)):
        return [name for name in value if isinstance(name, str)]
    return []


def columns_of(dataset: JsonlDataset) -> list[str]:
    """Return the keys of the first 100 records, in the order in which they first stand."""
    return list(dict.fromkeys(name for record in dataset.sample(_SAMPLE_ROWS) for name in record))
