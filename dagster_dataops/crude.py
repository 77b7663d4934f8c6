"""Crude data: samples of many files, cooked to records; auxiliary files, metadatasets.

>>> from dagster_dataops.crude import Cooker, crude

The module can be called as its function ``crude``: ``dagster_dataops.crude(path)`` reads a dataset.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from typing_extensions import override

from dagster_dataops.foundation.exports import lazy_exports

__all__, __getattr__ = lazy_exports(__name__)  # `crude.pyi` lists the names


def __dir__() -> list[str]:
    return __all__


class _CallableModule(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self.__getattr__("crude")(*arguments, **options)

    @property
    def __wrapped__(self) -> Any:
        """The function that a call calls: its signature, and its identity in code that names it."""
        return self.__getattr__("crude")

    @override
    def __reduce__(self) -> Any:
        """Pickle by name, as other modules: functions of ``__main__`` may refer to it."""
        return import_module, (__name__,)


sys.modules[__name__].__class__ = _CallableModule
