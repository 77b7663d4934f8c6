"""Call language models: operators, clients, replies and prices.

>>> from dagster_dataops.llm import LLMOperator, ModelClient
"""

from dagster_dataops.foundation.exports import lazy_exports

__all__, __getattr__ = lazy_exports(__name__)  # `llm.pyi` lists the names


def __dir__() -> list[str]:
    return __all__
