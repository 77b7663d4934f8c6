"""The asset check ``missing_columns`` of operators that need columns of their input.

The operator's step yields the result from the counts of the run, without reading the records again.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import dagster as dg

from dagster_dataops.assets.checks.check_partitions import partitions_text
from dagster_dataops.assets.checks.error_rate import RunResult, is_selected
from dagster_dataops.assets.checks.severity import severity_in
from dagster_dataops.assets.metadata.metadata_keys import MISSING_COLUMN_COUNTS
from dagster_dataops.assets.runtime.step_context import StepContext
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.options.read_columns import is_optional
from dagster_dataops.operators.options.settings import ALLOWED
from dagster_dataops.operators.outcomes.column_watch import MISSING_TABLE
from dagster_dataops.operators.outcomes.record_context import count_tables

MISSING_COLUMNS: Final = "missing_columns"
_DESCRIPTION: Final = "Passes if no record lacks a needed column."


def needs_columns(operator: Operator) -> bool:
    """Return whether records that lack a column are counted, so that the operator has the check."""
    if operator.__dataops__.resolved.missing == ALLOWED:
        return False
    uses = operator.__dataops__.uses
    return any(not is_optional(name) for use in uses for name in use.names_read)


def missing_columns_spec(key: dg.AssetKey) -> dg.AssetCheckSpec:
    """Return the spec of the check for an operator's asset."""
    return dg.AssetCheckSpec(MISSING_COLUMNS, asset=key, description=_DESCRIPTION)


def missing_columns_results(
    context: StepContext,
    spec: dg.AssetCheckSpec | None,
    results: Sequence[RunResult],
    partitions: Sequence[str | None] = (),
) -> Iterator[dg.AssetCheckResult]:
    """Yield the result of the check if it is selected; in an op it always is."""
    if spec is None or not is_selected(context, spec.key):
        return
    lacking: dict[str, int] = {}
    tables = [count_tables(manifest.counts).get(MISSING_TABLE, {}) for manifest, _ in results]
    for table in tables:
        for column, number in table.items():
            lacking[column] = lacking.get(column, 0) + int(number)
    records = sum(manifest.rows_in for manifest, _ in results)
    from dagster_dataops.execution.column_presence import lacking_text

    texts = [lacking_text(column, number, records) for column, number in lacking.items()]
    text = "; ".join(texts) or "No record was counted that lacks a column."
    if where := partitions_text("missing columns", partitions, list(map(bool, tables))):
        text += f".{where}"
    yield dg.AssetCheckResult(
        passed=not lacking,
        asset_key=spec.asset_key,
        check_name=spec.name,
        severity=severity_in(spec, dg.AssetCheckSeverity.WARN),
        description=text,
        metadata={MISSING_COLUMN_COUNTS: dg.MetadataValue.json(lacking)},
    )
