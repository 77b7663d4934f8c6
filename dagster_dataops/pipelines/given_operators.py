"""Operators as users give them to a pipeline or a chain: constructed, classes or functions."""

import inspect
from typing import Final

from dagster_dataops.operators.definition.decorated_function import RegisteredFunction
from dagster_dataops.operators.definition.operator import OperatorMeta
from dagster_dataops.operators.registry import OperatorRegistry
from dagster_dataops.pipelines.local_run import run_operator

_FUNCTIONS: Final = OperatorRegistry(run_operator)  # of plain functions, which are not registered


def constructed(given: object, name: str) -> object:
    """Return an operator class or a function as an operator; anything else as it is.

    Args:
        given: A class without required options, or a function of all records, or of one if its
            first parameter is annotated ``dict``.
        name: Name of the operator if the function is a ``lambda``.

    Raises:
        OperatorDefinitionError: A function takes no data.
        OperatorOptionError: A required option is missing.
    """
    if isinstance(given, (OperatorMeta, RegisteredFunction)):
        return given()
    if inspect.isfunction(given):
        return _FUNCTIONS.of_function(given, name)
    return given
