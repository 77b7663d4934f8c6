"""Group ``code``: operators for files of source code."""

from dagster_dataops.library.code import comments, languages, licences, syntax
