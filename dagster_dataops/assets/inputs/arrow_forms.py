"""Results as Arrow tables, with the types that an export to Parquet would have."""

from collections.abc import Sequence
from itertools import chain

import pyarrow as pa

from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.exporters.arrow_types import ArrowTable, batches, write_batches
from dagster_dataops.datasets.exporters.exporter import ExportRecords, UnfitValueError
from dagster_dataops.errors import InputError

_INSTEAD = "annotate the input as list[dict] or JsonlDataset"


def table_of(datasets: Sequence[JsonlDataset]) -> pa.Table:
    """Return the records of datasets as one table, in order.

    Arrow reads the files itself if it does so without a loss. Columns are joined by name. Integers
    and numbers become ``double``, and null fits every type.

    Raises:
        InputError: A column has values of two types; it names the file and the line.
    """
    try:
        tables = [
            write_batches(
                ExportRecords(dataset),
                {},
                lambda schema, record_batches: pa.Table.from_batches(list(record_batches), schema),
            )
            for dataset in datasets
        ]
    except UnfitValueError:
        tables = []  # the error of all datasets together counts their records as one
    schemas = [table.schema for table in tables]
    if tables and len(schemas[0]) and all(schema == schemas[0] for schema in schemas):
        return pa.concat_tables(tables)
    return reader_of(datasets).read_all()


def reader_of(datasets: Sequence[JsonlDataset]) -> pa.RecordBatchReader:
    """Return a reader of record batches, which holds one batch at a time.

    The files are read once before, to know the types of all columns.

    Raises:
        InputError: As for `table_of`.
    """
    arrow = ArrowTable({})
    try:
        arrow.infer(chain.from_iterable(datasets))
    except UnfitValueError as error:
        raise _refused(datasets, error) from None
    record_batches = (
        arrow.batch(start, batch) for start, batch in batches(chain.from_iterable(datasets))
    )
    return pa.RecordBatchReader.from_batches(arrow.schema, record_batches)


def _refused(datasets: Sequence[JsonlDataset], error: UnfitValueError) -> InputError:
    """Return an error that names the file and the line of the refused value."""
    index = error.index  # counts the records of all datasets
    for dataset in datasets:
        records = ExportRecords(dataset)
        try:
            path, line = records.place_of(index)
        except IndexError:
            index -= sum(1 for _ in dataset)
            continue
        reason = f"column {error.column!r} cannot be one of Arrow: {error.found}; {_INSTEAD}"
        return InputError(f"{path}, line {line}", reason)
    return InputError(f"record {error.index}", f"{error.found}; {_INSTEAD}")
