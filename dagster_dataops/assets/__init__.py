"""The Dagster face: operators as assets or ops. The only package that imports Dagster."""
