"""`RegisteredFunction`: the result of decorating a function with ``@data_register``.

A call with a record runs the function. A call with options only constructs the operator. For a
reader, every call constructs the operator. Name, docstring and signature are kept, so editors can
resolve them.
"""

import functools
import sys
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar, overload

from dagster_dataops.foundation.override import override
from dagster_dataops.operators.definition.operator import Operator, OperatorMeta

P = ParamSpec("P")
R = TypeVar("R")


class RegisteredFunction(Generic[P, R]):
    """A function that is also an operator."""

    __wrapped__: Callable[P, R]

    def __init__(self, function: Callable[P, R], operator: OperatorMeta, data: str | None) -> None:
        self.function = function
        self.operator = operator
        self._data = data
        functools.update_wrapper(self, function)

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

    @overload
    def __call__(self, **options: object) -> Operator: ...

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function on a record, or construct the operator from options."""
        if self._data is not None and (args or self._data in kwargs):
            return self.function(*args, **kwargs)
        return self.operator(*args, **kwargs)

    @override
    def __reduce__(self) -> Any:
        """Pickle by reference if the name resolves to this object, else as the function."""
        module = self.function.__module__
        cloudpickle = sys.modules.get("cloudpickle")  # imported by code that pickles by value
        by_value = cloudpickle.list_registry_pickle_by_value() if cloudpickle else ()
        if named_as(self.function) is self and module != "__main__" and module not in by_value:
            return self.function.__qualname__
        return _plain_function, (self.function,)

    @override
    def __repr__(self) -> str:
        return f"<operator function {self.operator.__dataops_spec__.qualified_name}>"


def named_as(target: Any) -> Any:
    """Return the object that the module of a function or class has under its name, if any."""
    attribute: Any = sys.modules.get(target.__module__)
    for name in target.__qualname__.split("."):
        attribute = getattr(attribute, name, None)
    return attribute


def _plain_function(function: Callable[P, R]) -> Callable[P, R]:
    return function
