"""Asset checks declared in one line each.

>>> checks = {"node": [checks.row_count(min=1), checks.no_nulls("text"), checks.unique("id")]}

All checks of an asset read its published file in one pass, in a step after the operator's own.
They can be run alone, without the operator, as often as needed. Where one step runs a whole
pipeline, blocking checks run inside that step. A blocking check that fails stops the assets
downstream in both cases.
"""

from collections.abc import Sequence
from typing import Final

from dagster_dataops.assets.checks.declared_check import (
    DeclaredCheck as DeclaredCheck,  # noqa: PLC0414 - public
)
from dagster_dataops.assets.checks.kinds.json_schema import JsonSchema
from dagster_dataops.assets.checks.kinds.max_dropped import MaxDropped
from dagster_dataops.assets.checks.kinds.no_nulls import NoNulls
from dagster_dataops.assets.checks.kinds.required_columns import RequiredColumns
from dagster_dataops.assets.checks.kinds.row_count import RowCount
from dagster_dataops.assets.checks.kinds.unique import Unique

row_count = RowCount
max_dropped = MaxDropped
required_columns = RequiredColumns
no_nulls = NoNulls
unique = Unique
json_schema = JsonSchema

# In the order of the fields of a defs.yaml.
CHECK_KINDS: Final[Sequence[type[DeclaredCheck]]] = (
    *(row_count, max_dropped, required_columns, no_nulls, unique, json_schema),
)
