# The public names by subject, and their modules; `__init__.py` imports each on first use.
# `help(dagster_dataops)` and docs/reference have the same subjects in the same order.

# Shown by `dir`. The others can be imported, too; those of loaders, crude data and models also from
# `dagster_dataops.loading`, `dagster_dataops.crude` and `dagster_dataops.llm`.
__all__ = [
    "DataLoader2",
    "DataOpsError",
    "DataOpsIOManager",
    "DataOpsResource",
    "DataOpsTranslator",
    "DataPipeline",
    "Drop",
    "File",
    "FileReference",
    "JsonlDataset",
    "LLMOperator",
    "LLMResource",
    "ModelClient",
    "NewFiles",
    "OperatorContext",
    "OperatorPipelineComponent",
    "PipelineSchedule",
    "RayCluster",
    "Record",
    "Selector",
    "To",
    "build_definitions",
    "chain",
    "checks",
    "combine",
    "config",
    "crude",
    "data",
    "data_register",
    "dataops_assets",
    "dry_run",
    "errors",
    "llm",
    "load_artefact",
    "load_result",
    "loading",
    "metadataset",
    "pipeline",
    "read_jsonl",
    "read_sequence",
    "readers",
    "register_workplace",
    "report",
    "testing",
    "text",
    "trace",
]

# Operators
from dagster_dataops.data import data_register as data_register
from dagster_dataops import data as data
from dagster_dataops.operators.definition.operator import Operator as Operator
from dagster_dataops.operators.options.file_content import FileContent as FileContent
from dagster_dataops.operators.outcomes.record_context import OperatorContext as OperatorContext
from dagster_dataops.operators.outcomes.named_outputs import To as To
from dagster_dataops.operators.outcomes.record_context import Drop as Drop
from dagster_dataops.operators.outcomes.record_context import StopRun as StopRun
from dagster_dataops.foundation.hashing.operational import Operational as Operational
from dagster_dataops.records import Record as Record

# Pipelines
from dagster_dataops.pipelines.pipeline import pipeline as pipeline
from dagster_dataops.pipelines.pipeline import Pipeline as Pipeline
from dagster_dataops.pipelines.chaining import chain as chain
from dagster_dataops import combine as combine

# Results
from dagster_dataops.checkpoints.folder.manifest import load_result as load_result
from dagster_dataops.datasets.dataset import JsonlDataset as JsonlDataset
from dagster_dataops.checkpoints.folder.manifest import load_artefact as load_artefact
from dagster_dataops.datasets.artefact import Artefact as Artefact
from dagster_dataops.execution.run_report import RunReport as RunReport
from dagster_dataops.pipelines.history.result_versions import versions as versions
from dagster_dataops.pipelines.history.difference import diff as diff
from dagster_dataops.pipelines.history.result_versions import restore as restore
from dagster_dataops.pipelines.view.static_report import report as report
from dagster_dataops.pipelines.tracing.tracer import trace as trace
from dagster_dataops.pipelines.tracing.trail import Trace as Trace

# Configuration
from dagster_dataops import workplaces as workplaces
from dagster_dataops.configuration import config as config
from dagster_dataops.operators.options.concurrency_modes import (
    register_workplace as register_workplace,
)
from dagster_dataops.execution.cluster.ray_cluster import RayCluster as RayCluster
from dagster_dataops.execution.cluster.local_cluster import LocalCluster as LocalCluster

# Dagster
from dagster_dataops.assets.definitions import build_definitions as build_definitions
from dagster_dataops.assets.definitions import PipelineOptions as PipelineOptions
from dagster_dataops.assets.decorator import dataops_assets as dataops_assets
from dagster_dataops.assets.definitions import dataops_resources as dataops_resources
from dagster_dataops.assets.runtime.resource import DataOpsResource as DataOpsResource
from dagster_dataops.assets.inputs.io_manager import DataOpsIOManager as DataOpsIOManager
from dagster_dataops.assets.planning.translator import DataOpsTranslator as DataOpsTranslator
from dagster_dataops.assets.automation.schedules import PipelineSchedule as PipelineSchedule
from dagster_dataops.assets.automation.sensors import NewFiles as NewFiles
from dagster_dataops.assets.inputs.shard_partitions import shard_partitions as shard_partitions
from dagster_dataops.assets.inputs.shard_partitions import ShardPartitions as ShardPartitions
from dagster_dataops.assets.components.component import (
    OperatorPipelineComponent as OperatorPipelineComponent,
)
from dagster_dataops.assets.components.operator_declaration import (
    OperatorDeclaration as OperatorDeclaration,
)
from dagster_dataops import assets as assets

