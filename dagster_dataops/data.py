"""Operators by group and name, such as ``data.text.Normalize``. ``data_register`` adds operators.

>>> from dagster_dataops import data, data_register
>>> from dagster_dataops.data import text
"""

from typing import Any, Final

from dagster_dataops.foundation.concurrency.garbage import collected_rarely
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.registry import OperatorRegistry


def run_operator(operator: Operator, records: object) -> object:
    """Run ``operator`` over ``records``. The executor is imported on the first run."""
    with collected_rarely():
        from dagster_dataops.pipelines import local_run

    return local_run.run_operator(operator, records)


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
