"""The registry of operators that tests fill: each test has its own, by the fixture ``registry``."""

from dagster_dataops.operators.registry import OperatorRegistry

__all__ = ["OperatorRegistry"]
