"""Optional parts: functions that they add to the core, each loaded when it is used.

The core imports no optional part: crude data and its files, loaders, clusters, models and reports.
What one of them adds is a line of the table.
"""

import sys
from importlib import import_module
from typing import Any, Final, Literal, TypeAlias

Added: TypeAlias = Literal["bytes_of_files", "drop_explainer", "file_of_store", "with_lazy_files"]

ADDED: Final[dict[Added, str]] = {
    # Where files of crude datasets lie in their shards: the first byte, and the number of bytes.
    "bytes_of_files": "dagster_dataops.training.filestores.store_opening:bytes_of_files",
    # What an operator of the library says about records that it dropped.
    "drop_explainer": "dagster_dataops.library.explaining.drop_explanations:drop_explainer",
    # A file in a store, or where it is, by the path or URL of the store and the name of the file.
    "file_of_store": "dagster_dataops.training.filestores.lazy_files:file_of_store",
    # A record whose references to files of stores are read when they are used.
    "with_lazy_files": "dagster_dataops.training.filestores.lazy_files:with_lazy_files",
}


def function_of_part(name: Added) -> Any:
    """Return a function of an optional part, which is imported."""
    module, _, attribute = ADDED[name].partition(":")
    return getattr(import_module(module), attribute)


def has_model_operators() -> bool:
    """Return whether the base class of operators that call models was imported.

    Otherwise no such operator exists.
    """
    return "dagster_dataops.models.model_operator" in sys.modules
