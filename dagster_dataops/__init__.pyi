# The public names and their modules; `__init__.py` imports each on first use.

from dagster_dataops import assets as assets
from dagster_dataops import combine as combine
from dagster_dataops import data as data
from dagster_dataops import errors as errors
from dagster_dataops import readers as readers
from dagster_dataops import testing as testing
from dagster_dataops.assets.automation.sensors import NewFiles as NewFiles
from dagster_dataops.assets.checks import check_functions as _check_functions
from dagster_dataops.assets.checks.error_rate import ErrorRateCheck as ErrorRateCheck
from dagster_dataops.assets.components.component import (
    OperatorPipelineComponent as OperatorPipelineComponent,
)
from dagster_dataops.assets.components.operator_declaration import (
    OperatorDeclaration as OperatorDeclaration,
)
from dagster_dataops.assets.decorator import dataops_assets as dataops_assets
from dagster_dataops.assets.definitions import PipelineOptions as PipelineOptions
from dagster_dataops.assets.definitions import build_definitions as build_definitions
from dagster_dataops.assets.definitions import dataops_resources as dataops_resources
from dagster_dataops.assets.inputs.io_manager import DataOpsIOManager as DataOpsIOManager
from dagster_dataops.assets.planning.translator import DataOpsTranslator as DataOpsTranslator
from dagster_dataops.assets.runtime.resource import DataOpsResource as DataOpsResource
from dagster_dataops.checkpoints.folder.manifest import load_artefact as load_artefact
from dagster_dataops.checkpoints.folder.manifest import load_result as load_result
from dagster_dataops.configuration import config as config
from dagster_dataops.data import data_register as data_register
from dagster_dataops.datasets.artefact import Artefact as Artefact
from dagster_dataops.datasets.dataset import JsonlDataset as JsonlDataset
from dagster_dataops.errors import DataOpsError as DataOpsError
from dagster_dataops.execution.run_report import RunReport as RunReport
from dagster_dataops.hashing.operational import Operational as Operational
from dagster_dataops.operators.named_outputs import To as To
from dagster_dataops.operators.operator import Operator as Operator
from dagster_dataops.operators.record_context import Drop as Drop
from dagster_dataops.operators.record_context import OperatorContext as OperatorContext
from dagster_dataops.operators.record_context import StopRun as StopRun
from dagster_dataops.pipelines.chaining import chain as chain
from dagster_dataops.pipelines.pipeline import Pipeline as Pipeline
from dagster_dataops.pipelines.pipeline import pipeline as pipeline
from dagster_dataops.readers.numbers import parse_numbers as parse_numbers
from dagster_dataops.readers.part_files.part_reader import PartFiles as PartFiles
from dagster_dataops.readers.reader import Reader as Reader
from dagster_dataops.records import Record as Record
from dagster_dataops.selectors.selector import Selector as Selector
from dagster_dataops.streams import text as text
from dagster_dataops.streams.data_pipeline import DataPipeline as DataPipeline
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder as DataPipelineBuilder
from dagster_dataops.streams.factories import list_files as list_files
from dagster_dataops.streams.factories import read_jsonl as read_jsonl
from dagster_dataops.streams.factories import read_sequence as read_sequence
from dagster_dataops.streams.torch_loader import torch_dataset as torch_dataset

__version__: str
checks = _check_functions
