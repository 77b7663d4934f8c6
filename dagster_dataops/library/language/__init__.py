"""Group ``language``: operators that identify the language and the script of texts."""

from dagster_dataops.library.language import identification, scripts
