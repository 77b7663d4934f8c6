"""Operators as worker processes get them: ``ship`` gives the bytes, ``receive`` the operator."""

from typing import Any

from dagster_dataops.operators.bound_methods import record_function
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.pickling import receive, ship

__all__ = ["call", "receive", "ship"]


def call(operator: Operator, record: dict[str, Any]) -> Any:
    """Call an operator for one record, as a worker does."""
    return record_function(operator)(record)
