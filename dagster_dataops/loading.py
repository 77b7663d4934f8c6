"""Load records for training: `DataLoader2`, reading services, ranks, states, PyTorch.

>>> from dagster_dataops.loading import DataLoader2, MultiProcessingReadingService
"""

from dagster_dataops.foundation.exports import lazy_exports

__all__, __getattr__ = lazy_exports(__name__)  # `loading.pyi` lists the names


def __dir__() -> list[str]:
    return __all__
