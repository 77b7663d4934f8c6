"""Readers of records: operators without input that return a stream. One folder per file format."""

from dagster_dataops.exports import lazy_exports

__all__, __getattr__ = lazy_exports(__name__)  # `__init__.pyi` lists the names
