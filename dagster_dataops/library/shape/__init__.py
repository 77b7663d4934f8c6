"""Group ``shape``: operators that change keys, nesting and types of records."""

from dagster_dataops.library.shape import casting, columns, derived_values, file_facts, nesting
