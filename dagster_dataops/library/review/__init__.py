"""Group ``review``: people decide about records."""

from dagster_dataops.library.review import asking
