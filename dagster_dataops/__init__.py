"""Data operators as Dagster assets: one jsonl result an operator, checkpoints that survive a kill.

>>> from dagster_dataops import build_definitions, data, data_register, pipeline
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dagster_dataops import combine, data, errors
    from dagster_dataops.assets.asset_factory import build_operator_assets
    from dagster_dataops.assets.automation.preview_job import build_preview_job
    from dagster_dataops.assets.automation.sensors import NewFiles, new_files_sensor
    from dagster_dataops.assets.checks import check_functions as checks
    from dagster_dataops.assets.checks.error_rate import ErrorRateCheck
    from dagster_dataops.assets.components.component import OperatorPipelineComponent
    from dagster_dataops.assets.components.operator_declaration import OperatorDeclaration
    from dagster_dataops.assets.decorator import build_operator_asset_specs, dataops_assets
    from dagster_dataops.assets.definitions import build_definitions, dataops_resources
    from dagster_dataops.assets.inputs.io_manager import DataOpsIOManager
    from dagster_dataops.assets.ops import build_operator_job, build_operator_ops
    from dagster_dataops.assets.planning.translator import DataOpsTranslator
    from dagster_dataops.assets.runtime.events import DataOpsEventIterator
    from dagster_dataops.assets.runtime.resource import DataOpsResource
    from dagster_dataops.assets.steps.check_steps import build_operator_checks
    from dagster_dataops.assets.steps.planned_pipeline import plan_pipeline
    from dagster_dataops.checkpoints.folder.manifest import Manifest, load_result
    from dagster_dataops.combine import concat, round_robin, sample
    from dagster_dataops.configuration import config
    from dagster_dataops.data import data_register
    from dagster_dataops.datasets.dataset import JsonlDataset
    from dagster_dataops.errors import DataOpsError, DataPipelineError
    from dagster_dataops.execution.run_report import RunReport
    from dagster_dataops.graph.graph import OperatorGraph
    from dagster_dataops.hashing.operational import Operational
    from dagster_dataops.operators.operator import Operator
    from dagster_dataops.pipelines.pipeline import Pipeline, pipeline
    from dagster_dataops.readers.arrow.tables import read_arrow, read_parquet
    from dagster_dataops.readers.delimited.delimited_files import read_delimited
    from dagster_dataops.readers.huggingface.huggingface_datasets import read_huggingface
    from dagster_dataops.readers.numbers import parse_numbers
    from dagster_dataops.readers.part_files.part_reader import PartFiles
    from dagster_dataops.readers.reader import Reader
    from dagster_dataops.readers.warc.web_archives import read_warc
    from dagster_dataops.readers.whole_files import read_files
    from dagster_dataops.records import JsonValue, Record
    from dagster_dataops.selectors.selector import Selector
    from dagster_dataops.streams import text
    from dagster_dataops.streams.core.finitude import Finitude
    from dagster_dataops.streams.data_pipeline import DataPipeline, DataPipelineBuilder
    from dagster_dataops.streams.factories import (
        list_files,
        read_iterator,
        read_jsonl,
        read_sequence,
    )
    from dagster_dataops.streams.stream_testing import assert_resumes_anywhere
    from dagster_dataops.streams.text import read_text
    from dagster_dataops.streams.torch_loader import torch_dataset

# Every name loads on first use. Worker processes import this package to load operators: they
# never touch Dagster, which takes over a second to import, and little of the rest.
_MODULES = {
    "checks": "assets.checks.check_functions",
    "combine": "combine",
    "data": "data",
    "errors": "errors",
    "text": "streams.text",
}
_HOMES = {
    "DataOpsError": "errors",
    "DataOpsEventIterator": "assets.runtime.events",
    "DataOpsIOManager": "assets.inputs.io_manager",
    "DataOpsResource": "assets.runtime.resource",
    "DataOpsTranslator": "assets.planning.translator",
    "DataPipeline": "streams.data_pipeline",
    "DataPipelineBuilder": "streams.data_pipeline",
    "DataPipelineError": "errors",
    "ErrorRateCheck": "assets.checks.error_rate",
    "Finitude": "streams.core.finitude",
    "JsonValue": "records",
    "JsonlDataset": "datasets.dataset",
    "Manifest": "checkpoints.folder.manifest",
    "NewFiles": "assets.automation.sensors",
    "Operational": "hashing.operational",
    "Operator": "operators.operator",
    "OperatorDeclaration": "assets.components.operator_declaration",
    "OperatorGraph": "graph.graph",
    "OperatorPipelineComponent": "assets.components.component",
    "PartFiles": "readers.part_files.part_reader",
    "Pipeline": "pipelines.pipeline",
    "Reader": "readers.reader",
    "Record": "records",
    "RunReport": "execution.run_report",
    "Selector": "selectors.selector",
    "assert_resumes_anywhere": "streams.stream_testing",
    "build_definitions": "assets.definitions",
    "build_operator_asset_specs": "assets.decorator",
    "build_operator_assets": "assets.asset_factory",
    "build_operator_checks": "assets.steps.check_steps",
    "build_operator_job": "assets.ops",
    "build_operator_ops": "assets.ops",
    "build_preview_job": "assets.automation.preview_job",
    "concat": "combine",
    "config": "configuration",
    "data_register": "data",
    "dataops_assets": "assets.decorator",
    "dataops_resources": "assets.definitions",
    "list_files": "streams.factories",
    "load_result": "checkpoints.folder.manifest",
    "new_files_sensor": "assets.automation.sensors",
    "parse_numbers": "readers.numbers",
    "pipeline": "pipelines.pipeline",
    "plan_pipeline": "assets.steps.planned_pipeline",
    "read_arrow": "readers.arrow.tables",
    "read_delimited": "readers.delimited.delimited_files",
    "read_files": "readers.whole_files",
    "read_huggingface": "readers.huggingface.huggingface_datasets",
    "read_iterator": "streams.factories",
    "read_jsonl": "streams.factories",
    "read_parquet": "readers.arrow.tables",
    "read_sequence": "streams.factories",
    "read_text": "streams.text",
    "read_warc": "readers.warc.web_archives",
    "round_robin": "combine",
    "sample": "combine",
    "torch_dataset": "streams.torch_loader",
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
    "build_definitions",
    "build_operator_asset_specs",
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
    import importlib

    if name in _MODULES:
        found: object = importlib.import_module(f"{__name__}.{_MODULES[name]}")
    elif name in _HOMES:
        found = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    else:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
