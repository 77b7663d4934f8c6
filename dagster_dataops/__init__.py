"""Data operators as Dagster assets: one jsonl result per operator, crash-safe checkpoints.

>>> from dagster_dataops import build_definitions, data, data_register, pipeline
"""

from dagster_dataops.exports import lazy_exports

__version__ = "0.2.0"
__all__, __getattr__ = lazy_exports(__name__)  # `__init__.pyi` lists the names


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
