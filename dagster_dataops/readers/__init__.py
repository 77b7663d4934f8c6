"""Readers: operators without input that return a stream of records.

One folder per file format. The modules here are shared by formats or need no folder.
"""

from dagster_dataops.exports import lazy_exports

__all__, __getattr__ = lazy_exports(__name__)  # `__init__.pyi` lists the names


def __dir__() -> list[str]:
    return __all__
