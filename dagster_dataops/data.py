"""Operators by group and name, such as ``data.text.Normalize``. ``data_register`` adds operators.

>>> from dagster_dataops import data, data_register
>>> from dagster_dataops.data import text
"""

import sys
from typing import Any, Final

from dagster_dataops.foundation.exports import NamedModule, imported
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.parts import function_of_part
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.registry import OperatorRegistry


def run_operator(operator: Operator, records: object) -> object:
    """Run ``operator`` over ``records``. The executor is imported on the first run."""
    run: Any = imported("dagster_dataops.pipelines.local_run").run_operator
    return run(operator, records)


data_register: Final = OperatorRegistry(
    run_operator, libraries=["dagster_dataops.library"], entry_points="dagster_dataops.operators"
)


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return data_register.group(name)


def __dir__() -> list[str]:
    return ["data_register", *data_register.groups()]


class _Data(NamedModule):
    """The module, which shows its groups of operators."""

    @override
    def __repr__(self) -> str:
        groups = data_register.groups()
        lines = [f"  {name}: {', '.join(data_register.operators(name))}" for name in groups]
        return "\n".join([f"<operators of data, {len(groups)} groups>", *lines])

    def _repr_html_(self) -> str:
        """Return HTML for a notebook."""
        return function_of_part("html_of")(data_register)  # type: ignore[no-any-return]


sys.modules[__name__].__class__ = _Data
