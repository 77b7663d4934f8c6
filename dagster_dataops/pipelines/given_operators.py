"""Operators as users give them to a pipeline or a chain: constructed, classes or functions."""

import inspect
from typing import Any, Final

from dagster_dataops.operators.definition.decorated_function import RegisteredFunction
from dagster_dataops.operators.definition.operator import Operator, OperatorMeta
from dagster_dataops.operators.registry import OperatorRegistry


def _run(operator: Operator, data: object) -> Any:
    from dagster_dataops.pipelines.local_run import run_operator  # the engine; loaded by use

    return run_operator(operator, data)


_FUNCTIONS: Final = OperatorRegistry(_run)  # of plain functions, which are not registered


def constructed(operator: object, name: str) -> object:
    """Return an operator class or a function as an operator; anything else as it is.

    A class has no required options. A function takes all records, or one if its first parameter
    is annotated ``dict``; ``name`` is that of a ``lambda``.

    Raises:
        OperatorDefinitionError: A function takes no data.
        OperatorOptionError: A required option is missing.
    """
    if isinstance(operator, (OperatorMeta, RegisteredFunction)):
        return operator()
    if inspect.isfunction(operator):
        return _FUNCTIONS.of_function(operator, name)
    return operator