# Checks
from dagster_dataops import checks as checks
from dagster_dataops.assets.checks.error_rate import ErrorRateCheck as ErrorRateCheck

# Language models
from dagster_dataops import llm as llm
from dagster_dataops.models.llm_operator import LLMOperator as LLMOperator
from dagster_dataops.models.json_hooks import LLMDataJson as LLMDataJson
from dagster_dataops.models.calls.client import ModelClient as ModelClient
from dagster_dataops.assets.runtime.llm_resource import LLMResource as LLMResource
from dagster_dataops.models.replies.prices import Price as Price
from dagster_dataops.models.replies.reply import Reply as Reply
from dagster_dataops.models.replies.kept_replies import load_replies as load_replies
from dagster_dataops.models.replies.reply_store import StoredReply as StoredReply
from dagster_dataops.models.dry_run import dry_run as dry_run
from dagster_dataops.models.dry_run import Estimate as Estimate

# Streams
from dagster_dataops.streams.factories import read_jsonl as read_jsonl
from dagster_dataops.streams.factories import read_sequence as read_sequence
from dagster_dataops.streams.factories import read_iterator as read_iterator
from dagster_dataops.streams.data_pipeline import DataPipeline as DataPipeline
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder as DataPipelineBuilder
from dagster_dataops.streams.stages.grouping.collater import Collater as Collater
from dagster_dataops.streams.stages.grouping.collater import (
    CollateOptionsOverride as CollateOptionsOverride,
)
from dagster_dataops.streams.stages.grouping.buckets import (
    create_bucket_sizes as create_bucket_sizes,
)
from dagster_dataops.streams.files.file_mapper import FileMapper as FileMapper
from dagster_dataops.streams.core.item_failures import (
    get_last_failed_example as get_last_failed_example,
)
from dagster_dataops.foundation.selectors.selector import Selector as Selector

# Readers
from dagster_dataops import readers as readers
from dagster_dataops import text as text
from dagster_dataops.readers.zipped_records import read_zipped_records as read_zipped_records
from dagster_dataops.streams.factories import list_files as list_files
from dagster_dataops.readers.reader import Reader as Reader
from dagster_dataops.readers.part_files.part_reader import PartFiles as PartFiles
from dagster_dataops.readers.numbers import parse_numbers as parse_numbers

# Files in records
from dagster_dataops import files as files
from dagster_dataops.datasets.file_values.file_keeper import File as File
from dagster_dataops.datasets.file_values.reference import FileReference as FileReference

# Loaders
from dagster_dataops import loading as loading
from dagster_dataops.training.loading.loader import DataLoader2 as DataLoader2
from dagster_dataops.training.loading.reading_service import (
    InProcessReadingService as InProcessReadingService,
)
from dagster_dataops.training.loading.multi_processing import (
    MultiProcessingReadingService as MultiProcessingReadingService,
)
from dagster_dataops.training.loading.distributed import (
    DistributedReadingService as DistributedReadingService,
)
from dagster_dataops.training.loading.sequential import (
    SequentialReadingService as SequentialReadingService,
)
from dagster_dataops.training.loading.reading_service import (
    ReadingServiceInterface as ReadingServiceInterface,
)
from dagster_dataops.training.loading.reading_service import (
    CheckpointableReadingServiceInterface as CheckpointableReadingServiceInterface,
)
from dagster_dataops.training.loading.seed_generator import SeedGenerator as SeedGenerator
from dagster_dataops.training.loading.rank_states import merged_states as merged_states
from dagster_dataops import graphs as graphs
from dagster_dataops.streams.torch_loader import torch_dataset as torch_dataset
from dagster_dataops.streams.torch_loader import pin_memory as pin_memory
from dagster_dataops.streams.torch_loader import to_device as to_device

