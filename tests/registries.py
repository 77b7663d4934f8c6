"""The registries that tests fill: of operators, by the fixture ``registry``, and of workplaces."""

from dagster_dataops.operators.options import concurrency_modes
from dagster_dataops.operators.registry import OperatorRegistry

__all__ = ["OperatorRegistry", "concurrency_modes"]
