"""The functions that declare asset checks, in one list; `dagster_dataops.checks` shows them."""

from dagster_dataops.assets.checks.declared_check import CHECK_KINDS, DeclaredCheck
from dagster_dataops.assets.checks.kinds.blend_shares import blend_shares
from dagster_dataops.assets.checks.kinds.json_schema import json_schema
from dagster_dataops.assets.checks.kinds.max_dropped import max_dropped
from dagster_dataops.assets.checks.kinds.missing_aux import missing_aux
from dagster_dataops.assets.checks.kinds.no_nulls import no_nulls
from dagster_dataops.assets.checks.kinds.required_columns import required_columns
from dagster_dataops.assets.checks.kinds.row_count import row_count
from dagster_dataops.assets.checks.kinds.unique import unique

__all__ = [
    "CHECK_KINDS",
    "DeclaredCheck",
    "blend_shares",
    "json_schema",
    "max_dropped",
    "missing_aux",
    "no_nulls",
    "required_columns",
    "row_count",
    "unique",
]


def __dir__() -> list[str]:
    return __all__