# Crude data
from dagster_dataops.training.cooking.crude_streams import crude as crude
from dagster_dataops.training.cooking.crude_streams import read_tar as read_tar
from dagster_dataops.library.cook_operator import cook as cook
from dagster_dataops.training.cooking.cookers import Cooker as Cooker
from dagster_dataops.training.cooking.cookers import cooker as cooker
from dagster_dataops.training.cooking.cookers import SkipSample as SkipSample
from dagster_dataops.training.cooking.samples import basic_sample_keys as basic_sample_keys
from dagster_dataops.training.cooking.samples import edataclass as edataclass
from dagster_dataops.training.filestores.file_references import (
    with_file_contents as with_file_contents,
)
from dagster_dataops.training.filestores.file_references import (
    with_file_references as with_file_references,
)
from dagster_dataops.training.cooking.samples import Sample as Sample
from dagster_dataops.training.cooking.samples import CrudeSample as CrudeSample
from dagster_dataops.training.cooking.samples import TextSample as TextSample
from dagster_dataops.training.cooking.samples import CaptioningSample as CaptioningSample
from dagster_dataops.training.cooking.samples import ImageSample as ImageSample
from dagster_dataops.training.cooking.samples import (
    ImageClassificationSample as ImageClassificationSample,
)
from dagster_dataops.training.cooking.samples import MultiChoiceVQASample as MultiChoiceVQASample
from dagster_dataops.training.cooking.samples import (
    SimilarityInterleavedSample as SimilarityInterleavedSample,
)
from dagster_dataops.training.cooking.samples import VidQASample as VidQASample
from dagster_dataops.training.cooking.samples import InterleavedSample as InterleavedSample
from dagster_dataops.training.cooking.samples import OCRSample as OCRSample
from dagster_dataops.training.cooking.samples import VQASample as VQASample
from dagster_dataops.training.filestores.source_info import SourceInfo as SourceInfo
from dagster_dataops.training.cooking.restoring import restore_record as restore_record
from dagster_dataops.training.filestores.energon.energon_preparation import (
    prepare_energon as prepare_energon,
)
from dagster_dataops.training.cooking.metadataset.metadataset_streams import (
    metadataset as metadataset,
)
from dagster_dataops.training.cooking.metadataset.metadataset_streams import (
    traverse_metadataset as traverse_metadataset,
)
from dagster_dataops.training.cooking.metadataset.metadataset_streams import (
    Metadataset as Metadataset,
)
from dagster_dataops.training.cooking.metadataset.metadataset_leaves import (
    MetadatasetLeaf as MetadatasetLeaf,
)
from dagster_dataops.assets.components.metadataset_component import (
    MetadatasetComponent as MetadatasetComponent,
)
from dagster_dataops.assets.components.listed_component import (
    ListedPipelineComponent as ListedPipelineComponent,
)
from dagster_dataops.training.filestores.store_opening import file_store as file_store
from dagster_dataops.training.filestores.store import FileStore as FileStore
from dagster_dataops.training.decoding.decode_store import DecodeFileStore as DecodeFileStore
from dagster_dataops.training.filestores.energon.media_metadata import AVMetadata as AVMetadata
from dagster_dataops.training.filestores.energon.media_metadata import (
    ImageMetadata as ImageMetadata,
)
from dagster_dataops.training.decoding.sample_decoder import SampleDecoder as SampleDecoder
from dagster_dataops.training.filestores.cache_pool import CachePool as CachePool
from dagster_dataops.training.filestores.cache_pool import FileStoreCachePool as FileStoreCachePool
from dagster_dataops.training.filestores.cache_pool import NoCachePool as NoCachePool
from dagster_dataops.training.filestores.lazy_files import Lazy as Lazy
from dagster_dataops.library.sample_batches import Batch as Batch
from dagster_dataops.library.sample_batches import batch_list as batch_list
from dagster_dataops.library.sample_batches import batch_pad_stack as batch_pad_stack
from dagster_dataops.library.sample_batches import batch_stack as batch_stack
from dagster_dataops.library.sample_batches import generic_batch as generic_batch
from dagster_dataops.library.task_encoder import DefaultTaskEncoder as DefaultTaskEncoder
from dagster_dataops.library.task_encoder import TaskEncoder as TaskEncoder
from dagster_dataops.library.task_encoder import stateless as stateless
from dagster_dataops.library.training_datasets import MapDataset as MapDataset
from dagster_dataops.library.training_datasets import get_train_dataset as get_train_dataset
from dagster_dataops.library.training_datasets import get_val_dataset as get_val_dataset
from dagster_dataops.library.savable_loader import get_loader as get_loader
from dagster_dataops.library.savable_loader import get_savable_loader as get_savable_loader
from dagster_dataops.training.loading.worker_config import WorkerConfig as WorkerConfig
from dagster_dataops.training.loading.worker_config import log_exception as log_exception
from dagster_dataops.training.loading.worker_config import reraise_exception as reraise_exception

# Errors and tests
from dagster_dataops.errors import DataOpsError as DataOpsError
from dagster_dataops import errors as errors
from dagster_dataops import testing as testing

__version__: str
