# The public names, and their modules; `crude.py` imports each on first use.

from dagster_dataops.assets.components.listed_component import (
    ListedPipelineComponent as ListedPipelineComponent,
)
from dagster_dataops.assets.components.metadataset_component import (
    MetadatasetComponent as MetadatasetComponent,
)
from dagster_dataops.library.cook_operator import cook as cook
from dagster_dataops.library.sample_batches import Batch as Batch
from dagster_dataops.library.sample_batches import batch_list as batch_list
from dagster_dataops.library.sample_batches import batch_pad_stack as batch_pad_stack
from dagster_dataops.library.sample_batches import batch_stack as batch_stack
from dagster_dataops.library.sample_batches import generic_batch as generic_batch
from dagster_dataops.library.savable_loader import get_loader as get_loader
from dagster_dataops.library.savable_loader import get_savable_loader as get_savable_loader
from dagster_dataops.library.task_encoder import DefaultTaskEncoder as DefaultTaskEncoder
from dagster_dataops.library.task_encoder import TaskEncoder as TaskEncoder
from dagster_dataops.library.task_encoder import stateless as stateless
from dagster_dataops.library.training_datasets import MapDataset as MapDataset
from dagster_dataops.library.training_datasets import get_train_dataset as get_train_dataset
from dagster_dataops.library.training_datasets import get_val_dataset as get_val_dataset
from dagster_dataops.training.cooking.cookers import Cooker as Cooker
from dagster_dataops.training.cooking.cookers import SkipSample as SkipSample
from dagster_dataops.training.cooking.cookers import cooker as cooker
from dagster_dataops.training.cooking.crude_streams import crude as crude
from dagster_dataops.training.cooking.crude_streams import read_tar as read_tar
from dagster_dataops.training.cooking.metadataset.metadataset_leaves import (
    MetadatasetLeaf as MetadatasetLeaf,
)
from dagster_dataops.training.cooking.metadataset.metadataset_streams import (
    Metadataset as Metadataset,
)
from dagster_dataops.training.cooking.metadataset.metadataset_streams import (
    metadataset as metadataset,
)
from dagster_dataops.training.cooking.metadataset.metadataset_streams import (
    traverse_metadataset as traverse_metadataset,
)
from dagster_dataops.training.cooking.restoring import restore_record as restore_record
from dagster_dataops.training.cooking.samples import CaptioningSample as CaptioningSample
from dagster_dataops.training.cooking.samples import CrudeSample as CrudeSample
from dagster_dataops.training.cooking.samples import (
    ImageClassificationSample as ImageClassificationSample,
)
from dagster_dataops.training.cooking.samples import ImageSample as ImageSample
from dagster_dataops.training.cooking.samples import InterleavedSample as InterleavedSample
from dagster_dataops.training.cooking.samples import MultiChoiceVQASample as MultiChoiceVQASample
from dagster_dataops.training.cooking.samples import OCRSample as OCRSample
from dagster_dataops.training.cooking.samples import Sample as Sample
from dagster_dataops.training.cooking.samples import (
    SimilarityInterleavedSample as SimilarityInterleavedSample,
)
from dagster_dataops.training.cooking.samples import TextSample as TextSample
from dagster_dataops.training.cooking.samples import VidQASample as VidQASample
from dagster_dataops.training.cooking.samples import VQASample as VQASample
from dagster_dataops.training.cooking.samples import basic_sample_keys as basic_sample_keys
from dagster_dataops.training.cooking.samples import edataclass as edataclass
from dagster_dataops.training.decoding.decode_store import DecodeFileStore as DecodeFileStore
from dagster_dataops.training.decoding.sample_decoder import SampleDecoder as SampleDecoder
from dagster_dataops.training.filestores.cache_pool import CachePool as CachePool
from dagster_dataops.training.filestores.cache_pool import FileStoreCachePool as FileStoreCachePool
from dagster_dataops.training.filestores.cache_pool import NoCachePool as NoCachePool
from dagster_dataops.training.filestores.energon.energon_preparation import (
    prepare_energon as prepare_energon,
)
from dagster_dataops.training.filestores.energon.media_metadata import AVMetadata as AVMetadata
from dagster_dataops.training.filestores.energon.media_metadata import (
    ImageMetadata as ImageMetadata,
)
from dagster_dataops.training.filestores.file_references import (
    with_file_contents as with_file_contents,
)
from dagster_dataops.training.filestores.file_references import (
    with_file_references as with_file_references,
)
from dagster_dataops.training.filestores.lazy_files import Lazy as Lazy
from dagster_dataops.training.filestores.source_info import SourceInfo as SourceInfo
from dagster_dataops.training.filestores.store import FileStore as FileStore
from dagster_dataops.training.filestores.store_opening import file_store as file_store
from dagster_dataops.training.loading.worker_config import WorkerConfig as WorkerConfig
from dagster_dataops.training.loading.worker_config import log_exception as log_exception
from dagster_dataops.training.loading.worker_config import reraise_exception as reraise_exception
