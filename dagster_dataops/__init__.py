"""Data operators as Dagster assets: one jsonl result an operator, checkpoints that survive a kill.

>>> from dagster_dataops import build_definitions, data, data_register, pipeline
"""

from typing import TYPE_CHECKING

from dagster_dataops import data, errors
from dagster_dataops.checkpoints.manifest import Manifest
from dagster_dataops.configuration import config
from dagster_dataops.data import data_register
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import DataOpsError
from dagster_dataops.execution.report import RunReport
from dagster_dataops.graph.graph import OperatorGraph
from dagster_dataops.operators.operator import Operator
from dagster_dataops.records import JsonValue, Record
from dagster_dataops.services.pipeline import Pipeline, pipeline

if TYPE_CHECKING:
    from dagster_dataops.assets.definitions import build_definitions
    from dagster_dataops.assets.factory import build_operator_assets
    from dagster_dataops.assets.io_manager import DataOpsIOManager
    from dagster_dataops.assets.ops import build_operator_job, build_operator_ops
    from dagster_dataops.assets.resource import DataOpsResource
    from dagster_dataops.assets.translator import DataOpsTranslator

_DAGSTER = {
    "DataOpsIOManager": "io_manager",
    "DataOpsResource": "resource",
    "DataOpsTranslator": "translator",
    "build_definitions": "definitions",
    "build_operator_assets": "factory",
    "build_operator_job": "ops",
    "build_operator_ops": "ops",
}

__all__ = [
    "DataOpsError",
    "DataOpsIOManager",
    "DataOpsResource",
    "DataOpsTranslator",
    "JsonValue",
    "JsonlDataset",
    "Manifest",
    "Operator",
    "OperatorGraph",
    "Pipeline",
    "Record",
    "RunReport",
    "build_definitions",
    "build_operator_assets",
    "build_operator_job",
    "build_operator_ops",
    "config",
    "data",
    "data_register",
    "errors",
    "pipeline",
]


def __getattr__(name: str) -> object:
    # Dagster takes over a second to import, and worker processes import this package to load
    # operators. They never touch these names, so they never pay for it.
    if name in _DAGSTER:
        import importlib

        module = importlib.import_module(f"dagster_dataops.assets.{_DAGSTER[name]}")
        return getattr(module, name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return __all__
