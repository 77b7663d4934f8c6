"""Data operators as Dagster assets: one jsonl result an operator, checkpoints that survive a kill.

>>> from dagster_dataops import build_definitions, data, data_register, pipeline
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dagster_dataops import combine, data, errors
    from dagster_dataops.assets import checks
    from dagster_dataops.assets.check_steps import build_operator_checks
    from dagster_dataops.assets.component import OperatorPipelineComponent
    from dagster_dataops.assets.decorator import build_dataops_asset_specs, dataops_assets
    from dagster_dataops.assets.definitions import build_definitions, dataops_resources
    from dagster_dataops.assets.error_rate import ErrorRateCheck
    from dagster_dataops.assets.events import DataOpsEventIterator
    from dagster_dataops.assets.factory import build_operator_assets
    from dagster_dataops.assets.io_manager import DataOpsIOManager
    from dagster_dataops.assets.ops import build_operator_job, build_operator_ops
    from dagster_dataops.assets.pipeline_plan import plan_pipeline
    from dagster_dataops.assets.preview_job import build_preview_job
    from dagster_dataops.assets.resource import DataOpsResource
    from dagster_dataops.assets.sensors import NewFiles, new_files_sensor
    from dagster_dataops.assets.translator import DataOpsTranslator
    from dagster_dataops.assets.yaml_nodes import OperatorDeclaration
    from dagster_dataops.checkpoints.manifest import Manifest, load_result
    from dagster_dataops.combine import concat, round_robin, sample
    from dagster_dataops.configuration import config
    from dagster_dataops.data import data_register
    from dagster_dataops.datasets.dataset import JsonlDataset
    from dagster_dataops.errors import DataOpsError, DataPipelineError
    from dagster_dataops.execution.report import RunReport
    from dagster_dataops.graph.graph import OperatorGraph
    from dagster_dataops.identities.operational import Operational
    from dagster_dataops.operators.operator import Operator
    from dagster_dataops.records import JsonValue, Record
    from dagster_dataops.selectors.selector import Selector
    from dagster_dataops.services.pipeline import Pipeline, pipeline
    from dagster_dataops.sources.delimited import read_delimited
    from dagster_dataops.sources.huggingface import read_huggingface
    from dagster_dataops.sources.numbers import parse_numbers
    from dagster_dataops.sources.part_files import PartFiles
    from dagster_dataops.sources.reader import Reader
    from dagster_dataops.sources.tables import read_arrow, read_parquet
    from dagster_dataops.sources.warc import read_warc
    from dagster_dataops.sources.whole_files import read_files
    from dagster_dataops.streams import text
    from dagster_dataops.streams.conformance import assert_resumes_anywhere
    from dagster_dataops.streams.finitude import Finitude
    from dagster_dataops.streams.pipeline import DataPipeline, DataPipelineBuilder
    from dagster_dataops.streams.sources import (
        list_files,
        read_iterator,
        read_jsonl,
        read_sequence,
    )
    from dagster_dataops.streams.text import read_text
    from dagster_dataops.streams.training import torch_dataset

# Every name loads on first use. Worker processes import this package to load operators: they
# never touch Dagster, which takes over a second to import, and little of the rest.
_HOMES = {
    "DataOpsError": "errors",
    "DataOpsEventIterator": "assets.events",
    "DataOpsIOManager": "assets.io_manager",
    "DataOpsResource": "assets.resource",
    "DataOpsTranslator": "assets.translator",
    "DataPipeline": "streams.pipeline",
    "DataPipelineBuilder": "streams.pipeline",
    "DataPipelineError": "errors",
    "ErrorRateCheck": "assets.error_rate",
    "Finitude": "streams.finitude",
    "JsonValue": "records",
    "JsonlDataset": "datasets.dataset",
    "Manifest": "checkpoints.manifest",
    "NewFiles": "assets.sensors",
    "Operational": "identities.operational",
    "Operator": "operators.operator",
    "OperatorDeclaration": "assets.yaml_nodes",
    "OperatorGraph": "graph.graph",
    "OperatorPipelineComponent": "assets.component",
    "PartFiles": "sources.part_files",
    "Pipeline": "services.pipeline",
    "Reader": "sources.reader",
    "Record": "records",
    "RunReport": "execution.report",
    "Selector": "selectors.selector",
    "assert_resumes_anywhere": "streams.conformance",
    "build_dataops_asset_specs": "assets.decorator",
    "build_definitions": "assets.definitions",
    "build_operator_assets": "assets.factory",
    "build_operator_checks": "assets.check_steps",
    "build_operator_job": "assets.ops",
    "build_operator_ops": "assets.ops",
    "build_preview_job": "assets.preview_job",
    "checks": "assets.",
    "combine": "",
    "concat": "combine",
    "config": "configuration",
    "data": "",
    "data_register": "data",
    "dataops_assets": "assets.decorator",
    "dataops_resources": "assets.definitions",
    "errors": "",
    "list_files": "streams.sources",
    "load_result": "checkpoints.manifest",
    "new_files_sensor": "assets.sensors",
    "parse_numbers": "sources.numbers",
    "pipeline": "services.pipeline",
    "plan_pipeline": "assets.pipeline_plan",
    "read_arrow": "sources.tables",
    "read_delimited": "sources.delimited",
    "read_files": "sources.whole_files",
    "read_huggingface": "sources.huggingface",
    "read_iterator": "streams.sources",
    "read_jsonl": "streams.sources",
    "read_parquet": "sources.tables",
    "read_sequence": "streams.sources",
    "read_text": "streams.text",
    "read_warc": "sources.warc",
    "round_robin": "combine",
    "sample": "combine",
    "text": "streams.",
    "torch_dataset": "streams.training",
}

__all__ = [
    "DataOpsError",
    "DataOpsEventIterator",
    "DataOpsIOManager",
    "DataOpsResource",
    "DataOpsTranslator",
    "DataPipeline",
    "DataPipelineBuilder",
    "DataPipelineError",
    "ErrorRateCheck",
    "Finitude",
    "JsonValue",
    "JsonlDataset",
    "Manifest",
    "NewFiles",
    "Operational",
    "Operator",
    "OperatorDeclaration",
    "OperatorGraph",
    "OperatorPipelineComponent",
    "PartFiles",
    "Pipeline",
    "Reader",
    "Record",
    "RunReport",
    "Selector",
    "assert_resumes_anywhere",
    "build_dataops_asset_specs",
    "build_definitions",
    "build_operator_assets",
    "build_operator_checks",
    "build_operator_job",
    "build_operator_ops",
    "build_preview_job",
    "checks",
    "combine",
    "concat",
    "config",
    "data",
    "data_register",
    "dataops_assets",
    "dataops_resources",
    "errors",
    "list_files",
    "load_result",
    "new_files_sensor",
    "parse_numbers",
    "pipeline",
    "plan_pipeline",
    "read_arrow",
    "read_delimited",
    "read_files",
    "read_huggingface",
    "read_iterator",
    "read_jsonl",
    "read_parquet",
    "read_sequence",
    "read_text",
    "read_warc",
    "round_robin",
    "sample",
    "text",
    "torch_dataset",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    import importlib

    if not home or home.endswith("."):  # a module
        return importlib.import_module(f"{__name__}.{home}{name}")
    found = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
