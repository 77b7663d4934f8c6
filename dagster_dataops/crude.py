"""Crude data: samples of many files, cooked to records; auxiliary files, metadatasets.

>>> from dagster_dataops.crude import Cooker, crude

The module can be called as its function ``crude``: ``dagster_dataops.crude(path)`` reads a dataset.
"""

import sys
from typing import Any

from dagster_dataops.foundation.exports import NamedModule, lazy_exports

__all__, __getattr__ = lazy_exports(__name__)  # `crude.pyi` lists the names


def __dir__() -> list[str]:
    return __all__


class _CallableModule(NamedModule):
    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self.__getattr__("crude")(*arguments, **options)

    @property
    def __wrapped__(self) -> Any:
        """The function that a call calls: its signature, and its identity in code that names it."""
        return self.__getattr__("crude")


sys.modules[__name__].__class__ = _CallableModule
