"""Group ``markdown``: operators on Markdown texts."""

from dagster_dataops.library.markdown import sections
