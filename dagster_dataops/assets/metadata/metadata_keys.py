"""The keys of the metadata that this package writes, and those of Dagster that it uses.

Dagster's UI shows the entries of an event in the order in which they were written, and leaves out
some of Dagster's own keys where it shows their values in another place.
"""

from typing import Final

METADATA_PREFIX: Final = "dagster_dataops"

# Definitions of assets.
OPERATOR: Final = "dagster_dataops/operator"
KIND: Final = "dagster_dataops/kind"
OPTIONS: Final = "dagster_dataops/options"
CANNOT_BE_RESUMED: Final = "dagster_dataops/cannot_be_resumed"
OUTPUT: Final = "dagster_dataops/output"
STAGES: Final = "dagster_dataops/stages"
DATASETS: Final = "dagster_dataops/datasets"
NAMED_IN: Final = "dagster_dataops/named_in"

# Definitions and results of checks.
SEVERITY: Final = "dagster_dataops/severity"
DESCRIPTION: Final = "dagster_dataops/description"

# Tags of runs.
REFRESH_TAG: Final = "dagster_dataops/refresh"
RETRY_TAG: Final = "dagster_dataops/retry_failed_records"
BATCHES_TAG: Final = "dagster_dataops/batches"
REVIEWS_TAG: Final = "dagster_dataops/reviews"

# Results: what became of the records.
ROWS_IN: Final = "dagster_dataops/rows_in"
ROWS_DROPPED: Final = "dagster_dataops/rows_dropped"
ROWS_FAILED: Final = "dagster_dataops/rows_failed"
ROWS_RESUMED: Final = "dagster_dataops/rows_resumed"
RESUMED_FROM: Final = "dagster_dataops/resumed_from"
KEPT_FROM: Final = "dagster_dataops/kept_from"
NOTES: Final = "dagster_dataops/notes"
DROPS: Final = "dagster_dataops/drops"
DROP_EXAMPLES: Final = "dagster_dataops/drop_examples"
FUNNEL: Final = "dagster_dataops/funnel"
ERRORS: Final = "dagster_dataops/errors"
LEAVES: Final = "dagster_dataops/leaves"

# Results: what differs from the one before.
ROWS_NEW: Final = "dagster_dataops/rows_new"
ROWS_GONE: Final = "dagster_dataops/rows_gone"
ROWS_CHANGED: Final = "dagster_dataops/rows_changed"
DIFFERENCE: Final = "dagster_dataops/difference"

# Results: what is in them, and where they are.
PREVIEW: Final = "dagster_dataops/preview"
THUMBNAILS: Final = "dagster_dataops/thumbnails"
TRACE: Final = "dagster_dataops/trace"
VIEW: Final = "dagster_dataops/view"
COLUMNS: Final = "dagster_dataops/columns"
PROMPT: Final = "dagster_dataops/prompt"
TRAINED: Final = "dagster_dataops/trained"
PATH: Final = "dagster_dataops/path"
REPORT: Final = "dagster_dataops/report"
FILES: Final = "dagster_dataops/files"
LISTING: Final = "dagster_dataops/listing"
DIGEST: Final = "dagster_dataops/digest"
SEEDS: Final = "dagster_dataops/seeds"
RECORDS_PER_SECOND: Final = "dagster_dataops/records_per_second"
EXPORTED_TO: Final = "dagster_dataops/exported_to"
EXPORT_FORMAT: Final = "dagster_dataops/export_format"
EXPORT_BYTES: Final = "dagster_dataops/export_bytes"
EXPORT_FILES: Final = "dagster_dataops/export_files"
IDENTITY: Final = "dagster_dataops/identity"  # a tag of the events of source files

# Observations of a run that is not finished.
PROGRESS: Final = "dagster_dataops/progress"
TRIED: Final = "dagster_dataops/tried"
WAITING: Final = "dagster_dataops/waiting"

# Results of checks.
FAILED_SHARE: Final = "dagster_dataops/failed_share"
FAILURES: Final = "dagster_dataops/failures"
ERROR_PATH: Final = "dagster_dataops/error_path"
ERROR_PATHS: Final = "dagster_dataops/error_paths"
MISSING_COLUMN_COUNTS: Final = "dagster_dataops/missing_columns"
EXAMPLE_RECORDS: Final = "dagster_dataops/examples"

# Previews and estimates: other keys than those of results, or Dagster would plot them together.
PREVIEW_LIMIT: Final = "preview/limit"
PREVIEW_RECORDS: Final = "preview/records"
PREVIEW_THUMBNAILS: Final = "preview/thumbnails"
PREVIEW_ROWS_IN: Final = "preview/rows_in"
PREVIEW_ROWS_OUT: Final = "preview/rows_out"
PREVIEW_ROWS_DROPPED: Final = "preview/rows_dropped"
PREVIEW_ROWS_FAILED: Final = "preview/rows_failed"
PREVIEW_ERRORS: Final = "preview/errors"
PREVIEW_PATH: Final = "preview/path"
PREVIEW_PROMPT: Final = "preview/prompt"
PREVIEW_ESTIMATE: Final = "preview/estimate"
ESTIMATE_TABLE: Final = "estimate/table"
ESTIMATE_COST: Final = "estimate/cost"
ESTIMATE_COST_AT_MOST: Final = "estimate/cost_at_most"
ESTIMATE_CALLS: Final = "estimate/calls"

# Keys that Dagster gives a meaning.
ROW_COUNT: Final = "dagster/row_count"
PARTITION_ROW_COUNT: Final = "dagster/partition_row_count"
SIZE_BYTES: Final = "dagster/size_bytes"
URI: Final = "dagster/uri"
COLUMN_SCHEMA: Final = "dagster/column_schema"
COLUMN_LINEAGE: Final = "dagster/column_lineage"
CODE_REFERENCES: Final = "dagster/code_references"
IO_MANAGER_KEY: Final = "dagster/io_manager_key"
LAST_UPDATED: Final = "dagster/last_updated_timestamp"


def own_key(name: str) -> str:
    """Return the key of a number or a table that an operator or a check names.

    These are sums (``counted_<name>``, those of calls of models), tables, quantiles of latency,
    shares of datasets, histograms and the numbers of declared checks.
    """
    return f"{METADATA_PREFIX}/{name}"
