"""Group ``join``: operators that add the columns of one dataset to the records of another."""

from dagster_dataops.library.join import lookups, merging
